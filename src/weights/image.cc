#include "weights/image.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "weights/packed_cache.h"
#include "weights/parallel_for.h"

namespace driftwood::weights {
namespace {

constexpr uint64_t kVectorAlignment = 64;
constexpr uint64_t kUnitBytes = 512 * 1024;  // packed bytes that one hand-out to a thread makes, at least

uint64_t align_up(uint64_t x, uint64_t alignment) { return (x + alignment - 1) / alignment * alignment; }

void hash_matrix(Sha256& hash, const MatrixRequest& request, const PackedMatrix& m) {
  hash.update_field(request.key);
  hash.update_u64(request.tensors.size());
  for (const std::string& tensor : request.tensors) hash.update_field(tensor);
  hash.update_u64(static_cast<uint64_t>(m.layout));
  hash.update_u64(m.has_min ? 1 : 0);
  hash.update_u64(static_cast<uint64_t>(static_cast<int64_t>(m.zero_point)));
  hash.update_u64(static_cast<uint64_t>(m.rows));
  hash.update_u64(static_cast<uint64_t>(m.cols));
}

struct Unit {
  size_t matrix;
  int64_t begin;
  int64_t end;
};

std::vector<Unit> cut_units(const ImagePlan& plan) {
  std::vector<Unit> units;
  for (size_t i = 0; i < plan.matrices.size(); ++i) {
    const PackedMatrix& m = plan.matrices[i].plan.matrix;
    const auto step = static_cast<int64_t>(std::max<uint64_t>(1, kUnitBytes / m.group_bytes()));
    for (int64_t g = 0; g < m.groups(); g += step) units.push_back({i, g, std::min(g + step, m.groups())});
  }
  return units;
}

// FNV-like over 8-byte words in four chains, then mixed. Finds accidental damage; no defence against intent.
uint64_t extent_checksum(const uint8_t* bytes, size_t size) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15u;
  uint64_t chain[4] = {1, 2, 3, 4};
  DW_CHECK(size % 32 == 0, "extents are padded");
  for (size_t at = 0; at < size; at += 32) {
    for (size_t i = 0; i < 4; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at + 8 * i, 8);
      chain[i] = (chain[i] ^ word) * kPrime;
      chain[i] ^= chain[i] >> 29;
    }
  }
  uint64_t sum = size;
  for (const uint64_t c : chain) {
    sum = (sum ^ c) * kPrime;
    sum ^= sum >> 32;
  }
  return sum;
}

}  // namespace

Result<ImagePlan> plan_image(std::shared_ptr<const format::Checkpoint> checkpoint,
                             std::vector<MatrixRequest> matrices, std::vector<VectorRequest> vectors) {
  ImagePlan plan;
  plan.header_bytes = align_up(cache_header_bytes(matrices.size()), kExtentBytes);
  uint64_t end = plan.header_bytes;
  Sha256 hash;
  hash.update_field("driftwood packed weights");
  hash.update_u64(kPackedLayoutVersion);
  hash.update_u64(matrices.size());
  std::set<std::string> keys;
  for (MatrixRequest& request : matrices) {
    if (!keys.insert(request.key).second)
      return invalid_argument("weights '" + request.key + "' are asked for twice");
    DW_ASSIGN_OR_RETURN(MatrixPlan matrix, plan_matrix(*checkpoint, request));
    hash_matrix(hash, request, matrix.matrix);
    const uint64_t size = matrix.matrix.size_bytes();
    plan.matrices.push_back({std::move(matrix), end, size});
    plan.packed_bytes += static_cast<int64_t>(size);
    end = align_up(end + size, kExtentBytes);
  }
  plan.vectors_offset = end;
  hash.update_u64(vectors.size());
  for (VectorRequest& request : vectors) {
    if (!keys.insert(request.key).second)
      return invalid_argument("weights '" + request.key + "' are asked for twice");
    DW_ASSIGN_OR_RETURN(const int64_t length, vector_length(*checkpoint, request));
    hash.update_field(request.key);
    hash.update_field(request.tensor);
    hash.update_u64(static_cast<uint64_t>(length));
    plan.vectors.push_back({std::move(request), end, length});
    plan.packed_bytes += length * 4;
    end = align_up(end + static_cast<uint64_t>(length) * 4, kVectorAlignment);
  }
  plan.total_bytes = align_up(end, kExtentBytes);
  plan.vectors_bytes = plan.total_bytes - plan.vectors_offset;
  plan.request_hash = hash.finish();
  plan.checkpoint = std::move(checkpoint);
  return plan;
}

Status fill_image(const ImagePlan& plan, int threads, uint8_t* image) {
  const std::vector<Unit> units = cut_units(plan);
  std::vector<std::atomic<int64_t>> groups_left(plan.matrices.size());
  for (size_t i = 0; i < plan.matrices.size(); ++i) groups_left[i] = plan.matrices[i].plan.matrix.groups();
  parallel_for(threads, units.size(), [&](size_t u) {
    const Unit& unit = units[u];
    const ImageMatrix& m = plan.matrices[unit.matrix];
    pack_groups(m.plan, unit.begin, unit.end, image + m.offset);
    if (groups_left[unit.matrix].fetch_sub(unit.end - unit.begin) != unit.end - unit.begin) return;
    for (const format::TensorInfo* part : m.plan.parts) plan.checkpoint->drop_pages(*part);
  });
  for (const ImageVector& v : plan.vectors) {
    DW_RETURN_IF_ERROR(copy_vector(*plan.checkpoint, v.request, reinterpret_cast<float*>(image + v.offset)));
  }
  return Status::ok();
}

std::vector<uint64_t> image_checksums(const ImagePlan& plan, int threads, const uint8_t* image) {
  std::vector<uint64_t> sums(plan.matrices.size() + 1);
  parallel_for(threads, sums.size(), [&](size_t i) {
    const bool matrix = i < plan.matrices.size();
    const uint64_t begin = matrix ? plan.matrices[i].offset : plan.vectors_offset;
    const uint64_t size = matrix ? align_up(plan.matrices[i].size_bytes, kExtentBytes) : plan.vectors_bytes;
    sums[i] = extent_checksum(image + begin, size);
  });
  return sums;
}

}  // namespace driftwood::weights
