// Driftwood for C++ guests: owners for sessions and bytes over driftwood.h. Header only, no standard library, no
// exceptions. Methods keep the ABI's convention: a negative result is an error code.
#pragma once

#include "driftwood.h"

namespace dw {

// Bytes that free themselves.
class Text {
 public:
  Text() = default;
  ~Text() { dw_buffer_free(&buffer_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  Text& add(const char* text) {
    dw_buffer_text(&buffer_, text);
    return *this;
  }
  Text& add(const void* bytes, uint32_t length) {
    dw_buffer_append(&buffer_, bytes, length);
    return *this;
  }
  Text& integer(int64_t value) {
    dw_buffer_integer(&buffer_, value);
    return *this;
  }
  Text& number(double value) {
    dw_buffer_number(&buffer_, value);
    return *this;
  }
  Text& json(const char* text, uint32_t length) {
    dw_buffer_json(&buffer_, text, length);
    return *this;
  }
  void clear() { dw_buffer_clear(&buffer_); }
  const char* data() const { return buffer_.data; }
  uint32_t size() const { return buffer_.length; }
  dw_buffer* raw() { return &buffer_; }
  const dw_buffer* raw() const { return &buffer_; }

 private:
  dw_buffer buffer_{nullptr, 0, 0};
};

// Token ids that free themselves.
class Tokens {
 public:
  Tokens() = default;
  ~Tokens() { free(tokens_.ids); }
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;

  void push(int32_t id) { dw_tokens_push(&tokens_, id); }
  void clear() { tokens_.count = 0; }
  const int32_t* data() const { return tokens_.ids; }
  uint32_t size() const { return tokens_.count; }
  dw_tokens* raw() { return &tokens_; }

 private:
  dw_tokens tokens_{nullptr, 0, 0};
};

// An open session; closed with the object. Movable.
class Session {
 public:
  Session() = default;
  explicit Session(int32_t handle) : handle_(handle) {}
  ~Session() { close(); }
  Session(Session&& other) : handle_(other.release()) {}
  Session& operator=(Session&& other) {
    if (this != &other) {
      close();
      handle_ = other.release();
    }
    return *this;
  }

  static Session open(const dw_session_params& params) { return Session(dw_session_open(&params)); }
  bool valid() const { return handle_ > 0; }
  int32_t handle() const { return handle_; }
  int32_t release() {
    const int32_t handle = handle_;
    handle_ = 0;
    return handle;
  }
  void close() {
    if (handle_ > 0) dw_session_close(handle_);
    handle_ = 0;
  }

  Session fork(uint64_t stream) const { return Session(dw_session_fork(handle_, stream)); }
  int32_t append(const int32_t* ids, uint32_t count) { return dw_session_append(handle_, ids, count); }
  int32_t append(int32_t id) { return dw_session_append(handle_, &id, 1); }
  int32_t truncate(int64_t length) { return dw_session_truncate(handle_, length); }
  int64_t length() const { return dw_session_length(handle_); }
  int32_t step() { return dw_step(handle_); }
  int32_t sample() { return dw_sample(handle_); }
  int32_t logits(float* out, uint32_t capacity) const { return dw_logits(handle_, out, capacity); }
  int32_t generate(const dw_generate_params& params, int64_t tag) { return dw_generate(handle_, &params, tag); }

 private:
  int32_t handle_ = 0;
};

}  // namespace dw
