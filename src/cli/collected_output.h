// CollectedOutput: keeps what actors emit instead of printing it, for reports in JSON.
//
// Threads: all functions from any, at once too: an actor's forks share its sink and run on threads of their
// own. Ownership: the text is shared with the sinks, which may outlive this object.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "actor/actor.h"

namespace driftwood::cli {

class CollectedOutput {
 public:
  actor::OutputSink sink() {
    return [kept = kept_](const actor::Output& piece) {
      const std::lock_guard lock(kept->mutex);
      kept->text += piece.bytes;
    };
  }
  std::string text() const {
    const std::lock_guard lock(kept_->mutex);
    return kept_->text;
  }

 private:
  struct Kept {
    std::mutex mutex;
    std::string text;
  };
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace driftwood::cli
