#include "cli/snapshot_lineage.h"

#include <cstdio>
#include <set>

namespace driftwood::cli {
namespace {

Json one(const snapshot::StoreEntry& entry) {
  return {{"hash", entry.hash}, {"names", entry.names}, {"parent", entry.parent}};
}

}  // namespace

Lineage::Lineage(const std::vector<snapshot::StoreEntry>& entries, std::string hash)
    : hash_(std::move(hash)) {
  for (const snapshot::StoreEntry& entry : entries) {
    by_hash_[entry.hash] = &entry;
    if (!entry.parent.empty()) children_[entry.parent].push_back(&entry);
  }
}

const snapshot::StoreEntry* Lineage::find(const std::string& hash) const {
  const auto it = by_hash_.find(hash);
  return it == by_hash_.end() ? nullptr : it->second;
}

const std::vector<const snapshot::StoreEntry*>& Lineage::children(const std::string& hash) const {
  static const std::vector<const snapshot::StoreEntry*> none;
  const auto it = children_.find(hash);
  return it == children_.end() ? none : it->second;
}

std::vector<const snapshot::StoreEntry*> Lineage::ancestors() const {
  std::vector<const snapshot::StoreEntry*> list;
  const snapshot::StoreEntry* self = find(hash_);
  for (auto entry = self == nullptr ? nullptr : find(self->parent); entry != nullptr;
       entry = find(entry->parent)) {
    list.push_back(entry);
  }
  return list;
}

Json Lineage::json() const {
  const auto before = ancestors();
  Json out = {{"ancestors", Json::array()}, {"descendants", Json::array()}};
  for (const auto* entry : before) out["ancestors"].push_back(one(*entry));
  std::vector<std::string> open = {hash_};
  for (size_t i = 0; i < open.size(); ++i) {
    for (const auto* child : children(open[i])) {
      out["descendants"].push_back(one(*child));
      open.push_back(child->hash);
    }
  }
  const snapshot::StoreEntry* oldest = before.empty() ? find(hash_) : before.back();
  out["missing_parent"] = oldest == nullptr ? "" : oldest->parent;
  return out;
}

void Lineage::print() const {
  std::set<std::string> hashes;
  for (const auto& [hash, entry] : by_hash_) hashes.insert({hash, entry->parent});
  const ShortHashes shortened(std::move(hashes));
  const auto before = ancestors();
  const snapshot::StoreEntry* oldest = before.empty() ? find(hash_) : before.back();
  if (oldest == nullptr) return;
  if (!oldest->parent.empty())
    std::printf("  (%s, not in this store)\n", shortened.of(oldest->parent).c_str());
  print_from(oldest, 0, shortened);
}

void Lineage::print_from(const snapshot::StoreEntry* entry, int depth, const ShortHashes& shortened) const {
  for (;;) {
    uint64_t left_out = 0;
    while (entry->names.empty() && entry->hash != hash_ && children(entry->hash).size() == 1) {
      entry = children(entry->hash)[0];
      ++left_out;
    }
    if (left_out > 0) {
      std::printf("  %*s(%s)\n", 2 * depth, "",
                  count_text(left_out, "snapshot without a name", "snapshots without a name").c_str());
    }
    std::string names;
    for (const std::string& name : entry->names) names += "  " + name;
    std::printf("%c %*s%s%s\n", entry->hash == hash_ ? '*' : ' ', 2 * depth, "",
                shortened.of(entry->hash).c_str(), names.c_str());
    const auto& below = children(entry->hash);
    if (below.size() != 1) {
      for (const auto* child : below) print_from(child, depth + 1, shortened);
      return;
    }
    entry = below[0];
  }
}

}  // namespace driftwood::cli
