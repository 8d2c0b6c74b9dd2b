// Test support: writes GGUF and safetensors byte by byte, so that tests can break any field; and a folder
// that goes away with the test.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace driftwood::format {

class Bytes {
 public:
  template <typename T>
  Bytes& number(T x) {
    const auto* p = reinterpret_cast<const char*>(&x);
    text_.append(p, sizeof(T));
    return *this;
  }
  Bytes& u32(uint32_t x) { return number(x); }
  Bytes& u64(uint64_t x) { return number(x); }
  Bytes& raw(const std::string& s) {
    text_ += s;
    return *this;
  }
  // GGUF string.
  Bytes& string(const std::string& s) { return u64(s.size()).raw(s); }
  Bytes& pad(size_t alignment) {
    text_.resize((text_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  const std::string& text() const { return text_; }
  std::vector<uint8_t> bytes() const { return {text_.begin(), text_.end()}; }

 private:
  std::string text_;
};

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> dims;  // innermost first, as in the file
  uint32_t type = 0;
  uint64_t offset = 0;
};

struct GgufParts {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<std::string> keys;  // encoded
  std::vector<GgufTensor> tensors;
  uint64_t alignment = 32;
  uint64_t data_bytes = 0;
  int64_t tensor_count = -1;  // claimed; -1: the truth
  int64_t key_count = -1;

  std::string build() const {
    Bytes b;
    b.raw(magic).u32(version);
    b.u64(tensor_count >= 0 ? static_cast<uint64_t>(tensor_count) : tensors.size());
    b.u64(key_count >= 0 ? static_cast<uint64_t>(key_count) : keys.size());
    for (const std::string& key : keys) b.raw(key);
    for (const GgufTensor& t : tensors) {
      b.string(t.name).u32(static_cast<uint32_t>(t.dims.size()));
      for (const uint64_t d : t.dims) b.u64(d);
      b.u32(t.type).u64(t.offset);
    }
    if (!tensors.empty()) b.pad(static_cast<size_t>(alignment));
    for (uint64_t i = 0; i < data_bytes; ++i) b.raw(std::string(1, static_cast<char>(i * 37 + 11)));
    return b.text();
  }
};

inline std::string u32_key(const std::string& name, uint32_t value) {
  return Bytes().string(name).u32(4).u32(value).text();
}
inline std::string string_key(const std::string& name, const std::string& value) {
  return Bytes().string(name).u32(8).string(value).text();
}

inline std::string safetensors(const std::string& header, size_t data_bytes) {
  return Bytes().u64(header.size()).raw(header).raw(std::string(data_bytes, '\x11')).text();
}

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dw_format_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& contents) const {
    const std::string file = path_ + "/" + name;
    std::ofstream out(file, std::ios::binary);
    out << contents;
    EXPECT_TRUE(out.good());
    return file;
  }

 private:
  std::string path_;
};

}  // namespace driftwood::format
