// GuestCall: one host call as the functions in calls_*.cc see it: arguments, checked memory, results, errors.
//
// A call is a function `int64_t name(GuestCall&)`; DW_HOST_CALL makes the wasm::HostFunction of it. Its
// result is the guest's: a count or handle, or what fail() returns. Lives on the stack for the duration of
// the call and costs nothing that the call does not use: no lock, no allocation.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "actor/context.h"

namespace driftwood::actor {

class GuestCall {
 public:
  GuestCall(wasm::CallContext& context, const uint64_t* args, const char* name)
      : context_(context), args_(args), name_(name) {}

  ActorContext& actor() { return *static_cast<ActorContext*>(context_.user()); }
  const char* name() const { return name_; }
  wasm::Instance& instance() { return context_.instance(); }

  uint32_t u32(int index) const { return static_cast<uint32_t>(args_[index]); }
  int32_t i32(int index) const { return static_cast<int32_t>(args_[index]); }
  int64_t i64(int index) const { return static_cast<int64_t>(args_[index]); }

  // Guest bytes [offset, offset + length). False: they are outside the memory and the actor is now trapped,
  // so the call must return at once.
  bool memory(uint64_t offset, uint64_t length, std::span<uint8_t>* bytes) {
    uint8_t* base = instance().bytes(offset, length);
    if (base == nullptr) [[unlikely]] {
      trap_outside(offset, length);
      return false;
    }
    *bytes = {base, static_cast<size_t>(length)};
    return true;
  }
  // The same with offset and length from arguments `index` and `index + 1`.
  bool memory_at(int index, std::span<uint8_t>* bytes) { return memory(u32(index), u32(index + 1), bytes); }
  bool text_at(int index, std::string_view* text) {
    std::span<uint8_t> bytes;
    if (!memory_at(index, &bytes)) return false;
    *text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }
  // `count` elements of T. kMisaligned needs fail(misaligned()).
  enum class Array { kOk, kTrapped, kMisaligned };
  template <typename T>
  Array array(uint64_t offset, uint64_t count, std::span<T>* elements) {
    std::span<uint8_t> bytes;
    if (!memory(offset, count * sizeof(T), &bytes)) return Array::kTrapped;  // count < 2^32: no overflow
    if (offset % sizeof(T) != 0) return Array::kMisaligned;
    *elements = {reinterpret_cast<T*>(bytes.data()), static_cast<size_t>(count)};
    return Array::kOk;
  }
  Status misaligned(std::string_view what, uint64_t offset, size_t alignment) const;
  // A struct that begins with its size, copied out. False: trapped, or *error set.
  template <typename T>
  bool structure(uint64_t offset, T* value, Status* error) {
    std::span<uint8_t> bytes;
    if (!memory(offset, sizeof(T), &bytes)) return false;
    std::memcpy(value, bytes.data(), sizeof(T));
    return check_size(value->size, sizeof(T), error);
  }

  // Writes what fits into the buffer of arguments (index, index + 1) and returns the full length.
  int64_t fill(int index, std::span<const uint8_t> bytes);
  int64_t fill(int index, std::string_view text) {
    return fill(index, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  // Keeps the text for last_error() and returns the negative code.
  int64_t fail(const Status& status);
  int64_t result(const Status& status) { return status.is_ok() ? 0 : fail(status); }

  // After a wait for the model: that time is not the guest's, its deadline starts anew.
  void waited() { instance().rearm_deadline(); }

 private:
  void trap_outside(uint64_t offset, uint64_t length);
  bool check_size(uint32_t found, size_t expected, Status* error) const;

  wasm::CallContext& context_;
  const uint64_t* args_;
  const char* name_;
};

#define DW_HOST_CALL(function)                                                           \
  [](::driftwood::wasm::CallContext& context, const uint64_t* args, uint64_t* results) { \
    ::driftwood::actor::GuestCall call(context, args, #function);                        \
    results[0] = static_cast<uint64_t>(function(call));                                  \
  }

// The groups of the table, one per calls_*.cc.
std::span<const HostCall> info_calls();
std::span<const HostCall> text_calls();
std::span<const HostCall> session_calls();
std::span<const HostCall> generate_calls();
std::span<const HostCall> message_calls();
std::span<const HostCall> tensor_calls();
std::span<const HostCall> timer_calls();
std::span<const HostCall> state_calls();

// What several groups need (calls_session.cc).
// The session of handle argument 0, or null with *error set. `change`: it must not be generating.
Session* session_argument(GuestCall& call, bool change, Status* error);

}  // namespace driftwood::actor
