// WeightSource: the only way to weights. acquire() gives a tensor in the kernels' packed form, release() ends the
// loan. Here: packed at load (in parallel) or mapped from the packed cache on disk; streaming comes later behind
// the same two calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"
#include "format/tensor_request.h"
#include "tensor/packed_matrix.h"

namespace driftwood::weights {

using format::MatrixRequest;
using format::VectorRequest;

struct SourceOptions {
  std::string cache_dir;   // packed cache; empty: pack into memory
  int threads = 1;
  // Reads every byte of a cache file and compares checksums before it is used. Otherwise only its structure,
  // owner, times and header are checked: damage by a failing disk inside the data goes unseen.
  bool verify_cache = false;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Valid until the matching release(); thread-safe.
  virtual Result<PackedMatrix> acquire(const std::string& key) = 0;
  virtual void release(const std::string& key) = 0;
  virtual Result<std::span<const float>> vector(const std::string& key) = 0;
  virtual bool from_cache() const = 0;
  // Why the cache was not used or could not be written; empty if it was, or none was asked for. A cache never
  // makes opening fail.
  virtual std::string cache_note() const = 0;
  virtual int64_t packed_bytes() const = 0;
};

// Packs everything asked for, or maps it from the cache when fingerprint, layout version and requests match.
// Bad or foreign cache files are ignored and rewritten (temp file, fsync, rename).
Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const format::Checkpoint> checkpoint,
                                                   std::vector<MatrixRequest> matrices,
                                                   std::vector<VectorRequest> vectors,
                                                   const SourceOptions& options);

}  // namespace driftwood::weights
