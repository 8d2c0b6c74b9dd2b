// The image of packed weights: what lies where in one contiguous piece of memory, which is also the cache
// file.
//
//   [header, padded to 64 KiB] [matrices, each from a 64 KiB boundary] [vectors, f32, each from a 64-byte
//   boundary, their section from a 64 KiB boundary], padded to 64 KiB. Padding is zero.
// The plan is computed from checkpoint and requests alone, so a cache file needs to prove only that it was
// made for the same ones. In memory the header area stays untouched.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "base/status.h"
#include "weights/pack.h"
#include "weights/weight_source.h"

namespace driftwood::weights {

inline constexpr uint64_t kExtentBytes = 64 * 1024;

struct ImageMatrix {
  MatrixPlan plan;
  uint64_t offset = 0;  // from the image's start
  uint64_t size_bytes = 0;
};

struct ImageVector {
  VectorRequest request;
  uint64_t offset = 0;
  int64_t length = 0;
};

struct ImagePlan {
  std::shared_ptr<const format::Checkpoint> checkpoint;
  std::vector<ImageMatrix> matrices;
  std::vector<ImageVector> vectors;
  uint64_t vectors_offset = 0;  // section of all vectors
  uint64_t vectors_bytes = 0;
  uint64_t header_bytes = 0;  // padded
  uint64_t total_bytes = 0;
  int64_t packed_bytes = 0;     // matrices and vectors without padding
  Sha256Digest request_hash{};  // layout version, every request and the form it packs to
};

// Errors: a tensor that is missing or cannot be packed as asked, a key that appears twice.
Result<ImagePlan> plan_image(std::shared_ptr<const format::Checkpoint> checkpoint,
                             std::vector<MatrixRequest> matrices, std::vector<VectorRequest> vectors);

// Fills everything behind the header, on `threads` threads.
Status fill_image(const ImagePlan& plan, int threads, uint8_t* image);

// One checksum for each matrix, then one for the vectors' section.
std::vector<uint64_t> image_checksums(const ImagePlan& plan, int threads, const uint8_t* image);

}  // namespace driftwood::weights
