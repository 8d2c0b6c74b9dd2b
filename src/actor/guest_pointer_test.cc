// Every host call against wild and wrapping pointers, wrong handles and wrong values: table-driven, so that a
// new call is tested by being in the table.
#include <gtest/gtest.h>

#include "actor/abi_structs.h"
#include "actor/actors_for_test.h"
#include "actor/fake_engine_for_test.h"
#include "actor/solo_guest.h"

namespace driftwood::actor {
namespace {

constexpr uint64_t kMemory = 65536;

struct Parameter {
  std::string type, name;
};

std::vector<Parameter> parameters_of(const HostCall& call) {
  std::vector<Parameter> list;
  std::string_view rest = call.parameters;
  while (!rest.empty()) {
    const size_t comma = rest.find(", ");
    const std::string_view one = rest.substr(0, comma);
    list.push_back({std::string(one.substr(0, one.find(' '))), std::string(one.substr(one.find(' ') + 1))});
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
  }
  return list;
}

std::string wat_type(const std::string& type) { return type == "i64" ? "i64" : "i32"; }

// A guest that exports every host call under its name, with one page of memory.
std::string forwarder_text() {
  std::string imports, functions;
  for (const HostCall& call : host_calls()) {
    std::string types, gets;
    int index = 0;
    for (const Parameter& parameter : parameters_of(call)) {
      types += " " + wat_type(parameter.type);
      gets += " (local.get " + std::to_string(index++) + ")";
    }
    const std::string name(call.name);
    const std::string signature =
        (types.empty() ? "" : "(param" + types + ") ") + "(result " + std::string(call.result) + ")";
    imports += "(import \"driftwood\" \"" + name + "\" (func $" + name + " " + signature + "))\n";
    functions += "(func (export \"" + name + "\") " + signature + " (call $" + name + gets + "))\n";
  }
  return "(module " + imports + "(memory (export \"memory\") 1) " + functions + ")";
}

class GuestPointer : public ::testing::Test {
 protected:
  std::unique_ptr<SoloGuest> fresh() {
    static const std::shared_ptr<wasm::Module> module = module_of(forwarder_text());
    auto made = SoloGuest::create(*shared_runtime(), module, "wild", {}, &engine_, &shared_device());
    DW_CHECK(made.is_ok(), made.status().message().c_str());
    return std::move(*made);
  }
  int64_t call(SoloGuest& solo, const std::string& name, std::vector<uint64_t> args) {
    const auto result = solo.instance().call(name, args);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    return result.is_ok() ? static_cast<int64_t>((*result)[0]) : 0;
  }
  void expect_trap(SoloGuest& solo, const std::string& name, const std::vector<uint64_t>& args) {
    const auto result = solo.instance().call(name, args);
    ASSERT_FALSE(result.is_ok()) << name;
    EXPECT_EQ(result.status().code(), Code::kAborted);
    const std::string& message = result.status().message();
    EXPECT_NE(message.find("'wild'"), std::string::npos) << message;
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("is outside its memory of 65536 bytes"), std::string::npos) << message;
    EXPECT_FALSE(solo.instance().alive());
  }
  template <typename T>
  void put(SoloGuest& solo, uint64_t offset, const T& value) {
    std::memcpy(solo.instance().bytes(offset, sizeof(T)), &value, sizeof(T));
  }
  FakeEngine engine_;
};

TEST_F(GuestPointer, EveryPairOfPointerAndLengthIsChecked) {
  const std::vector<std::pair<uint64_t, uint64_t>> wild = {
      {kMemory, 1},          // just behind
      {kMemory - 3, 64},     // across the end
      {0xfffffff0u, 0x20u},  // wraps in 32 bits
      {0xffffffffu, 1},     {16, 0xffffffffu}, {0xffffffffu, 0xffffffffu},
      {kMemory + 8, 0},  // not even its first byte exists
  };
  int checked = 0;
  for (const HostCall& host_call : host_calls()) {
    const std::vector<Parameter> parameters = parameters_of(host_call);
    for (size_t i = 0; i + 1 < parameters.size(); ++i) {
      if (parameters[i].type != "ptr" || parameters[i + 1].type != "len") continue;
      for (const auto& [offset, length] : wild) {
        std::vector<uint64_t> args(parameters.size(), 0);
        args[i] = offset;
        args[i + 1] = length;
        const auto solo = fresh();
        expect_trap(*solo, std::string(host_call.name), args);
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 7 * 20);
}

TEST_F(GuestPointer, EveryStructPointerIsChecked) {
  int checked = 0;
  for (const HostCall& host_call : host_calls()) {
    const std::vector<Parameter> parameters = parameters_of(host_call);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].type != "ptr") continue;
      if (i + 1 < parameters.size() && parameters[i + 1].type == "len") continue;
      for (const uint64_t offset : {kMemory - 8, kMemory, uint64_t{0xfffffff8u}, uint64_t{0xffffffffu}}) {
        std::vector<uint64_t> args(parameters.size(), 0);
        args[i] = offset;
        const auto solo = fresh();
        expect_trap(*solo, std::string(host_call.name), args);
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 4 * 5);  // session_open, session_set_sampling, generate, gemm, softmax
}

TEST_F(GuestPointer, EveryCallSurvivesWrongValues) {
  for (const HostCall& host_call : host_calls()) {
    const std::vector<Parameter> parameters = parameters_of(host_call);
    for (const int64_t value : {int64_t{-1}, int64_t{7}, INT64_MIN, INT64_MAX}) {
      std::vector<uint64_t> args(parameters.size(), 0);
      for (size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].type == "i64") args[i] = static_cast<uint64_t>(value);
        if (parameters[i].type == "i32")
          args[i] = static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
      }
      const auto solo = fresh();
      call(*solo, std::string(host_call.name), args);
    }
  }
}

