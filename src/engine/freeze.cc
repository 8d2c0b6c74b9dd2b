// freeze() and thaw(): a session to a value and back. The lock is held for bookkeeping only; bytes are copied
// and mapped while the session is busy (freeze) or not yet in the table (thaw).
#include <algorithm>
#include <cstring>

#include "engine/engine_impl.h"

namespace driftwood::engine {

SessionIdentity EngineImpl::identity(int64_t max_tokens) const {
  SessionIdentity identity;
  identity.model_fingerprint = model_->fingerprint_hex;
  identity.numerics_id = device_->info().numerics_id;
  identity.kv_format = pool_->layout().format_id();
  identity.kv_geometry = pool_->layout().geometry();
  identity.rope = model_->config.rope_identity;
  if (model::depends_on_context(model_->config.rope)) {
    identity.rope += " context=" + std::to_string(max_tokens);
  }
  return identity;
}

// What the debug arithmetic made must not pass for what the numerics id promises.
Status EngineImpl::check_arithmetic() const {
  if (!runner_->options().f32_activations) return Status::ok();
  return failed_precondition(
      "this engine multiplies by f32 activations, a debug arithmetic that numerics id \"" +
      device_->info().numerics_id +
      "\" does not name; its sessions can't be frozen or "
      "thawed");
}

Result<FrozenSession> EngineImpl::freeze(SessionId id) {
  DW_RETURN_IF_ERROR(check_arithmetic());
  const int64_t block_bytes = pool_->layout().block_bytes();
  Session* session = nullptr;
  std::shared_ptr<KvPin> pin;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    DW_ASSIGN_OR_RETURN(session, idle(id));
    const int64_t full = session->computed / kKvBlockTokens;
    pin = std::make_shared<KvPin>(share_,
                                  std::vector<int32_t>(session->table.ids(), session->table.ids() + full));
    for (int32_t block : pin->ids()) pool_->retain(block);
    session->busy = true;
  }
  FrozenSession frozen;
  frozen.identity = identity(session->max_tokens);
  const kv::KvLayout& layout = pool_->layout();
  frozen.kv_shape = {layout.layers(), layout.kv_heads(), layout.head_dim(), layout.dtype()};
  frozen.max_tokens = session->max_tokens;
  frozen.tokens = session->tokens;
  frozen.computed = session->computed;
  frozen.sampling = session->sampler.params();
  frozen.has_logits = session->has_logits && session->pending() == 0;
  if (frozen.has_logits) {
    frozen.logits = LogitsRow(session->logits);
    session->own_logits = nullptr;
  }
  frozen.block_bytes = block_bytes;
  for (int32_t block : pin->ids()) {
    frozen.kv_blocks.emplace_back(pool_->block(block), static_cast<size_t>(block_bytes));
  }
  copy_tail(*session, pin.get());
  if (!pin->tail().empty()) frozen.kv_blocks.emplace_back(pin->tail());
  frozen.kv_owner = std::move(pin);
  std::lock_guard<std::mutex> lock(mutex_);
  session->busy = false;
  return frozen;
}

// A last block that is not full goes on being written by its session, and holds bytes that are nobody's
// business past its tokens: it is copied and cleaned.
void EngineImpl::copy_tail(const Session& session, KvPin* pin) const {
  const int64_t rest = session.computed % kKvBlockTokens;
  if (rest == 0) return;
  const uint8_t* block = pool_->block(session.table.ids()[session.computed / kKvBlockTokens]);
  pin->tail().assign(block, block + pool_->layout().block_bytes());
  pool_->layout().zero_tokens_from(pin->tail().data(), rest);
}

Status EngineImpl::load_kv(const FrozenSession& frozen, const Session& session) {
  const int32_t* const ids = session.table.ids();
  if (!frozen.kv_files.empty()) {
    return pool_->load_files({ids, frozen.kv_files.size()}, frozen.kv_files, frozen.computed);
  }
  for (size_t b = 0; b < frozen.kv_blocks.size(); ++b) {
    const int64_t held = frozen.computed - static_cast<int64_t>(b) * kKvBlockTokens;
    pool_->load(ids[b], frozen.kv_blocks[b], std::min<int64_t>(held, kKvBlockTokens));
  }
  return Status::ok();
}

Result<SessionId> EngineImpl::thaw(const FrozenSession& frozen) {
  DW_RETURN_IF_ERROR(check_arithmetic());
  DW_RETURN_IF_ERROR(check_identity(frozen.identity, identity(frozen.max_tokens)));
  DW_RETURN_IF_ERROR(
      check_contents(frozen, {model_->config.vocab_size, max_context_, pool_->layout().block_bytes()}));
  DW_RETURN_IF_ERROR(pool_->check_files(frozen.kv_files).with_context("frozen session"));

  std::unique_ptr<Session> session;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    session = std::make_unique<Session>(next_id_, SessionOptions{frozen.max_tokens, frozen.sampling},
                                        frozen.max_tokens);
    DW_RETURN_IF_ERROR(session->table.prepare(pool_, 0, frozen.computed).with_context("thawing a session"));
    session->inv_freq = frequencies_for(frozen.max_tokens);
    ++next_id_;
  }
  session->tokens.assign(frozen.tokens.begin(), frozen.tokens.end());
  session->computed = frozen.computed;
  session->has_logits = frozen.has_logits;
  session->logits = frozen.logits.share();
  const Status loaded = load_kv(frozen, *session);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!loaded.is_ok()) {
    session->table.clear(pool_);
    return loaded.with_context("thawing a session");
  }
  const SessionId id = session->id;
  sessions_.emplace(id, std::move(session));
  return id;
}

}  // namespace driftwood::engine
