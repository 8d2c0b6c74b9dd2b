// WeightSource over a packed image: mapped from the cache, packed into it, or packed into memory.
#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "os/physical_memory.h"
#include "weights/image.h"
#include "weights/packed_cache.h"
#include "weights/weight_source.h"
#include "weights/weight_stream.h"

namespace driftwood::weights {
namespace {

struct Backing {
  std::shared_ptr<const os::MappedFile> file;  // one of the two
  os::MappedMemory memory;
  bool from_cache = false;
  std::string note;

  const uint8_t* image() const { return file ? file->bytes().data() : memory.data(); }
};

// What sessions, and whoever else is there, will want before the budget is asked for the next time; and the
// program's own pages, which the system counts among those that it could give up.
constexpr int64_t kReserveShare = 16;
constexpr int64_t kLeastReserve = 96 * 1024 * 1024;
constexpr int64_t kMostReserve = 1024 * 1024 * 1024;
// A model of less than this share of the memory at hand is not watched.
constexpr int64_t kWatchedShare = 4;

// Bytes of weights that the system can spare; everything if it does not tell.
int64_t spare_memory() {
  const auto available = os::available_memory_bytes();
  if (!available.is_ok()) return INT64_MAX / 2;
  const int64_t reserve = std::clamp(*available / kReserveShare, kLeastReserve, kMostReserve);
  return std::max<int64_t>(0, *available - reserve);
}

class PackedSource final : public WeightSource {
 public:
  PackedSource(const ImagePlan& plan, Backing backing, int64_t memory_bytes)
      : backing_(std::move(backing)),
        packed_bytes_(plan.packed_bytes),
        memory_bytes_(memory_bytes),
        path_(plan.checkpoint->path()) {
    for (const ImageMatrix& m : plan.matrices) {
      PackedMatrix matrix = m.plan.matrix;
      matrix.data = backing_.image() + m.offset;
      matrices_[m.plan.key].matrix = matrix;
    }
    for (const ImageVector& v : plan.vectors) {
      const auto* values = reinterpret_cast<const float*>(backing_.image() + v.offset);
      vectors_.emplace(v.request.key, std::span<const float>(values, static_cast<size_t>(v.length)));
    }
  }

  Result<PackedMatrix> acquire(const std::string& key) override {
    const auto found = matrices_.find(key);
    if (found == matrices_.end()) return not_found(path_ + ": no packed matrix '" + key + "'");
    found->second.loans.fetch_add(1, std::memory_order_relaxed);
    return found->second.matrix;
  }

  void release(const std::string& key) override {
    const auto found = matrices_.find(key);
    DW_CHECK(found != matrices_.end() && found->second.loans.fetch_sub(1, std::memory_order_relaxed) > 0,
             "release of weights that are not on loan");
  }

  Result<std::span<const float>> vector(const std::string& key) override {
    const auto found = vectors_.find(key);
    if (found == vectors_.end()) return not_found(path_ + ": no packed vector '" + key + "'");
    return found->second;
  }

  std::unique_ptr<WeightReader> open_reader(const std::vector<std::vector<PackedMatrix>>& stages) override {
    if (backing_.file == nullptr || stages.empty()) return nullptr;
    const int64_t fixed = memory_bytes_;
    WeightStream::Budget budget = [fixed](int64_t ring_bytes) {
      return fixed > 0 ? fixed : spare_memory() + ring_bytes;  // the ring is no spare memory any more
    };
    if (packed_bytes_ < budget(0) / kWatchedShare || figures_.open.exchange(true)) return nullptr;
    return std::make_unique<WeightStream>(backing_.file, stages, std::move(budget), &figures_);
  }

  Residency residency() const override {
    if (!figures_.open) return {packed_bytes_, 0};
    return {figures_.kept_bytes, figures_.streamed_bytes};
  }

  bool from_cache() const override { return backing_.from_cache; }
  std::string cache_note() const override { return backing_.note; }
  int64_t packed_bytes() const override { return packed_bytes_; }

 private:
  struct Entry {
    PackedMatrix matrix;
    std::atomic<int64_t> loans{0};
  };
  Backing backing_;
  StreamFigures figures_;
  std::unordered_map<std::string, Entry> matrices_;  // fixed after construction
  std::unordered_map<std::string, std::span<const float>> vectors_;
  int64_t packed_bytes_;
  int64_t memory_bytes_;  // SourceOptions
  std::string path_;
};

Result<Backing> pack_into_memory(const ImagePlan& plan, int threads) {
  DW_ASSIGN_OR_RETURN(const int64_t memory, os::physical_memory_bytes());
  if (plan.total_bytes > static_cast<uint64_t>(memory)) {
    return resource_exhausted(plan.checkpoint->path() + ": its weights take " +
                              std::to_string(plan.total_bytes) + " bytes of " + std::to_string(memory) +
                              " that this process may have; larger models need the packed cache on disk");
  }
  Backing backing;
  DW_ASSIGN_OR_RETURN(backing.memory, os::MappedMemory::allocate(plan.total_bytes));
  DW_RETURN_IF_ERROR(fill_image(plan, threads, backing.memory.data()));
  DW_RETURN_IF_ERROR(backing.memory.make_read_only());
  return backing;
}

Result<Backing> make_backing(const ImagePlan& plan, const SourceOptions& options) {
  if (options.cache_dir.empty()) return pack_into_memory(plan, options.threads);
  const std::string path = cache_path(plan, options.cache_dir);
  Backing backing;
  auto cached = open_cache(plan, path, options.verify_cache, options.threads);
  backing.from_cache = cached.is_ok();
  if (!cached.is_ok() && cached.status().code() != Code::kNotFound)
    backing.note = "rewritten: " + cached.status().message();
  if (!cached.is_ok()) {
    const Status written = write_cache(plan, path, options.threads);
    cached = written.is_ok() ? open_cache(plan, path, false, options.threads) : written;
  }
  if (cached.is_ok()) {
    backing.file = std::move(*cached);
    return backing;
  }
  auto packed = pack_into_memory(plan, options.threads);
  if (!packed.is_ok())
    return packed.status().with_context("the packed cache was not written: " + cached.status().message());
  packed->note = "not written: " + cached.status().message();
  return packed;
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const format::Checkpoint> checkpoint,
                                                   std::vector<MatrixRequest> matrices,
                                                   std::vector<VectorRequest> vectors,
                                                   const SourceOptions& options) {
  DW_ASSIGN_OR_RETURN(const ImagePlan plan,
                      plan_image(std::move(checkpoint), std::move(matrices), std::move(vectors)));
  if (plan.matrices.empty() && plan.vectors.empty()) return invalid_argument("no weights are asked for");
  DW_ASSIGN_OR_RETURN(Backing backing, make_backing(plan, options));
  return std::unique_ptr<WeightSource>(
      std::make_unique<PackedSource>(plan, std::move(backing), options.memory_bytes));
}

}  // namespace driftwood::weights
