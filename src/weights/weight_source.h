// WeightSource: the only way to weights. acquire() gives a tensor in the kernels' packed form, release() ends
// the loan. Here: packed at load (in parallel) or mapped from the packed cache on disk, where what does not
// fit into memory is read anew for every step (weight_stream.h).
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
  std::string cache_dir;  // packed cache; empty: pack into memory
  int threads = 1;
  // Reads every byte of a cache file and compares checksums before it is used. Otherwise only its structure,
  // owner, times and header are checked: damage by a failing disk inside the data goes unseen.
  bool verify_cache = false;
  // Bytes of weights to hold in memory, the rest read from the cache file in every step; 0: what the system
  // can spare, asked again while the model is used.
  int64_t memory_bytes = 0;
};

// What of the packed matrices stays in memory, and what every step reads from disk.
struct Residency {
  int64_t kept_bytes = 0;
  int64_t streamed_bytes = 0;
};

class WeightReader {
 public:
  virtual ~WeightReader() = default;
  // Stage `stage` is computed next: the address of each of its matrices, valid until the next call. Waits for
  // what has to come from disk. One thread at a time.
  virtual std::span<const uint8_t* const> reach(size_t stage) = 0;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Valid until the matching release(); thread-safe.
  virtual Result<PackedMatrix> acquire(const std::string& key) = 0;
  virtual void release(const std::string& key) = 0;
  virtual Result<std::span<const float>> vector(const std::string& key) = 0;
  // For one who computes `stages`, lists of acquired matrices, over and over in this order (some may be left
  // out). Null where every matrix can just be read at its place: they fit into memory, or another reader is
  // open. The source outlives the reader. Thread-safe.
  virtual std::unique_ptr<WeightReader> open_reader(const std::vector<std::vector<PackedMatrix>>& stages) = 0;
  virtual Residency residency() const = 0;
  virtual bool from_cache() const = 0;
  // Why the cache was not used or could not be written; empty if it was, or none was asked for. A cache never
  // makes opening fail.
  virtual std::string cache_note() const = 0;
  virtual int64_t packed_bytes() const = 0;
};

// Packs everything asked for, or maps it from the cache when fingerprint, layout version and requests match.
// Bad or foreign cache files are ignored and rewritten (temp file, fsync, rename). resource_exhausted:
// weights that have to be packed into memory, because there is no cache, and do not fit.
Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const format::Checkpoint> checkpoint,
                                                   std::vector<MatrixRequest> matrices,
                                                   std::vector<VectorRequest> vectors,
                                                   const SourceOptions& options);

}  // namespace driftwood::weights
