// Models and golden answers for the engine's tests. Fixture models are found through
// DRIFTWOOD_FIXTURE_MODELS, the small real model through DRIFTWOOD_SMOLLM2, its answers through
// DRIFTWOOD_FIXTURES or ../shared/fixtures; a test skips with a message where its files are absent.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "engine/engine.h"
#include "format/safetensors.h"

namespace driftwood::engine::testing {

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

inline std::string fixture_model(const std::string& name) {
  const std::string root = environment("DRIFTWOOD_FIXTURE_MODELS");
  const std::string path = root + "/" + name;
  return !root.empty() && std::filesystem::exists(path + "/config.json") ? path : "";
}

inline std::string fixtures_folder() {
  const std::string set = environment("DRIFTWOOD_FIXTURES");
  return set.empty() ? DW_SOURCE_DIR "/../shared/fixtures" : set;
}

#define DW_FIXTURE_OR_SKIP(variable, name)          \
  const std::string variable = fixture_model(name); \
  if (variable.empty()) GTEST_SKIP() << "no fixture model " << name << ": DRIFTWOOD_FIXTURE_MODELS is not set"

#define DW_SMOLLM2_OR_SKIP(variable)                             \
  const std::string variable = environment("DRIFTWOOD_SMOLLM2"); \
  if (variable.empty()) GTEST_SKIP() << "no real model: DRIFTWOOD_SMOLLM2 is not set"

// A safetensors file of answers, read whole.
class Golden {
 public:
  explicit Golden(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    auto parsed = format::parse_safetensors(bytes_, path);
    if (parsed.is_ok()) {
      for (format::StoredTensor& t : *parsed) tensors_.emplace(t.name, t);
    } else {
      ADD_FAILURE() << parsed.status().message();
    }
  }
  std::vector<int32_t> ids(const std::string& name) const {
    const auto wide = values<int64_t>(name);
    return {wide.begin(), wide.end()};
  }
  std::vector<float> floats(const std::string& name) const { return values<float>(name); }

 private:
  template <typename T>
  std::vector<T> values(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      ADD_FAILURE() << "no golden tensor " << name;
      return {};
    }
    std::vector<T> result(found->second.bytes.size() / sizeof(T));
    std::memcpy(result.data(), found->second.bytes.data(), result.size() * sizeof(T));
    return result;
  }
  std::vector<uint8_t> bytes_;
  std::map<std::string, format::StoredTensor> tensors_;
};

struct RunWith {
  std::string isa = "ref";
  int threads = 2;
  EngineOptions options;
};

struct Opened {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<Engine> engine;
};

inline std::shared_ptr<LoadedModel> load(const std::string& path) {
  auto model = load_model(path, {});
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return model.is_ok() ? *model : nullptr;
}

inline Opened open(const std::shared_ptr<LoadedModel>& model, RunWith setup = {}) {
  if (setup.options.kv_budget_bytes == 0) setup.options.kv_budget_bytes = int64_t{256} << 20;
  Opened opened;
  auto device = device::CpuDevice::create({setup.threads, setup.isa});
  EXPECT_TRUE(device.is_ok()) << device.status().message();
  if (!device.is_ok()) return opened;
  opened.device = std::move(*device);
  auto engine = Engine::create(model, opened.device.get(), setup.options);
  EXPECT_TRUE(engine.is_ok()) << engine.status().message();
  if (engine.is_ok()) opened.engine = std::move(*engine);
  return opened;
}

// Instruction sets this processor can run.
inline std::vector<std::string> available_isas() {
  std::vector<std::string> isas;
  for (const char* isa : {"ref", "avx2", "avxvnni", "avx512", "neon"}) {
    if (device::CpuDevice::create({1, isa}).is_ok()) isas.emplace_back(isa);
  }
  return isas;
}

// Appends and steps `ids` in pieces of `piece` (0: whole); every row's logits, [T][V].
inline std::vector<float> all_logits(Engine& engine, SessionId session, const std::vector<int32_t>& ids,
                                     int64_t piece = 0) {
  const int64_t base = *engine.length(session);
  const auto vocab = static_cast<size_t>(engine.model().config.vocab_size);
  std::vector<float> result(ids.size() * vocab);
  size_t rows = 0;
  const LogitsSink sink = [&](int64_t position, std::span<const float> logits) {
    std::copy(logits.begin(), logits.end(), result.begin() + static_cast<int64_t>(vocab) * (position - base));
    ++rows;
  };
  const size_t step = piece == 0 ? ids.size() : static_cast<size_t>(piece);
  for (size_t at = 0; at < ids.size(); at += step) {
    const size_t count = std::min(step, ids.size() - at);
    Status status = engine.append(session, std::span(ids).subspan(at, count));
    if (status.is_ok()) status = engine.step(session, &sink);
    EXPECT_TRUE(status.is_ok()) << status.message();
    if (!status.is_ok()) return {};
  }
  EXPECT_EQ(rows, ids.size());
  return result;
}

inline SessionId open_session(Engine& engine, SessionOptions options = {}) {
  auto session = engine.open(options);
  EXPECT_TRUE(session.is_ok()) << session.status().message();
  return session.is_ok() ? *session : 0;
}

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// KL(golden || found) of two logit rows, in double.
inline double divergence(const float* golden, const float* found, size_t width) {
  const auto log_sum = [&](const float* x) {
    const double top = *std::max_element(x, x + width);
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(x[i]) - top);
    return top + std::log(sum);
  };
  const double golden_sum = log_sum(golden);
  const double found_sum = log_sum(found);
  double kl = 0;
  for (size_t i = 0; i < width; ++i) {
    const double p = static_cast<double>(golden[i]) - golden_sum;
    kl += std::exp(p) * (p - (static_cast<double>(found[i]) - found_sum));
  }
  return kl;
}

}  // namespace driftwood::engine::testing
