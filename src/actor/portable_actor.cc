// A portable file looked at as if it were in a store already: what an import asks before it writes anything.
#include <cstring>
#include <map>

#include "actor/actor_sections.h"

namespace driftwood::actor {
namespace {

using snapshot::StoredTensor;

// Pages and KV are zeros here: nobody who reads an actor's description looks at them.
class PortableSnapshot final : public snapshot::StoredSnapshot {
 public:
  explicit PortableSnapshot(const snapshot::Snapshot& file) : file_(file), hash_(file.hash()) {
    const uint64_t page = region::os_page_bytes();
    for (const snapshot::StoredSection& section : file.sections()) {
      for (const StoredTensor& t : section.tensors) {
        if (t.piece_bytes != 0) images_[&t] = {-1, 0, (t.bytes.size() + page - 1) / page * page};
      }
    }
  }
  const std::string& hash() const override { return hash_; }
  const snapshot::Identity& identity() const override { return file_.identity(); }
  const snapshot::Origin& origin() const override { return file_.origin(); }
  const std::vector<snapshot::StoredSection>& sections() const override { return file_.sections(); }
  const snapshot::StoredSection* find(std::string_view section) const override { return file_.find(section); }
  std::span<const region::FileImage> pieces(const StoredTensor& tensor) const override {
    return {&images_.at(&tensor), 1};
  }
  std::span<const snapshot::Digest> digests(const StoredTensor& tensor) const override {
    const snapshot::ByteSpan hashes = tensor.piece_hashes;
    return {reinterpret_cast<const snapshot::Digest*>(hashes.data()),
            hashes.size() / sizeof(snapshot::Digest)};
  }
  Status read(const StoredTensor& tensor, uint64_t offset, std::span<uint8_t> out) const override {
    DW_CHECK(offset <= tensor.bytes.size() && out.size() <= tensor.bytes.size() - offset,
             "a read within the tensor");
    if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data() + offset, out.size());
    return Status::ok();
  }

 private:
  const snapshot::Snapshot& file_;
  const std::string hash_;
  std::map<const StoredTensor*, region::FileImage> images_;
};

}  // namespace

Status check_portable(const snapshot::Snapshot& file) {
  return read_actor(std::make_shared<const PortableSnapshot>(file)).status();
}

}  // namespace driftwood::actor
