// The conformance suite (DESIGN 4.3): what it means that a device speaks portable-1.
//
// A case is a function that runs one op on two devices over many shapes and returns "" or a sentence about
// the first byte that differs. The reference is ref on one thread. Cases also check, on the candidate alone,
// that a row gives the same bytes alone and among others. A device passes if every case returns "". Devices
// must share the host's pointers (device.h, pointers_are_host or registered memory).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "device/device.h"

namespace driftwood::conformance {

using device::Device;

struct Case {
  std::string_view op;
  std::string (*difference)(Device& reference, Device& candidate);
  uint64_t digest;  // of all bytes that compare() expected: the same on every machine
};

// One or more for each slot of OpTable.
const std::vector<Case>& all_cases();

std::string embed_difference(Device& reference, Device& candidate);
std::string rms_norm_difference(Device& reference, Device& candidate);
std::string quantise_difference(Device& reference, Device& candidate);
std::string matmul_difference(Device& reference, Device& candidate);
std::string rope_table_difference(Device& reference, Device& candidate);
std::string rope_difference(Device& reference, Device& candidate);
std::string kv_store_difference(Device& reference, Device& candidate);
std::string attention_difference(Device& reference, Device& candidate);
std::string attention_invariance(Device& reference, Device& candidate);
std::string swiglu_difference(Device& reference, Device& candidate);
std::string add_difference(Device& reference, Device& candidate);
std::string softmax_difference(Device& reference, Device& candidate);
std::string gemm_difference(Device& reference, Device& candidate);

inline constexpr int64_t kTokenCounts[] = {1, 2, 3, 5, 8, 13, 17, 32, 40};

// A device with a stream; an op that fails makes every comparison fail with its message.
class Runner {
 public:
  explicit Runner(Device& device) : stream_(device.make_stream()), ops_(device.ops()) {}

  template <typename Args>
  void operator()(Status (*device::OpTable::*op)(device::Stream&, const Args&), const Args& args) {
    Status status = (ops_.*op)(*stream_, args);
    if (status.is_ok()) status = stream_->wait();
    if (!status.is_ok() && error_.empty()) error_ = status.to_string();
  }
  const std::string& error() const { return error_; }

 private:
  std::unique_ptr<device::Stream> stream_;
  const device::OpTable& ops_;
  std::string error_;
};

// 64-byte aligned values.
template <typename T>
class Values {
 public:
  Values() = default;
  explicit Values(int64_t count, T fill = T{}) : storage_(count + 64 / sizeof(T), fill), count_(count) {}
  Values(const Values& other) : Values(other.count_) {
    std::copy(other.data(), other.data() + count_, data());
  }
  Values& operator=(const Values& other) {
    Values copy(other);
    storage_.swap(copy.storage_);
    count_ = copy.count_;
    return *this;
  }
  Values(Values&&) = default;
  Values& operator=(Values&&) = default;

  T* data() { return const_cast<T*>(static_cast<const Values*>(this)->data()); }
  const T* data() const {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return reinterpret_cast<const T*>((address + 63) & ~uintptr_t{63});
  }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }

 private:
  std::vector<T> storage_;
  int64_t count_ = 0;
};
using Floats = Values<float>;

// count values, mostly of ordinary size, with zeros, subnormals and large ones among them.
Floats random_floats(int64_t count, uint64_t seed, float scale = 1.0f);

struct Quantised {
  explicit Quantised(int64_t tokens, int64_t width)
      : q(tokens * width), d(tokens * width / 32), s(tokens * width / 32), isum(tokens * width / 32) {}
  ActivationsQ8 view() { return {q.data(), d.data(), s.data(), isum.data()}; }

  Values<int8_t> q;
  Floats d;
  Floats s;
  Values<int32_t> isum;
};

// Takes bytes into the digest of the case that runs.
void digest(const void* bytes, size_t size);

// "" or a sentence that begins with `what` and names the first place that differs.
template <typename T>
std::string compare(const Values<T>& expected, const Values<T>& actual, const std::string& what) {
  digest(expected.data(), static_cast<size_t>(expected.size()) * sizeof(T));
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&expected[i], &actual[i], sizeof(T)) != 0) {
      return what + ": value " + std::to_string(i) + " of " + std::to_string(expected.size()) + " is " +
             std::to_string(actual[i]) + ", expected " + std::to_string(expected[i]) + " (bytes differ)";
    }
  }
  return "";
}

std::string compare(const Quantised& expected, const Quantised& actual, const std::string& what);

// Row t of the candidate's result for T rows against the same row computed alone.
std::string compare_row(const Floats& all, int64_t t, const Floats& alone, const std::string& what);

}  // namespace driftwood::conformance

// Leaves the function with the first complaint that is not empty.
#define DW_RETURN_DIFFERENCE(expr)                                         \
  do {                                                                     \
    if (std::string dw_found = (expr); !dw_found.empty()) return dw_found; \
  } while (0)