TEST_F(GuestPointer, WrongHandlesAreNamed) {
  const auto solo = fresh();
  for (const char* name : {"step", "sample", "session_length", "session_close"}) {
    for (const int64_t handle : {0, -1, 1, 4097, 0x7fffffff}) {
      EXPECT_EQ(call(*solo, name, {static_cast<uint64_t>(handle)}), -5) << name << " " << handle;
      EXPECT_EQ(solo->last_error(),
                std::string(name) + ": session " + std::to_string(handle) + " is not open");
    }
  }
}

TEST_F(GuestPointer, AClosedHandleIsNotTakenForALaterSession) {
  const auto solo = fresh();
  const int64_t first = call(*solo, "session_open", {0});
  ASSERT_GT(first, 0);
  EXPECT_EQ(call(*solo, "session_close", {static_cast<uint64_t>(first)}), 0);
  const int64_t second = call(*solo, "session_open", {0});
  ASSERT_GT(second, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(call(*solo, "session_length", {static_cast<uint64_t>(first)}), -5);
  EXPECT_EQ(call(*solo, "session_length", {static_cast<uint64_t>(second)}), 0);
}

TEST_F(GuestPointer, ABuffersFullLengthIsReturnedAndNotMoreThanItHoldsIsWritten) {
  const auto solo = fresh();
  std::memset(solo->instance().bytes(0, 16), 0x55, 16);
  EXPECT_EQ(call(*solo, "self_name", {0, 2}), 4);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(solo->instance().bytes(0, 4)), 4), "wi\x55\x55");
}

TEST_F(GuestPointer, GemmRefusesWhatItMustAndComputesInPlace) {
  AbiGemmParams good{2, 2, 2, 1024, 2, 1040, 2, 1056, 2};
  const auto expect_code = [&](const AbiGemmParams& params, int64_t code) {
    const auto solo = fresh();
    put(*solo, 0, params);
    EXPECT_EQ(call(*solo, "gemm", {0}), code) << solo->last_error();
  };
  const auto with = [&](auto change) {
    AbiGemmParams changed = good;
    change(changed);
    return changed;
  };
  expect_code(good, 0);
  expect_code(with([](AbiGemmParams& p) { p.a_offset = 1026; }), -3);  // alignment
  expect_code(with([](AbiGemmParams& p) { p.lda = 1; }), -3);
  expect_code(with([](AbiGemmParams& p) { p.ldc = 0; }), -3);
  expect_code(with([](AbiGemmParams& p) { p.c_offset = 1028; }), -3);  // over A
  expect_code(with([](AbiGemmParams& p) { p.c_offset = 1052; }), -3);  // over B's last element
  expect_code(with([](AbiGemmParams& p) { p.m = UINT64_MAX; }), -3);
  expect_code(with([](AbiGemmParams& p) { p.lda = uint64_t{1} << 62; }), -3);
  expect_code(with([](AbiGemmParams& p) { p.m = 0; }), 0);
  const auto expect_wild = [&](const AbiGemmParams& params) {
    const auto solo = fresh();
    put(*solo, 0, params);
    expect_trap(*solo, "gemm", {0});
  };
  expect_wild(with([](AbiGemmParams& p) { p.a_offset = kMemory - 8; }));
  expect_wild(with([](AbiGemmParams& p) { p.b_offset = UINT64_MAX - 3; }));
  expect_wild(with([](AbiGemmParams& p) { p.c_offset = uint64_t{1} << 32; }));
  expect_wild(with([](AbiGemmParams& p) { p.lda = 1 << 20; }));
  expect_wild(with([](AbiGemmParams& p) { p.m = 1 << 29, p.lda = 1 << 29, p.ldc = 1 << 29; }));

  const auto solo = fresh();
  put(*solo, 0, good);
  const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, want[4] = {19, 22, 43, 50};
  put(*solo, 1024, a);
  put(*solo, 1040, b);
  const uint8_t* base = solo->instance().memory().base();
  ASSERT_EQ(call(*solo, "gemm", {0}), 0);
  EXPECT_EQ(std::memcmp(base + 1056, want, sizeof(want)), 0);
}

