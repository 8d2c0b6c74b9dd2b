// Where a snapshot comes from and what came of it, as far as the store has it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/printing.h"
#include "snapshot/store.h"

namespace driftwood::cli {

class Lineage {
 public:
  // `entries` as Store::list() gives them, `hash` among them.
  Lineage(const std::vector<snapshot::StoreEntry>& entries, std::string hash);

  // {"ancestors": nearest first, "descendants": parents before children, "missing_parent"}
  Json json() const;
  // From the oldest ancestor down, the snapshot itself marked with '*'. A chain stays at its depth, and what
  // has no name in it is counted, not listed.
  void print() const;

 private:
  const snapshot::StoreEntry* find(const std::string& hash) const;
  const std::vector<const snapshot::StoreEntry*>& children(const std::string& hash) const;
  std::vector<const snapshot::StoreEntry*> ancestors() const;
  void print_from(const snapshot::StoreEntry* entry, int depth, const ShortHashes& shortened) const;

  std::string hash_;
  std::map<std::string, const snapshot::StoreEntry*> by_hash_;
  std::map<std::string, std::vector<const snapshot::StoreEntry*>> children_;
};

}  // namespace driftwood::cli
