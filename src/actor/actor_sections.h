// An actor as the sections of a snapshot (docs/formats/snapshot.md, "An actor"), and back.
//
// describe_actor() turns a frozen actor into what a store or a file takes; read_actor() makes the frozen
// actor of a stored snapshot again, without touching memory pages or KV: those stay where they are until
// somebody maps them. Errors of reading name section, attribute or tensor: nothing in a file is taken for
// granted.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actor/frozen_actor.h"
#include "region/region.h"
#include "snapshot/store.h"

namespace driftwood::actor {

snapshot::Identity identity_of(const FrozenActor& frozen);
ActorIdentity identity_from(const snapshot::Identity& identity);

// Digests of KV blocks that were hashed before, by where the block lies. True as long as the block is pinned.
using KnownBlocks = std::map<const uint8_t*, snapshot::Digest>;

// The sections, and the buffers that they borrow beside those of `frozen`, which outlives this.
class DescribedActor {
 public:
  const snapshot::SnapshotContents& contents() const { return contents_; }

 private:
  friend Result<std::unique_ptr<DescribedActor>> describe_actor(const FrozenActor&, const snapshot::Origin&,
                                                                const KnownBlocks&);
  DescribedActor() = default;
  void add_actor(const FrozenActor& frozen);
  void add_mailbox(const FrozenActor& frozen);
  void add_module(const FrozenActor& frozen);
  void add_globals(const FrozenActor& frozen);
  Status add_memory(const FrozenActor& frozen);
  Status add_session(const FrozenActor& frozen, size_t slot, size_t session, const KnownBlocks& known);
  Status add_kv(const FrozenActor& frozen, size_t session, const KnownBlocks& known,
                snapshot::Section* section);
  // Those bytes once more, to be read from.
  Result<region::Region*> map(std::span<const region::FileImage> pieces, uint64_t bytes);
  // Keeps the bytes until this goes.
  snapshot::ByteSpan keep(std::vector<uint8_t> bytes);

  snapshot::SnapshotContents contents_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> buffers_;
  std::vector<std::unique_ptr<region::Region>> mappings_;  // of memory, and of KV that lies in files
};

Result<std::unique_ptr<DescribedActor>> describe_actor(const FrozenActor& frozen,
                                                       const snapshot::Origin& origin,
                                                       const KnownBlocks& known = {});

// `module` of the result stays null; module_code() gives its bytes.
Result<std::shared_ptr<FrozenActor>> read_actor(std::shared_ptr<const snapshot::StoredSnapshot> stored);
// Whether read_actor() will take what a portable file holds, once that is in a store.
Status check_portable(const snapshot::Snapshot& file);
Result<std::vector<uint8_t>> module_code(const snapshot::StoredSnapshot& stored);

// Names that writer and reader share.
namespace names {
inline constexpr char kActor[] = "actor";
inline constexpr char kMailbox[] = "mailbox";
inline constexpr char kModule[] = "module";
inline constexpr char kGlobals[] = "globals";
inline constexpr char kMemory[] = "memory";
inline constexpr char kSession[] = "session.";  // and the number of the slot
}  // namespace names

inline constexpr uint64_t kMemoryPieceBytes = 64 * 1024;

// One number of ActorLimits, by its name in the file.
struct LimitField {
  const char* name;
  int64_t (*get)(const ActorLimits&);
  void (*set)(ActorLimits*, int64_t);
};
std::span<const LimitField> limit_fields();

}  // namespace driftwood::actor
