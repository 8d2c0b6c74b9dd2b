#include "format/fingerprint.h"

#include <algorithm>

namespace driftwood::format {
namespace {

// Spans up to kWhole bytes are hashed in whole, longer ones in kSamples pieces spread evenly, ends included.
constexpr size_t kWhole = 4096;
constexpr size_t kSample = 1024;
constexpr size_t kSamples = 3;

void update_sampled(Sha256& hash, std::span<const uint8_t> bytes) {
  hash.update_u64(bytes.size());
  if (bytes.size() <= kWhole) {
    hash.update(bytes);
    return;
  }
  for (size_t i = 0; i < kSamples; ++i) {
    hash.update(bytes.subspan((bytes.size() - kSample) / (kSamples - 1) * i, kSample));
  }
}

void update_tensor(Sha256& hash, const TensorInfo& t) {
  hash.update_field(t.name);
  hash.update_field(encoding_name(t.encoding));
  hash.update_field(t.encoding == Encoding::kDense ? dtype_name(t.dtype) : "");
  hash.update_u64(t.shape.size());
  for (const int64_t d : t.shape) hash.update_u64(static_cast<uint64_t>(d));
  update_sampled(hash, t.bytes);
  if (t.encoding != Encoding::kMlxAffine) return;
  hash.update_u64(static_cast<uint64_t>(t.bits));
  hash.update_u64(static_cast<uint64_t>(t.group_size));
  hash.update_field(dtype_name(t.scale_dtype));
  update_sampled(hash, t.scales);
  update_sampled(hash, t.biases);
}

}  // namespace

std::string fingerprint(FileFormat format, const std::vector<FingerprintText>& texts,
                        const std::vector<TensorInfo>& tensors) {
  Sha256 hash;
  hash.update_field("driftwood model 1");
  hash.update_u64(static_cast<uint64_t>(format));
  hash.update_u64(texts.size());
  for (const FingerprintText& text : texts) {
    hash.update_field(text.name);
    hash.update_u64(text.bytes.size());
    hash.update(text.bytes);
  }
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->name < b->name; });
  hash.update_u64(order.size());
  for (const TensorInfo* t : order) update_tensor(hash, *t);
  return hex(hash.finish());
}

}  // namespace driftwood::format
