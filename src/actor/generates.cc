#include "actor/generates.h"

#include <algorithm>

namespace driftwood::actor {

Status Generates::add(Generate generate) {
  if (find(generate.tag) != nullptr) {
    return already_exists("a generate with tag " + std::to_string(generate.tag) + " is outstanding");
  }
  // Ended ones count too: a guest that only starts and cancels must not fill the queue.
  if (running_.size() + ended_.size() >= static_cast<size_t>(std::max(limit_, 0))) {
    return resource_exhausted("this actor may have " + std::to_string(limit_) + " generates outstanding");
  }
  generate.serial = ++last_serial_;
  running_.push_back(generate);
  return Status::ok();
}

Generate* Generates::find(int64_t tag) {
  for (Generate& generate : running_) {
    if (generate.tag == tag) return &generate;
  }
  return nullptr;
}

Generate* Generates::current() {
  if (running_.empty()) return nullptr;
  if (turn_ >= running_.size()) turn_ = 0;
  return &running_[turn_];
}

void Generates::advance() { ++turn_; }

void Generates::end(int64_t tag, DoneReason reason, std::string message) {
  const auto it =
      std::find_if(running_.begin(), running_.end(), [&](const Generate& g) { return g.tag == tag; });
  DW_CHECK(it != running_.end(), "a generate ends once");
  ended_.push_back({it->tag, it->session, reason, it->produced, std::move(message)});
  if (static_cast<size_t>(it - running_.begin()) < turn_) --turn_;
  running_.erase(it);
}

GenerateDone Generates::take_ended() {
  GenerateDone done = std::move(ended_.front());
  ended_.pop_front();
  return done;
}

}  // namespace driftwood::actor
