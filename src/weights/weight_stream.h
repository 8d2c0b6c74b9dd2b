// WeightStream: keeps a model that is larger than memory from thrashing.
//
// A step reads every weight once, always in the same order. A system short of memory gives up what was not
// used for longest, which is what comes next: with one byte too many, all of the model comes from disk for
// each token. Here some stages stay in their mapping of the cache file (stream_plan.h); threads read the
// others ahead of their turn into a ring of memory, past the system's cache, so that nothing presses on what
// stays. No bit of a result depends on which it is.
//
// How much may stay is asked when a pass begins, at most once a second, so a stream follows the memory that
// is there. While everything fits it has neither ring nor threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "os/mapped_file.h"
#include "os/mapped_memory.h"
#include "weights/ring_space.h"
#include "weights/stream_plan.h"
#include "weights/weight_source.h"

namespace driftwood::weights {

// What a source shows of its stream.
struct StreamFigures {
  std::atomic<bool> open{false};
  std::atomic<int64_t> kept_bytes{0};
  std::atomic<int64_t> streamed_bytes{0};
};

class WeightStream final : public WeightReader {
 public:
  // Bytes of weights that may lie in memory now, those in the ring, which has so many bytes, among them.
  using Budget = std::function<int64_t(int64_t ring_bytes)>;

  // `file`, opened with its descriptor, maps all matrices; its size is a multiple of os::kDirectAlignment.
  // `figures` outlives the stream and is open meanwhile.
  WeightStream(std::shared_ptr<const os::MappedFile> file,
               const std::vector<std::vector<PackedMatrix>>& stages, Budget budget, StreamFigures* figures);
  ~WeightStream() override;
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  std::span<const uint8_t* const> reach(size_t stage) override;

 private:
  struct Chunk {
    uint64_t offset = 0;  // in the file
    size_t place = 0;     // in the stage's part of the ring
    size_t bytes = 0;
  };
  struct Stage {
    std::vector<const uint8_t*> mapped;  // of each matrix
    std::vector<size_t> places;          // of each matrix in the stage's part of the ring
    std::vector<Chunk> chunks;
    size_t ring_bytes = 0;
    bool in_memory = false;  // of one that stays: it was brought in
  };
  // A stage in the ring, or on its way there.
  struct Slot {
    int64_t turn = 0;
    size_t begin = 0;
    size_t next_chunk = 0;
    size_t chunks_left = 0;
    int in_flight = 0;
    bool failed = false;
  };

  void add_stage(const std::vector<PackedMatrix>& matrices);
  bool streams(size_t stage) const;
  size_t stage_of(int64_t turn) const { return static_cast<size_t>(turn) % stages_.size(); }
  void begin_pass(std::unique_lock<std::mutex>& lock);
  void follow_budget(std::unique_lock<std::mutex>& lock);
  Status open_ring(int64_t budget);
  void bring_in(Stage* stage) const;
  void give_up(Stage* stage) const;
  // Gives the ring's first slots back while they are of turns before `turn`.
  void release_before(int64_t turn, std::unique_lock<std::mutex>& lock);
  void fill_ring();
  void read_chunks();
  Slot* slot_to_read();
  bool read_chunk(const Chunk& chunk, uint8_t* out) const;

  const std::shared_ptr<const os::MappedFile> file_;
  const Budget budget_;
  StreamFigures* const figures_;
  std::vector<Stage> stages_;
  std::vector<const uint8_t*> in_ring_;  // what reach() gave last
  bool direct_ = false;                  // reads pass the system's cache

  std::mutex mutex_;
  std::condition_variable to_read_;  // for the threads: there are chunks
  std::condition_variable arrived_;  // for reach(): a chunk came
  StreamPlan plan_{{}};
  os::MappedMemory ring_;
  RingSpace space_{0};
  std::deque<Slot> slots_;  // in order of their turns
  // A turn is a stage of a pass: pass * stages + stage.
  int64_t turn_ = 0;
  int64_t next_turn_ = 0;  // the first that fill_ring() did not look at
  int64_t pass_ = 0;
  std::chrono::steady_clock::time_point asked_budget_;
  int64_t followed_budget_ = -1;  // that of the plan
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace driftwood::weights