TEST_F(GuestPointer, SoftmaxChecksLikewise) {
  const auto code = [&](AbiSoftmaxParams params) {
    const auto solo = fresh();
    put(*solo, 0, params);
    return call(*solo, "softmax", {0});
  };
  EXPECT_EQ(code({1, 4, 1024, 1024}), 0);
  EXPECT_EQ(code({1, 4, 1024, 1040}), 0);
  EXPECT_EQ(code({1, 4, 1024, 1032}), -3);
  EXPECT_EQ(code({1, 4, 1022, 1040}), -3);
  const auto solo = fresh();
  put(*solo, 0, AbiSoftmaxParams{1 << 14, 1 << 14, 0, 0});
  expect_trap(*solo, "softmax", {0});
}

TEST_F(GuestPointer, SamplingIsValidatedAndItsArraysAreChecked) {
  AbiSampling good{64, 0.5f, 0, 1, 0, 1, 0, 0, 64, 0, 1, 2, 0, 0};
  const auto code = [&](AbiSampling params) {
    const auto solo = fresh();
    const int64_t session = call(*solo, "session_open", {0});
    put(*solo, 0, params);
    return call(*solo, "session_set_sampling", {static_cast<uint64_t>(session), 0});
  };
  EXPECT_EQ(code(good), 0);
  good.bias_count = 2, good.bias_ids = 1024, good.bias_values = 1032;
  EXPECT_EQ(code(good), 0);
  AbiSampling bad = good;
  bad.bias_ids = 1023;
  EXPECT_EQ(code(bad), -3);
  bad = good, bad.bias_count = kMaxBias + 1;
  EXPECT_EQ(code(bad), -3);
  bad = good, bad.size = 60;
  EXPECT_EQ(code(bad), -3);
  bad = good, bad.temperature = -1;
  EXPECT_EQ(code(bad), -3);
  const auto solo = fresh();
  const int64_t session = call(*solo, "session_open", {0});
  bad = good, bad.bias_values = 0xfffffffc;
  put(*solo, 0, bad);
  expect_trap(*solo, "session_set_sampling", {static_cast<uint64_t>(session), 0});
}

TEST_F(GuestPointer, WithoutModelAndDeviceCallsAnswerUnavailable) {
  auto module = module_of(forwarder_text());
  auto made = SoloGuest::create(*shared_runtime(), module, "bare", {}, nullptr, nullptr);
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  SoloGuest& solo = **made;
  put(solo, 0, AbiGemmParams{1, 1, 1, 1024, 1, 1028, 1, 1032, 1});
  EXPECT_EQ(call(solo, "gemm", {0}), -14);
  EXPECT_EQ(call(solo, "session_open", {0}), -14);
  EXPECT_EQ(call(solo, "tokenize", {0, 1, 0, 0, 0}), -14);
  EXPECT_EQ(call(solo, "vocab_size", {}), -14);
  EXPECT_EQ(call(solo, "max_context", {}), -14);
  EXPECT_EQ(call(solo, "abi_version", {}), 1);
}

TEST_F(GuestPointer, RandomIsTheSeedsAndClocksNeverRunBack) {
  const auto draw = [&](uint64_t seed) {
    ActorOptions options;
    options.seed = seed;
    auto made =
        SoloGuest::create(*shared_runtime(), module_of(forwarder_text()), "dice", options, nullptr, nullptr);
    EXPECT_EQ(call(**made, "random", {0, 20}), 0);
    EXPECT_EQ(call(**made, "random", {24, 8}), 0);
    return std::string(reinterpret_cast<char*>((*made)->instance().bytes(0, 32)), 32);
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
  const auto solo = fresh();
  for (const uint64_t clock : {0, 1}) {
    int64_t last = 0;
    for (int i = 0; i < 100; ++i) {
      const int64_t now = call(*solo, "clock_ns", {clock});
      EXPECT_GE(now, last);
      last = now;
    }
  }
  EXPECT_LT(call(*solo, "clock_ns", {1}),
            int64_t{60} * 1'000'000'000);  // from the actor's start, not the machine's
}

}  // namespace
}  // namespace driftwood::actor
