#include "actor/generates.h"

#include <algorithm>

namespace driftwood::actor {

Status Generates::add(Generate generate) {
  if (find(generate.tag) != nullptr) {
    return already_exists("a generate with tag " + std::to_string(generate.tag) + " is outstanding");
  }
  // Ended ones count too: a guest that only starts and cancels must not fill the queue.
  if (state_.running.size() + state_.ended.size() >= static_cast<size_t>(std::max(limit_, 0))) {
    return resource_exhausted("this actor may have " + std::to_string(limit_) + " generates outstanding");
  }
  generate.serial = ++state_.last_serial;
  state_.running.push_back(generate);
  return Status::ok();
}

Generate* Generates::find(int64_t tag) {
  for (Generate& generate : state_.running) {
    if (generate.tag == tag) return &generate;
  }
  return nullptr;
}

Generate* Generates::current() {
  if (state_.running.empty()) return nullptr;
  if (state_.turn >= state_.running.size()) state_.turn = 0;
  return &state_.running[state_.turn];
}

void Generates::advance() { ++state_.turn; }

void Generates::end(int64_t tag, DoneReason reason, std::string message) {
  const auto it = std::find_if(state_.running.begin(), state_.running.end(),
                               [&](const Generate& g) { return g.tag == tag; });
  DW_CHECK(it != state_.running.end(), "a generate ends once");
  state_.ended.push_back({it->tag, it->session, reason, it->produced, std::move(message)});
  if (static_cast<size_t>(it - state_.running.begin()) < state_.turn) --state_.turn;
  state_.running.erase(it);
}

GenerateDone Generates::take_ended() {
  GenerateDone done = std::move(state_.ended.front());
  state_.ended.pop_front();
  return done;
}

}  // namespace driftwood::actor
