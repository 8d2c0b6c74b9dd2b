// The table, the header for guests and docs/abi.md say the same.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "../sdk/abi/driftwood_abi.h"
#include "actor/abi_structs.h"
#include "actor/generates.h"

namespace driftwood::actor {
namespace {

std::string read_source(const std::string& path) {
  std::ifstream in(std::string(DW_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::set<std::string> matches(const std::string& text, const char* pattern) {
  std::set<std::string> found;
  const std::regex regex(pattern);
  for (auto it = std::sregex_iterator(text.begin(), text.end(), regex); it != std::sregex_iterator(); ++it) {
    EXPECT_TRUE(found.insert((*it)[1]).second) << (*it)[1] << " stands twice";
  }
  return found;
}

TEST(HostTable, DocumentationHasEveryCallAndNoOther) {
  std::set<std::string> table;
  for (const HostCall& call : host_calls()) {
    table.insert(std::string(call.name) + "(" + std::string(call.parameters) + ") -> " +
                 std::string(call.result));
  }
  EXPECT_EQ(table.size(), host_calls().size());
  EXPECT_EQ(matches(read_source("docs/abi.md"), "\n- `([a-z_]+\\([^`]*\\) -> i(?:32|64))`:"), table);
}

TEST(HostTable, TheGuestHeaderImportsEveryCallAndNoOther) {
  std::set<std::string> table;
  for (const HostCall& call : host_calls()) table.insert(std::string(call.name));
  EXPECT_EQ(matches(read_source("sdk/abi/driftwood_abi.h"), "\nDW_IMPORT\\(([a-z_]+)\\)"), table);
}

TEST(HostTable, SignaturesAreMadeOfTheParameters) {
  using enum wasm::ValueType;
  for (const wasm::HostImport& import : host_imports()) {
    EXPECT_EQ(import.module, "driftwood");
    if (import.name == "session_fork") {
      EXPECT_EQ(import.signature, (wasm::Signature{{kI32, kI64}, {kI32}}));
    }
    if (import.name == "tokenize") {
      EXPECT_EQ(import.signature, (wasm::Signature{{kI32, kI32, kI32, kI32, kI32}, {kI32}}));
    }
    if (import.name == "clock_ns") {
      EXPECT_EQ(import.signature, (wasm::Signature{{kI32}, {kI64}}));
    }
  }
}

#define DW_SAME_FIELD(guest, host, field)                            \
  static_assert(offsetof(::guest, field) == offsetof(host, field) && \
                sizeof(std::declval<::guest>().field) == sizeof(std::declval<host>().field))

DW_SAME_FIELD(dw_sampling, AbiSampling, size);
DW_SAME_FIELD(dw_sampling, AbiSampling, temperature);
DW_SAME_FIELD(dw_sampling, AbiSampling, top_k);
DW_SAME_FIELD(dw_sampling, AbiSampling, top_p);
DW_SAME_FIELD(dw_sampling, AbiSampling, min_p);
DW_SAME_FIELD(dw_sampling, AbiSampling, repetition_penalty);
DW_SAME_FIELD(dw_sampling, AbiSampling, presence_penalty);
DW_SAME_FIELD(dw_sampling, AbiSampling, frequency_penalty);
DW_SAME_FIELD(dw_sampling, AbiSampling, penalty_last_n);
DW_SAME_FIELD(dw_sampling, AbiSampling, bias_count);
DW_SAME_FIELD(dw_sampling, AbiSampling, seed);
DW_SAME_FIELD(dw_sampling, AbiSampling, stream);
DW_SAME_FIELD(dw_sampling, AbiSampling, bias_ids);
DW_SAME_FIELD(dw_sampling, AbiSampling, bias_values);
DW_SAME_FIELD(dw_session_params, AbiSessionParams, max_tokens);
DW_SAME_FIELD(dw_session_params, AbiSessionParams, sampling);
DW_SAME_FIELD(dw_generate_params, AbiGenerateParams, flags);
DW_SAME_FIELD(dw_generate_params, AbiGenerateParams, max_tokens);
DW_SAME_FIELD(dw_generate_params, AbiGenerateParams, run_ahead);
DW_SAME_FIELD(dw_gemm_params, AbiGemmParams, k);
DW_SAME_FIELD(dw_gemm_params, AbiGemmParams, a_offset);
DW_SAME_FIELD(dw_gemm_params, AbiGemmParams, ldb);
DW_SAME_FIELD(dw_gemm_params, AbiGemmParams, ldc);
DW_SAME_FIELD(dw_softmax_params, AbiSoftmaxParams, x_offset);
DW_SAME_FIELD(dw_softmax_params, AbiSoftmaxParams, out_offset);

static_assert(DW_E_RESOURCE_EXHAUSTED == -static_cast<int>(Code::kResourceExhausted));
static_assert(DW_E_FAILED_PRECONDITION == -static_cast<int>(Code::kFailedPrecondition));
static_assert(DW_E_NOT_FOUND == -static_cast<int>(Code::kNotFound));
static_assert(DW_E_UNAVAILABLE == -static_cast<int>(Code::kUnavailable));
static_assert(DW_E_DATA_LOSS == -static_cast<int>(Code::kDataLoss));
static_assert(DW_DONE_ERROR == static_cast<int>(DoneReason::kError));
static_assert(DW_DONE_CONTEXT_FULL == static_cast<int>(DoneReason::kContextFull));

}  // namespace
}  // namespace driftwood::actor
