#include "snapshot/contents_check.h"

#include <algorithm>

namespace driftwood::snapshot {

void ContentsCheck::expect_digest(ByteSpan bytes, const Digest& wanted, DigestFault fault) {
  entries_.push_back({bytes, wanted, std::move(fault), nullptr});
}

void ContentsCheck::expect_zeros(ByteSpan bytes, ZerosFault fault) {
  if (!bytes.empty()) entries_.push_back({bytes, {}, nullptr, std::move(fault)});
}

void ContentsCheck::look_at(Entry* entry) {
  entry->good = entry->digest_fault ? blake3(entry->bytes) == entry->wanted : is_zero(entry->bytes);
}

void ContentsCheck::conclude() {
  for (const Entry& entry : entries_) {
    if (entry.good) continue;
    if (entry.digest_fault) {
      status_ = entry.digest_fault(blake3(entry.bytes));
    } else {
      const auto other =
          std::find_if(entry.bytes.begin(), entry.bytes.end(), [](uint8_t b) { return b != 0; });
      status_ = entry.zeros_fault(static_cast<uint64_t>(other - entry.bytes.begin()));
    }
    return;
  }
}

void ContentsCheck::run(std::span<ContentsCheck> checks, int threads) {
  std::vector<Entry*> entries;
  for (ContentsCheck& check : checks) {
    for (Entry& entry : check.entries_) entries.push_back(&entry);
  }
  run_on_threads(entries.size(), threads, [&](size_t i) { look_at(entries[i]); });
  for (ContentsCheck& check : checks) check.conclude();
}

Status ContentsCheck::run(int threads) {
  run({this, 1}, threads);
  return status_;
}

}  // namespace driftwood::snapshot
