// Fuzzes the reading of an actor's sections: whatever stands in attributes and tensors, the answer is an
// actor or an error.
//
// Input is lines, so that mutations stay meaningful (tests/corpus/sections_fuzz):
//   S name            a section
//   A key=value       an attribute of it
//   T name dtype shape hex   a tensor: dtype by its safetensors name, dimensions joined by x, bytes (cut or
//   padded to fit) P name dtype shape piece_bytes   one that is hashed in pieces
#include <algorithm>
#include <string>

#include "actor/actor_sections.h"
#include "snapshot/container.h"

namespace driftwood::actor {
namespace {

std::string_view take_word(std::string_view* line) {
  const size_t end = line->find(' ');
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end == std::string_view::npos ? line->size() : end + 1);
  return word;
}

bool dtype_of(std::string_view name, DType* dtype) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    *dtype = static_cast<DType>(i);
    if (dtype_name(*dtype) == name) return true;
  }
  return false;
}

class LineSnapshot final : public snapshot::StoredSnapshot {
 public:
  explicit LineSnapshot(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      add(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    size_t next = 0;
    for (snapshot::StoredSection& section : sections_) {
      for (snapshot::StoredTensor& tensor : section.tensors) tensor.bytes = buffers_[next++];
    }
  }
  const std::string& hash() const override { return hash_; }
  const snapshot::Identity& identity() const override { return identity_; }
  const snapshot::Origin& origin() const override { return origin_; }
  const std::vector<snapshot::StoredSection>& sections() const override { return sections_; }
  const snapshot::StoredSection* find(std::string_view name) const override {
    const auto found =
        std::find_if(sections_.begin(), sections_.end(), [&](const auto& s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
  }
  std::span<const region::FileImage> pieces(const snapshot::StoredTensor& tensor) const override {
    zeros_ = {-1, 0, static_cast<size_t>(*snapshot::tensor_bytes(tensor.dtype, tensor.shape))};
    return {&zeros_, 1};
  }
  std::span<const snapshot::Digest> digests(const snapshot::StoredTensor&) const override { return {}; }
  Status read(const snapshot::StoredTensor&, uint64_t, std::span<uint8_t> out) const override {
    std::fill(out.begin(), out.end(), uint8_t{0});
    return Status::ok();
  }

 private:
  void add(std::string_view line) {
    const std::string_view kind = take_word(&line);
    if (kind == "S") {
      sections_.emplace_back();
      sections_.back().name = std::string(line);
    } else if (sections_.empty()) {
      return;
    } else if (kind == "A") {
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) return;
      sections_.back().attributes[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
    } else if (kind == "T" || kind == "P") {
      add_tensor(line, kind == "P");
    }
  }
  // What a real reader would have let through: a shape whose bytes are there.
  void add_tensor(std::string_view line, bool in_pieces) {
    snapshot::StoredTensor tensor;
    tensor.name = std::string(take_word(&line));
    if (!dtype_of(take_word(&line), &tensor.dtype)) return;
    std::string_view shape = take_word(&line);
    while (!shape.empty()) {
      const size_t end = shape.find('x');
      tensor.shape.push_back(std::atoll(std::string(shape.substr(0, end)).c_str()));
      shape.remove_prefix(end == std::string_view::npos ? shape.size() : end + 1);
    }
    const auto bytes = snapshot::tensor_bytes(tensor.dtype, tensor.shape);
    constexpr uint64_t kMostBytes = 1 << 20;
    if (!bytes) return;
    std::vector<uint8_t> content;
    if (in_pieces) {
      tensor.piece_bytes = static_cast<uint64_t>(std::atoll(std::string(line).c_str()));
      if (tensor.piece_bytes % snapshot::kMinPieceBytes != 0 ||
          tensor.piece_bytes > snapshot::kMaxPieceBytes || tensor.piece_bytes == 0 ||
          *bytes > kMostBytes * 64) {
        return;
      }
    } else {
      if (*bytes > kMostBytes) return;
      content.resize(*bytes);
      for (size_t i = 0; i + 1 < line.size() && i / 2 < content.size(); i += 2) {
        content[i / 2] =
            static_cast<uint8_t>(std::strtoul(std::string(line.substr(i, 2)).c_str(), nullptr, 16));
      }
    }
    // Buffers are in the order of tensors, over all sections.
    buffers_.push_back(std::move(content));
    sections_.back().tensors.push_back(std::move(tensor));
  }

  std::string hash_ = "hash";
  snapshot::Identity identity_;
  snapshot::Origin origin_;
  std::vector<snapshot::StoredSection> sections_;
  std::vector<std::vector<uint8_t>> buffers_;
  mutable region::FileImage zeros_;
};

}  // namespace
}  // namespace driftwood::actor

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace driftwood::actor;
  const auto stored =
      std::make_shared<const LineSnapshot>(std::string_view(reinterpret_cast<const char*>(data), size));
  const auto frozen = read_actor(stored);
  static_cast<void>(module_code(*stored));
  // What was accepted can be written again.
  if (frozen.is_ok() && (*frozen)->memory.image.memory_bytes <= (1u << 20)) {
    static_cast<void>(describe_actor(**frozen, {}));
  }
  return 0;
}
