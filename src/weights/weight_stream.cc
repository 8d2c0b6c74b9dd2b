#include "weights/weight_stream.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "os/folder.h"
#include "os/page_cache.h"

namespace driftwood::weights {
namespace {

constexpr auto kBudgetInterval = std::chrono::seconds(1);
// The system may have taken what stays: now and then it is brought in again.
constexpr int64_t kPassesBetweenVisits = 16;
constexpr uint64_t kChunkBytes = 1024 * 1024;
constexpr int kThreads = 4;           // they wait for the disk, which wants some requests at once
constexpr int64_t kStagesInRing = 2;  // the one that is computed and the one that is read
constexpr int64_t kLeastRing = 16 * 1024 * 1024;
constexpr int64_t kMostRingShare = 4;  // of the budget
constexpr int64_t kLeastChange = 64;   // of all, for which the plan changes

constexpr uint64_t kAlignmentMask = os::kDirectAlignment - 1;

}  // namespace

WeightStream::WeightStream(std::shared_ptr<const os::MappedFile> file,
                           const std::vector<std::vector<PackedMatrix>>& stages, Budget budget,
                           StreamFigures* figures)
    : file_(std::move(file)), budget_(std::move(budget)), figures_(figures) {
  DW_CHECK(!stages.empty(), "a stream of no weights");
  std::vector<int64_t> sizes;
  for (const std::vector<PackedMatrix>& matrices : stages) {
    add_stage(matrices);
    sizes.push_back(static_cast<int64_t>(stages_.back().ring_bytes));
  }
  plan_ = StreamPlan(std::move(sizes));
  std::unique_lock lock(mutex_);
  follow_budget(lock);
}

WeightStream::~WeightStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  to_read_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  figures_->open = false;
}

void WeightStream::add_stage(const std::vector<PackedMatrix>& matrices) {
  Stage stage;
  for (const PackedMatrix& m : matrices) {
    const auto offset = static_cast<uint64_t>(m.data - file_->bytes().data());
    const uint64_t begin = offset & ~kAlignmentMask;
    const uint64_t end = (offset + m.size_bytes() + kAlignmentMask) & ~kAlignmentMask;
    DW_CHECK(end <= file_->bytes().size(), "the file ends on a page boundary");
    stage.mapped.push_back(m.data);
    stage.places.push_back(stage.ring_bytes + (offset - begin));
    for (uint64_t at = begin; at < end; at += kChunkBytes) {
      const auto bytes = static_cast<size_t>(std::min(kChunkBytes, end - at));
      stage.chunks.push_back({at, stage.ring_bytes, bytes});
      stage.ring_bytes += bytes;
    }
  }
  in_ring_.resize(std::max(in_ring_.size(), matrices.size()));
  stages_.push_back(std::move(stage));
}

// What neither stays nor fits into the ring twice is left to the mapping and the system. (A matmul is cut
// into stages of at most 32 MiB, so that takes a budget of less than 256 MiB.)
bool WeightStream::streams(size_t stage) const {
  return !plan_.kept(stage) && stages_[stage].ring_bytes <= ring_.size_bytes() / 2;
}

std::span<const uint8_t* const> WeightStream::reach(size_t stage) {
  std::unique_lock lock(mutex_);
  const auto size = static_cast<int64_t>(stages_.size());
  if (pass_ * size + static_cast<int64_t>(stage) < turn_) begin_pass(lock);
  Stage& wanted = stages_[stage];
  turn_ = pass_ * size + static_cast<int64_t>(stage);
  if (threads_.empty()) return wanted.mapped;
  release_before(turn_, lock);
  fill_ring();
  if (plan_.kept(stage)) {
    lock.unlock();
    bring_in(&wanted);
    return wanted.mapped;
  }
  if (!streams(stage)) return wanted.mapped;
  const Slot& slot = slots_.front();
  DW_CHECK(slot.turn == turn_, "the first slot is the stage's");
  arrived_.wait(lock, [&] { return slot.chunks_left == 0; });
  if (slot.failed) return wanted.mapped;  // touching it will show why
  for (size_t i = 0; i < wanted.places.size(); ++i)
    in_ring_[i] = ring_.data() + slot.begin + wanted.places[i];
  return {in_ring_.data(), wanted.places.size()};
}

void WeightStream::begin_pass(std::unique_lock<std::mutex>& lock) {
  ++pass_;
  if (pass_ % kPassesBetweenVisits == 0) {
    for (Stage& stage : stages_) stage.in_memory = false;
  }
  if (std::chrono::steady_clock::now() - asked_budget_ >= kBudgetInterval) follow_budget(lock);
}

