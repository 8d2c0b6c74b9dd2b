#include "engine/frozen_session.h"

#include <cstring>

#include "base/rng.h"
#include "kv/kv_layout.h"
#include "region/image_file.h"

namespace driftwood::engine {
namespace {

Status bad(const std::string& what) { return invalid_argument("frozen session: " + what); }

Status check_tokens(const FrozenSession& frozen, const ThawLimits& limits) {
  const auto length = static_cast<int64_t>(frozen.tokens.size());
  if (frozen.max_tokens < 1 || frozen.max_tokens > limits.max_context) {
    return bad("max_tokens is " + std::to_string(frozen.max_tokens) + ", the engine allows 1 to " +
               std::to_string(limits.max_context));
  }
  if (length > frozen.max_tokens) {
    return bad("it has " + std::to_string(length) + " tokens, more than its max_tokens, " +
               std::to_string(frozen.max_tokens));
  }
  for (size_t i = 0; i < frozen.tokens.size(); ++i) {
    if (frozen.tokens[i] >= 0 && frozen.tokens[i] < limits.vocab_size) continue;
    return bad("token " + std::to_string(i) + " has the id " + std::to_string(frozen.tokens[i]) +
               ", the vocabulary has " + std::to_string(limits.vocab_size));
  }
  if (frozen.computed < 0 || frozen.computed > length) {
    return bad("computed is " + std::to_string(frozen.computed) + " of " + std::to_string(length) +
               " tokens");
  }
  return Status::ok();
}

Status check_logits(const FrozenSession& frozen, const ThawLimits& limits) {
  const auto wanted = frozen.has_logits ? limits.vocab_size : 0;
  if (static_cast<int64_t>(frozen.logits.size()) != wanted) {
    return bad("it has " + std::to_string(frozen.logits.size()) + " logits, expected " +
               std::to_string(wanted));
  }
  const auto length = static_cast<int64_t>(frozen.tokens.size());
  if (frozen.has_logits && (length == 0 || frozen.computed != length)) {
    return bad("it has logits of a last token, but " + std::to_string(frozen.computed) + " of " +
               std::to_string(length) + " tokens are computed");
  }
  return Status::ok();
}

Status check_kv_files(const FrozenSession& frozen) {
  for (size_t i = 0; i < frozen.kv_files.size(); ++i) {
    const region::FileImage& image = frozen.kv_files[i];
    if (static_cast<int64_t>(image.length) != frozen.block_bytes) {
      return bad("KV block " + std::to_string(i) + " has " + std::to_string(image.length) +
                 " bytes in its file, expected " + std::to_string(frozen.block_bytes));
    }
    if (image.fd >= 0 && image.offset % region::kImageAlignment != 0) {
      return bad("KV block " + std::to_string(i) + " begins at offset " + std::to_string(image.offset) +
                 " of its file: it must be a multiple of " + std::to_string(region::kImageAlignment));
    }
  }
  return Status::ok();
}

Status check_kv(const FrozenSession& frozen, const ThawLimits& limits) {
  if (frozen.block_bytes != limits.block_bytes) {
    return bad("block_bytes is " + std::to_string(frozen.block_bytes) + ", blocks here have " +
               std::to_string(limits.block_bytes));
  }
  if (!frozen.kv_blocks.empty() && !frozen.kv_files.empty()) {
    return bad("it has " + std::to_string(frozen.kv_blocks.size()) + " KV blocks in memory and " +
               std::to_string(frozen.kv_files.size()) + " in files; all must lie in one kind of place");
  }
  const int64_t blocks = kv::blocks_for(frozen.computed);
  const size_t found = frozen.kv_blocks.size() + frozen.kv_files.size();
  if (static_cast<int64_t>(found) != blocks) {
    return bad("it has " + std::to_string(found) + " KV blocks, " + std::to_string(frozen.computed) +
               " tokens take " + std::to_string(blocks));
  }
  for (size_t i = 0; i < frozen.kv_blocks.size(); ++i) {
    const auto size = static_cast<int64_t>(frozen.kv_blocks[i].size());
    if (size == limits.block_bytes) continue;
    return bad("KV block " + std::to_string(i) + " has " + std::to_string(size) + " bytes, expected " +
               std::to_string(limits.block_bytes));
  }
  return check_kv_files(frozen);
}

}  // namespace

uint64_t forked_stream(uint64_t parent_stream, uint64_t stream) {
  return stream == 0 ? parent_stream : random_u64(parent_stream, stream, 0, 0);
}

void copy_kv(FrozenSession* frozen) {
  if (!frozen->kv_files.empty()) return;
  const auto block = static_cast<size_t>(frozen->block_bytes);
  auto copy = std::make_shared<std::vector<uint8_t>>(frozen->kv_blocks.size() * block);
  uint8_t* to = copy->data();
  for (std::span<const uint8_t>& bytes : frozen->kv_blocks) {
    DW_CHECK(bytes.size() == block, "a frozen KV block has block_bytes bytes");
    std::memcpy(to, bytes.data(), block);
    bytes = {to, block};
    to += block;
  }
  frozen->kv_owner = std::move(copy);
}

Status read_kv(FrozenSession* frozen) {
  if (frozen->kv_files.empty()) return Status::ok();
  DW_RETURN_IF_ERROR(check_kv_files(*frozen));
  const auto block = static_cast<size_t>(frozen->block_bytes);
  auto bytes = std::make_shared<std::vector<uint8_t>>(frozen->kv_files.size() * block);
  std::vector<std::span<const uint8_t>> blocks;
  for (size_t i = 0; i < frozen->kv_files.size(); ++i) {
    uint8_t* const to = bytes->data() + i * block;
    DW_RETURN_IF_ERROR(region::read_image(frozen->kv_files[i], to)
                           .with_context("frozen session: KV block " + std::to_string(i)));
    blocks.emplace_back(to, block);
  }
  frozen->kv_blocks = std::move(blocks);
  frozen->kv_files.clear();
  frozen->kv_owner = std::move(bytes);
  return Status::ok();
}

Status check_identity(const SessionIdentity& frozen, const SessionIdentity& here) {
  struct Field {
    const char* name;
    std::string SessionIdentity::* value;
  };
  static constexpr Field kFields[] = {{"model fingerprint", &SessionIdentity::model_fingerprint},
                                      {"numerics id", &SessionIdentity::numerics_id},
                                      {"KV format", &SessionIdentity::kv_format},
                                      {"KV geometry", &SessionIdentity::kv_geometry},
                                      {"rope", &SessionIdentity::rope}};
  for (const Field& field : kFields) {
    if (frozen.*field.value == here.*field.value) continue;
    return failed_precondition("frozen session: its " + std::string(field.name) + " is \"" +
                               frozen.*field.value + "\", here it is \"" + here.*field.value + "\"");
  }
  return Status::ok();
}

Status check_contents(const FrozenSession& frozen, const ThawLimits& limits) {
  DW_RETURN_IF_ERROR(check_tokens(frozen, limits));
  DW_RETURN_IF_ERROR(sampler::validate(frozen.sampling, limits.vocab_size).with_context("frozen session"));
  DW_RETURN_IF_ERROR(check_logits(frozen, limits));
  return check_kv(frozen, limits);
}

}  // namespace driftwood::engine
