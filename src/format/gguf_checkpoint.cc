// GGUF as a Checkpoint.
#include <mutex>
#include <unordered_map>

#include "format/file_stamp_text.h"
#include "format/fingerprint.h"
#include "format/gguf.h"

namespace driftwood::format {
namespace {

class GgufCheckpoint final : public Checkpoint {
 public:
  GgufCheckpoint(std::shared_ptr<const os::MappedFile> file, GgufContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {
    for (const TensorInfo& t : contents_.tensors) {
      by_name_.emplace(t.name, &t);
      total_bytes_ += static_cast<int64_t>(t.bytes.size());
    }
  }

  FileFormat format() const override { return FileFormat::kGguf; }
  const std::string& path() const override { return file_->path(); }
  const std::vector<TensorInfo>& tensors() const override { return contents_.tensors; }
  int64_t total_tensor_bytes() const override { return total_bytes_; }

  const TensorInfo* find(const std::string& name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  const MetadataValue* metadata(const std::string& key) const override {
    const auto found = contents_.metadata.find(key);
    return found == contents_.metadata.end() ? nullptr : &found->second;
  }

  Result<std::string> side_file(const std::string& name) const override {
    return not_found(path() + ": a GGUF file has no side file '" + name + "'");
  }

  std::string fingerprint_hex() const override {
    std::call_once(fingerprint_once_, [this] {
      const auto keys =
          file_->bytes().subspan(contents_.metadata_begin, contents_.metadata_end - contents_.metadata_begin);
      fingerprint_ = fingerprint(FileFormat::kGguf, {{"metadata", keys}}, contents_.tensors);
    });
    return fingerprint_;
  }

  std::string file_stamp() const override { return file_stamp_text(file_->stamp()); }
  void drop_pages(const TensorInfo& tensor) const override { file_->drop_pages(tensor.bytes); }

 private:
  std::shared_ptr<const os::MappedFile> file_;
  GgufContents contents_;
  std::unordered_map<std::string, const TensorInfo*> by_name_;
  int64_t total_bytes_ = 0;
  mutable std::once_flag fingerprint_once_;
  mutable std::string fingerprint_;
};

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_gguf(std::shared_ptr<const os::MappedFile> file) {
  DW_ASSIGN_OR_RETURN(GgufContents contents, parse_gguf(file->bytes(), file->path()));
  return std::shared_ptr<const Checkpoint>(
      std::make_shared<GgufCheckpoint>(std::move(file), std::move(contents)));
}

}  // namespace driftwood::format