void WeightStream::follow_budget(std::unique_lock<std::mutex>& lock) {
  asked_budget_ = std::chrono::steady_clock::now();
  const int64_t total = plan_.total_bytes();
  const int64_t budget = std::clamp(budget_(static_cast<int64_t>(ring_.size_bytes())), int64_t{0}, total);
  // What moves for little would only be read again.
  if (followed_budget_ >= 0 && std::abs(budget - followed_budget_) < total / kLeastChange) return;
  if (budget < total && threads_.empty() && !open_ring(budget).is_ok()) return;
  followed_budget_ = budget;
  const StreamPlan before = plan_;
  plan_.keep(budget == total ? total : budget - static_cast<int64_t>(ring_.size_bytes()));
  figures_->kept_bytes = plan_.kept_bytes();
  figures_->streamed_bytes = total - plan_.kept_bytes();
  if (threads_.empty()) return;
  // What was read ahead followed the plan before.
  release_before(INT64_MAX, lock);
  next_turn_ = 0;
  for (size_t i = 0; i < plan_.size(); ++i) {
    if (before.kept(i) && !plan_.kept(i)) give_up(&stages_[i]);
  }
}

Status WeightStream::open_ring(int64_t budget) {
  const int64_t most = std::max(kLeastRing, budget / kMostRingShare);
  const int64_t wish = std::clamp(kStagesInRing * plan_.largest_bytes(), kLeastRing, most);
  // Enough for any stage of a small model, whose budget was set by hand, to fit twice.
  const auto bytes = static_cast<size_t>(std::min(wish, 2 * plan_.total_bytes()));
  DW_ASSIGN_OR_RETURN(ring_, os::MappedMemory::allocate(bytes));
  space_ = RingSpace(bytes);
  direct_ = os::read_directly(file_->descriptor());
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { read_chunks(); });
  return Status::ok();
}

void WeightStream::bring_in(Stage* stage) const {
  if (std::exchange(stage->in_memory, true)) return;
  for (const Chunk& chunk : stage->chunks) {
    os::bring_in_range(file_->descriptor(), chunk.offset, chunk.bytes, file_->bytes().data() + chunk.offset);
  }
}

void WeightStream::give_up(Stage* stage) const {
  stage->in_memory = false;
  for (const Chunk& chunk : stage->chunks) {
    os::give_up_range(file_->descriptor(), chunk.offset, chunk.bytes, file_->bytes().data() + chunk.offset);
  }
}

void WeightStream::release_before(int64_t turn, std::unique_lock<std::mutex>& lock) {
  while (!slots_.empty() && slots_.front().turn < turn) {
    Slot& slot = slots_.front();
    slot.next_chunk = stages_[stage_of(slot.turn)].chunks.size();
    arrived_.wait(lock, [&] { return slot.in_flight == 0; });
    slots_.pop_front();
    space_.give_back();
  }
}

void WeightStream::fill_ring() {
  next_turn_ = std::max(next_turn_, turn_);
  for (; next_turn_ < turn_ + static_cast<int64_t>(stages_.size()); ++next_turn_) {
    const size_t stage = stage_of(next_turn_);
    if (!streams(stage)) continue;
    const auto begin = space_.take(stages_[stage].ring_bytes);
    if (!begin.has_value()) break;
    slots_.push_back({.turn = next_turn_, .begin = *begin, .chunks_left = stages_[stage].chunks.size()});
  }
  to_read_.notify_all();
}

WeightStream::Slot* WeightStream::slot_to_read() {
  for (Slot& slot : slots_) {
    if (slot.next_chunk < stages_[stage_of(slot.turn)].chunks.size()) return &slot;
  }
  return nullptr;
}

void WeightStream::read_chunks() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    Slot* const slot = slot_to_read();
    if (slot == nullptr) {
      to_read_.wait(lock);
      continue;
    }
    // A slot stays while a chunk of it is in flight; a deque does not move its elements.
    const Chunk& chunk = stages_[stage_of(slot->turn)].chunks[slot->next_chunk++];
    ++slot->in_flight;
    lock.unlock();
    const bool read = read_chunk(chunk, ring_.data() + slot->begin + chunk.place);
    lock.lock();
    --slot->in_flight;
    --slot->chunks_left;
    slot->failed = slot->failed || !read;
    arrived_.notify_all();
  }
}

bool WeightStream::read_chunk(const Chunk& chunk, uint8_t* out) const {
  const int fd = file_->descriptor();
  for (size_t done = 0; done < chunk.bytes;) {
    size_t got = 0;
    if (os::read_some_at(fd, {out + done, chunk.bytes - done}, chunk.offset + done, &got) != 0 || got == 0)
      return false;
    done += got;
  }
  if (!direct_) os::give_up_range(fd, chunk.offset, chunk.bytes, file_->bytes().data() + chunk.offset);
  return true;
}

}  // namespace driftwood::weights
