#include "actor/actor_saver.h"

#include <chrono>

namespace driftwood::actor {

Result<snapshot::SaveReport> ActorSaver::save(const FrozenActor& frozen, const std::string& name,
                                              const std::map<std::string, std::string>& notes) {
  snapshot::Origin origin;
  origin.parent = last_hash_.empty() ? frozen.parent : last_hash_;
  origin.created_ns = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                std::chrono::system_clock::now().time_since_epoch())
                                                .count());
  origin.notes = notes;
  DW_ASSIGN_OR_RETURN(const auto described, describe_actor(frozen, origin, known_));
  DW_ASSIGN_OR_RETURN(snapshot::SaveReport report, store_->save(described->contents(), name));
  last_hash_ = report.hash;
  known_.clear();
  std::vector<std::shared_ptr<const void>> pins;
  size_t session = 0;
  for (size_t i = 0; i < frozen.life.slots.size(); ++i) {
    if (frozen.life.slots[i].handle == 0) continue;
    const engine::FrozenSession& saved = frozen.sessions[session++];
    const auto digests = report.digests.find(names::kSession + std::to_string(i) + ".kv");
    if (digests == report.digests.end()) continue;
    for (size_t b = 0; b < saved.kv_blocks.size() && b < digests->second.size(); ++b) {
      known_.emplace(saved.kv_blocks[b].data(), digests->second[b]);
    }
    pins.push_back(saved.kv_owner);
  }
  pins_ = std::move(pins);  // the new ones first, so that what both hold is never free in between
  return report;
}

}  // namespace driftwood::actor
