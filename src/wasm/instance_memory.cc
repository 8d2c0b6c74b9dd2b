// A guest's memory as a value: frozen by copying what was written, or forked without a copy.
#include <algorithm>
#include <cstring>

#include "region/page_runs.h"
#include "wasm/instance.h"

namespace driftwood::wasm {
namespace {

using region::ByteRange;

// An image is made at once where a fork would copy more than this, or than an eighth of the memory, ...
constexpr uint64_t kManyBytes = 256 << 10;
// ... and where forks have copied as much as an image takes, unless each copies no more than this.
constexpr uint64_t kFewBytes = 64 << 10;
// What mapping one more piece costs a child, in bytes copied.
constexpr uint64_t kPieceCost = 8 << 10;

uint64_t patched_bytes(const FrozenMemory& memory) {
  uint64_t total = 0;
  for (const MemoryPatch& patch : memory.patches) total += patch.bytes.size();
  return total;
}

bool has_file(const MemoryImage& image) {
  return std::any_of(image.pieces.begin(), image.pieces.end(),
                     [](const region::FileImage& piece) { return piece.fd != region::kNoFile; });
}

bool is_worth_an_image(uint64_t cost, uint64_t copied_so_far, uint64_t memory_bytes) {
  if (cost > std::max(kManyBytes, memory_bytes / 8)) return true;
  return cost > kFewBytes && copied_so_far > std::max(kManyBytes, memory_bytes);
}

}  // namespace

// Descriptors that nobody keeps open may be anything later: such an image is never told again.
void GuestInstance::adopt_image(const MemoryImage& image) {
  image_is_known_ = image.owner != nullptr || !has_file(image);
  if (image_is_known_) image_ = image;
}

void GuestInstance::place_patches(std::span<const MemoryPatch> patches) {
  for (const MemoryPatch& patch : patches) {
    if (!patch.bytes.empty()) {
      std::memcpy(region_->base() + patch.offset, patch.bytes.data(), patch.bytes.size());
    }
  }
}

// What may differ from image_ (or from zero, where the image is not known).
Result<std::vector<ByteRange>> GuestInstance::changed_ranges() const {
  auto written = region_->dirty_pages(region::DirtySource::kBest, image_.pieces);
  if (image_is_known_) return written;
  if (!written.is_ok() && written.status().code() != Code::kUnimplemented) return written;
  const ByteRange all{0, region_->committed_bytes()};
  return not_zero(written.is_ok() ? std::span<const ByteRange>(*written) : std::span(&all, 1));
}

// The pages that are not all zero; `changed` are those of them that no file says.
std::vector<ByteRange> GuestInstance::not_zero(std::span<const ByteRange> changed) const {
  std::vector<ByteRange> ranges;
  for (const ByteRange& range : region::united(changed, region_->file_ranges())) {
    region::append_nonzero(&ranges, region_->base(), range.offset, range.offset + range.length);
  }
  return ranges;
}

std::vector<MemoryPatch> GuestInstance::patches_in_place(std::span<const ByteRange> ranges) const {
  std::vector<MemoryPatch> patches;
  patches.reserve(ranges.size());
  for (const ByteRange& range : ranges) {
    patches.push_back({range.offset, {region_->base() + range.offset, range.length}});
  }
  return patches;
}

Result<FrozenMemory> GuestInstance::freeze_memory() {
  DW_RETURN_IF_ERROR(usable());
  DW_ASSIGN_OR_RETURN(const std::vector<ByteRange> changed, changed_ranges());
  FrozenMemory frozen;
  frozen.image = image_;
  frozen.image.memory_bytes = memory_bytes();
  frozen.patches = patches_in_place(changed);
  const uint64_t bytes = patched_bytes(frozen);
  if (bytes == 0) return frozen;
  auto copy = std::make_shared_for_overwrite<uint8_t[]>(bytes);
  uint8_t* to = copy.get();
  for (MemoryPatch& patch : frozen.patches) {
    std::memcpy(to, patch.bytes.data(), patch.bytes.size());
    patch.bytes = {to, patch.bytes.size()};
    to += patch.bytes.size();
  }
  frozen.patch_owner = std::move(copy);
  return frozen;
}

Result<FrozenMemory> GuestInstance::fork_memory() {
  DW_RETURN_IF_ERROR(usable());
  DW_ASSIGN_OR_RETURN(const std::vector<ByteRange> changed, changed_ranges());
  FrozenMemory fork;
  fork.image = fork_image_ == nullptr ? image_ : fork_image_->image();
  fork.patches =
      patches_in_place(fork_image_ == nullptr ? changed : fork_image_->differing(region_->base(), changed));
  const uint64_t cost = patched_bytes(fork) + kPieceCost * fork.image.pieces.size();
  copied_by_forks_ += cost;
  if (is_worth_an_image(cost, copied_by_forks_, memory_bytes())) {
    copied_by_forks_ = 0;
    auto made = ForkImage::create({region_->base(), memory_bytes()}, not_zero(changed), changed);
    // One that cannot be made (no descriptor is left, say) costs children copies, not their lives.
    if (made.is_ok()) {
      fork_image_ = std::move(*made);
      fork.image = fork_image_->image();
      fork.patches.clear();
    }
  }
  fork.image.memory_bytes = memory_bytes();
  return fork;
}

}  // namespace driftwood::wasm
