// WeightSource over a packed image: mapped from the cache, packed into it, or packed into memory.
#include <atomic>
#include <unordered_map>

#include "weights/image.h"
#include "weights/packed_cache.h"
#include "weights/weight_source.h"

namespace driftwood::weights {
namespace {

struct Backing {
  std::shared_ptr<const os::MappedFile> file;  // one of the two
  os::MappedMemory memory;
  bool from_cache = false;
  std::string note;

  const uint8_t* image() const { return file ? file->bytes().data() : memory.data(); }
};

class PackedSource final : public WeightSource {
 public:
  PackedSource(const ImagePlan& plan, Backing backing)
      : backing_(std::move(backing)), packed_bytes_(plan.packed_bytes), path_(plan.checkpoint->path()) {
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

  bool from_cache() const override { return backing_.from_cache; }
  std::string cache_note() const override { return backing_.note; }
  int64_t packed_bytes() const override { return packed_bytes_; }

 private:
  struct Entry {
    PackedMatrix matrix;
    std::atomic<int64_t> loans{0};
  };
  Backing backing_;
  std::unordered_map<std::string, Entry> matrices_;  // fixed after construction
  std::unordered_map<std::string, std::span<const float>> vectors_;
  int64_t packed_bytes_;
  std::string path_;
};

Result<Backing> pack_into_memory(const ImagePlan& plan, int threads) {
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
  if (cached.is_ok()) {
    backing.file = std::move(*cached);
    backing.from_cache = true;
    return backing;
  }
  const bool absent = cached.status().code() == Code::kNotFound;
  auto written = write_cache(plan, path, options.threads);
  if (written.is_ok()) {
    backing.memory = std::move(*written);
    if (!absent) backing.note = "rewritten: " + cached.status().message();
    return backing;
  }
  DW_ASSIGN_OR_RETURN(backing, pack_into_memory(plan, options.threads));
  backing.note = "not written: " + written.status().message();
  return backing;
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
  return std::unique_ptr<WeightSource>(std::make_unique<PackedSource>(plan, std::move(backing)));
}

}  // namespace driftwood::weights
