// ByteReader: a cursor over untrusted bytes. Every read is checked; a failed read leaves the cursor where it
// was.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace driftwood::format {

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  // A little-endian number or IEEE float.
  template <typename T>
  bool read(T* out) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  bool read_bytes(uint64_t length, std::string_view* out) {
    if (length > remaining()) return false;
    *out = {reinterpret_cast<const char*>(bytes_.data()) + position_, static_cast<size_t>(length)};
    position_ += static_cast<size_t>(length);
    return true;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
};

}  // namespace driftwood::format
