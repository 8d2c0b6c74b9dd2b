// FrozenSession: one session as a value. Engine::freeze makes it, Engine::thaw goes on from it bit for bit,
// in the same engine or another, on any instruction set of the same numerics id; a snapshot writes and reads
// it.
//
// Layout. `tokens` are all appended ids; the first `computed` of them are in KV, the rest are pending and are
// computed by the next step. kv_blocks[i] holds tokens [32 i, 32 i + 32): block_bytes bytes, K and V of every
// layer as identity.kv_geometry says (kv/kv_layout.h), elements little-endian. There are
// ceil(computed / 32) of them; bytes past `computed` and the padding are zero. Instead of kv_blocks there may
// be kv_files, which say where in immutable files those very bytes lie: thaw() maps them, whatever their
// number, and they come in when touched (a device that needs memory of its own reads them). `logits` are V
// floats, those of the last token, if nothing is pending and they were there to be asked for: so sampling
// goes on without a token computed again. A sampler has no state but its parameters: a draw is a function of
// (seed, stream, position), and penalties read `tokens`.
//
// Ownership: the KV bytes belong to whatever `kv_owner` keeps alive: pinned blocks of an engine's pool (which
// neither change nor go while it lives, whatever becomes of session and engine, and count as in use), a copy
// (copy_kv, read_kv), or a reader's mapping. With kv_files it keeps the descriptors open, which nobody needs
// any more once thaw() has returned. Copying a FrozenSession copies ids and shares logits and KV.
//
// Threads: a value. Dropping the last copy of what freeze() made takes the engine's lock for a moment, so not
// inside a LogitsSink's call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "region/region.h"
#include "sampler/sampler.h"

namespace driftwood::engine {

// What must be equal for a session to go on with the same bits; compared as text.
struct SessionIdentity {
  std::string model_fingerprint;  // hex, of the checkpoint
  std::string numerics_id;        // "portable-1"
  std::string kv_format;          // "kv-f16"
  std::string kv_geometry;        // tokens a block, layers, shapes, block_bytes
  std::string rope;               // every rope parameter; with the context where the scaling depends on it
};

// What kv_geometry says, as numbers, for readers of the bytes.
struct KvShape {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  DType dtype = DType::kF16;
};

// A row of logits that all who hold it share and nobody writes.
class LogitsRow {
 public:
  LogitsRow() = default;
  LogitsRow(std::vector<float> row)  // NOLINT(google-explicit-constructor): a row is made from its values
      : row_(std::make_shared<const std::vector<float>>(std::move(row))) {}
  explicit LogitsRow(std::shared_ptr<const std::vector<float>> row) : row_(std::move(row)) {}

  bool empty() const { return size() == 0; }
  size_t size() const { return row_ == nullptr ? 0 : row_->size(); }
  const float* data() const { return row_ == nullptr ? nullptr : row_->data(); }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size(); }
  const float& operator[](size_t i) const { return (*row_)[i]; }
  const std::shared_ptr<const std::vector<float>>& share() const { return row_; }

 private:
  std::shared_ptr<const std::vector<float>> row_;
};

struct FrozenSession {
  SessionIdentity identity;
  KvShape kv_shape;
  int64_t max_tokens = 0;
  std::vector<int32_t> tokens;
  int64_t computed = 0;
  sampler::SamplerParams sampling;
  bool has_logits = false;
  LogitsRow logits;  // [V] or empty

  int64_t block_bytes = 0;
  std::vector<std::span<const uint8_t>> kv_blocks;
  // Instead of kv_blocks: one entry a block, in order, each block_bytes long, offset a multiple of 64 KiB (fd
  // -1: zeros). Blocks that follow each other in a file are mapped together.
  std::vector<region::FileImage> kv_files;
  std::shared_ptr<const void> kv_owner;  // keeps bytes alive or descriptors open

  int64_t kv_bytes() const { return static_cast<int64_t>(kv_blocks.size() + kv_files.size()) * block_bytes; }
};

// Gives `frozen` KV bytes of its own, so that blocks it has pinned are free again. KV in files stays there.
void copy_kv(FrozenSession* frozen);

// The sampler stream of a fork: `stream` 0 keeps the parent's, any other gives one of its own.
uint64_t forked_stream(uint64_t parent_stream, uint64_t stream);

// Turns kv_files into kv_blocks by reading them; the descriptors are no longer needed then. Errors name the
// block and leave `frozen` as it was: invalid_argument for one that is not block_bytes long, data_loss for a
// file that ends before its block does.
Status read_kv(FrozenSession* frozen);

// The limits of the engine that is to take a session.
struct ThawLimits {
  int64_t vocab_size = 0;
  int64_t max_context = 0;
  int64_t block_bytes = 0;
};

// failed_precondition: names the first field that differs, what the session has and what is wanted here.
Status check_identity(const SessionIdentity& frozen, const SessionIdentity& here);

// invalid_argument naming the field that contradicts itself or the limits. Reads no KV byte and asks no file.
Status check_contents(const FrozenSession& frozen, const ThawLimits& limits);

}  // namespace driftwood::engine
