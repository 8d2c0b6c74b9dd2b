#include "actor/compare.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "engine/continuity.h"
#include "region/region.h"

namespace driftwood::actor {
namespace {

using MappedBytes = std::unique_ptr<region::Region>;

Result<MappedBytes> memory_of(const FrozenActor& frozen) {
  const uint64_t bytes = frozen.memory.image.memory_bytes;
  DW_ASSIGN_OR_RETURN(MappedBytes view,
                      region::Region::create_on_file(frozen.memory.image.pieces, bytes, 0, bytes));
  for (const wasm::MemoryPatch& patch : frozen.memory.patches) {
    std::memcpy(view->base() + patch.offset, patch.bytes.data(), patch.bytes.size());
  }
  return view;
}

Result<std::string> memory_difference(const FrozenActor& a, const FrozenActor& b) {
  const uint64_t bytes = a.memory.image.memory_bytes;
  if (bytes != b.memory.image.memory_bytes) {
    return "memory size: " + std::to_string(bytes) + " against " +
           std::to_string(b.memory.image.memory_bytes);
  }
  if (bytes == 0) return std::string();
  DW_ASSIGN_OR_RETURN(const MappedBytes x, memory_of(a));
  DW_ASSIGN_OR_RETURN(const MappedBytes y, memory_of(b));
  if (std::memcmp(x->base(), y->base(), bytes) == 0) return std::string();
  const auto at = std::mismatch(x->base(), x->base() + bytes, y->base()).first - x->base();
  return "memory byte " + std::to_string(at);
}

bool same_generates(const GeneratesState& a, const GeneratesState& b) {
  const auto running = [](const Generate& g) {
    return std::tie(g.tag, g.serial, g.session, g.stop_at_end, g.max_tokens, g.produced);
  };
  const auto ended = [](const GenerateDone& d) {
    return std::tie(d.tag, d.session, d.reason, d.tokens, d.message);
  };
  return a.turn == b.turn && a.last_serial == b.last_serial &&
         std::equal(a.running.begin(), a.running.end(), b.running.begin(), b.running.end(),
                    [&](const auto& x, const auto& y) { return running(x) == running(y); }) &&
         std::equal(a.ended.begin(), a.ended.end(), b.ended.begin(), b.ended.end(),
                    [&](const auto& x, const auto& y) { return ended(x) == ended(y); });
}

bool same_slots(const std::vector<Session>& a, const std::vector<Session>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Session& x, const Session& y) {
    return x.handle == y.handle && x.generation == y.generation &&
           (x.handle == 0 || (x.capacity == y.capacity && x.generating == y.generating &&
                              x.masked == y.masked && (!x.masked || x.mask == y.mask)));
  });
}

std::string life_difference(const ActorLife& a, const ActorLife& b) {
  if (a.handlers_run != b.handlers_run) return "handlers run";
  if (a.started != b.started) return "whether it has started";
  if (a.tokens_appended != b.tokens_appended || a.tokens_generated != b.tokens_generated)
    return "token counts";
  if (a.last_error != b.last_error) return "last error";
  if (a.draws.seed != b.draws.seed || a.draws.random_words != b.draws.random_words) return "random numbers";
  const auto same_mail = [](const Message& x, const Message& y) {
    return x.sender == y.sender && x.bytes == y.bytes;
  };
  if (!std::equal(a.mailbox.begin(), a.mailbox.end(), b.mailbox.begin(), b.mailbox.end(), same_mail)) {
    return "mailbox";
  }
  const auto same_timer = [](const FrozenTimer& x, const FrozenTimer& y) { return x.tag == y.tag; };
  if (!std::equal(a.timers.begin(), a.timers.end(), b.timers.begin(), b.timers.end(), same_timer))
    return "timers";
  if (!same_generates(a.generates, b.generates)) return "generates";
  const auto same_fork = [](const ForkNotice& x, const ForkNotice& y) {
    return x.tag == y.tag && x.child == y.child;
  };
  if (!std::equal(a.forks.begin(), a.forks.end(), b.forks.begin(), b.forks.end(), same_fork)) return "forks";
  return same_slots(a.slots, b.slots) ? "" : "session handles";
}

Result<std::string> sessions_difference(const FrozenActor& a, const FrozenActor& b) {
  if (a.sessions.size() != b.sessions.size()) return std::string("number of sessions");
  DW_ASSIGN_OR_RETURN(const FrozenActor x, with_kv_bytes(a));
  DW_ASSIGN_OR_RETURN(const FrozenActor y, with_kv_bytes(b));
  for (size_t i = 0; i < x.sessions.size(); ++i) {
    const std::string difference = engine::first_difference(x.sessions[i], y.sessions[i]);
    if (!difference.empty()) return "session " + std::to_string(i) + ", " + difference;
  }
  return std::string();
}

}  // namespace

Result<FrozenActor> with_kv_bytes(const FrozenActor& frozen) {
  FrozenActor mapped = frozen;
  for (engine::FrozenSession& session : mapped.sessions) {
    DW_RETURN_IF_ERROR(engine::read_kv(&session));
  }
  return mapped;
}

Result<std::string> first_difference(const FrozenActor& a, const FrozenActor& b) {
  if (a.identity.module_hash != b.identity.module_hash) return std::string("module");
  if (a.setup.config != b.setup.config) return std::string("configuration");
  if (std::string life = life_difference(a.life, b.life); !life.empty()) return life;
  if (a.globals != b.globals) {
    const auto at =
        std::mismatch(a.globals.begin(), a.globals.end(), b.globals.begin(), b.globals.end()).first;
    return "global " + std::to_string(at - a.globals.begin());
  }
  DW_ASSIGN_OR_RETURN(std::string memory, memory_difference(a, b));
  if (!memory.empty()) return memory;
  return sessions_difference(a, b);
}

}  // namespace driftwood::actor
