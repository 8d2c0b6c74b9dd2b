// Checkpoint: a model on disk as checked descriptors, whatever its file format (GGUF, Hugging Face folder with
// safetensors, MLX-quantised folder).
//
// Opening maps the files read-only and validates every offset and size against the file; after that no reader can
// step outside. Errors are invalid_argument or data_loss naming file, key and tensor. Thread-safe after opening.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace driftwood::format {

// How the bytes of a stored tensor are coded.
enum class Encoding : uint8_t {
  kDense,   // dtype, row-major
  kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0,  // GGUF blocks of 32
  kMlxAffine,  // u32 words of 4- or 8-bit codes + scales + biases per group
};
const char* encoding_name(Encoding encoding);

struct TensorInfo {
  std::string name;              // as in the file; for MLX the ".weight" tensor's name
  Encoding encoding = Encoding::kDense;
  DType dtype = DType::kF32;     // dense only
  std::vector<int64_t> shape;    // logical, outermost first: a matrix is [N outputs, K inputs]
  std::span<const uint8_t> bytes;  // mapped
  // MLX only:
  int bits = 0;
  int group_size = 0;
  DType scale_dtype = DType::kF16;
  std::span<const uint8_t> scales;
  std::span<const uint8_t> biases;

  int64_t element_count() const;
};

// Hyper-parameters and tokenizer data as a JSON-like tree of typed values.
struct MetadataValue;
using MetadataArray = std::vector<MetadataValue>;
struct MetadataValue {
  enum class Kind : uint8_t { kBool, kInt, kUint, kFloat, kString, kArray } kind = Kind::kInt;
  bool boolean = false;
  int64_t integer = 0;     // kInt; kUint if it fits
  uint64_t unsigned_integer = 0;
  double number = 0;       // kFloat, and every integer as a double
  std::string string;
  MetadataArray array;
};

enum class FileFormat : uint8_t { kGguf, kHuggingFace, kMlx };

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  virtual FileFormat format() const = 0;
  virtual const std::string& path() const = 0;

  // Tensors by name; find() is null if absent.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  virtual const TensorInfo* find(const std::string& name) const = 0;
  virtual int64_t total_tensor_bytes() const = 0;

  // GGUF key ("llama.block_count"), or for folders the dotted path in config.json ("rope_parameters.rope_type",
  // "num_hidden_layers"). Null if absent.
  virtual const MetadataValue* metadata(const std::string& key) const = 0;

  // Text of a side file of a folder ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
  // "generation_config.json"); not_found if there is none. GGUF has none.
  virtual Result<std::string> side_file(const std::string& name) const = 0;

  // 32 bytes naming the contents, in hex: SHA-256. Hashing every byte at every start is too slow, so it covers
  // path-independent structure (names, shapes, encodings, sizes, metadata, tokenizer.json) plus sampled bytes of
  // each tensor. docs/formats/models.md states what is sampled. Computed at the first call, then kept.
  virtual std::string fingerprint_hex() const = 0;

  // Text that differs once any file of the model was replaced or written to (device, inode, size, times). Says
  // nothing of contents: for local caches, which must notice an edit that the fingerprint's samples miss.
  virtual std::string file_stamp() const = 0;

  // Advice that the bytes of a tensor (one of tensors()) will not be read soon; their pages may leave memory.
  virtual void drop_pages(const TensorInfo& tensor) const = 0;
};

// Opens a GGUF file or a model folder by looking at the bytes, never at the file's name alone.
Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& path);

// Typed readers with errors that name file and key.
Result<int64_t> metadata_int(const Checkpoint& c, const std::string& key);
Result<double> metadata_float(const Checkpoint& c, const std::string& key);
Result<std::string> metadata_string(const Checkpoint& c, const std::string& key);
std::optional<int64_t> metadata_int_or(const Checkpoint& c, const std::string& key);
std::optional<double> metadata_float_or(const Checkpoint& c, const std::string& key);
std::optional<std::string> metadata_string_or(const Checkpoint& c, const std::string& key);
std::optional<bool> metadata_bool_or(const Checkpoint& c, const std::string& key);

}  // namespace driftwood::format
