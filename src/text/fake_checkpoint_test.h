// A checkpoint without a file, for tests: keys and side files as the test sets them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/checkpoint.h"

namespace driftwood::text {

inline format::MetadataValue meta_text(std::string text) {
  format::MetadataValue value;
  value.kind = format::MetadataValue::Kind::kString;
  value.string = std::move(text);
  return value;
}

inline format::MetadataValue meta_int(int64_t number) {
  format::MetadataValue value;
  value.kind = format::MetadataValue::Kind::kInt;
  value.integer = number;
  value.number = static_cast<double>(number);
  return value;
}

inline format::MetadataValue meta_array(format::MetadataArray items) {
  format::MetadataValue value;
  value.kind = format::MetadataValue::Kind::kArray;
  value.array = std::move(items);
  return value;
}

inline format::MetadataValue meta_texts(const std::vector<std::string>& texts) {
  format::MetadataArray items;
  for (const std::string& text : texts) items.push_back(meta_text(text));
  return meta_array(std::move(items));
}

class FakeCheckpoint final : public format::Checkpoint {
 public:
  explicit FakeCheckpoint(format::FileFormat format) : format_(format) {}
  std::map<std::string, format::MetadataValue> keys;
  std::map<std::string, std::string> files;

  format::FileFormat format() const override { return format_; }
  const std::string& path() const override { return path_; }
  const std::vector<format::TensorInfo>& tensors() const override { return tensors_; }
  const format::TensorInfo* find(const std::string&) const override { return nullptr; }
  int64_t total_tensor_bytes() const override { return 0; }
  const format::MetadataValue* metadata(const std::string& key) const override {
    const auto found = keys.find(key);
    return found == keys.end() ? nullptr : &found->second;
  }
  Result<std::string> side_file(const std::string& name) const override {
    const auto found = files.find(name);
    if (found == files.end()) return not_found(path_ + ": no " + name);
    return found->second;
  }
  std::string fingerprint_hex() const override { return std::string(64, '0'); }
  std::string file_stamp() const override { return {}; }
  void drop_pages(const format::TensorInfo&) const override {}

 private:
  format::FileFormat format_;
  std::string path_ = "fake.gguf";
  std::vector<format::TensorInfo> tensors_;
};

}  // namespace driftwood::text
