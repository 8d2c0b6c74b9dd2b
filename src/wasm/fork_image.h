// ForkImage: a guest's memory at one moment in an anonymous file, for the children that are forked from it.
//
// Guests that live on it hold its owner, which is the descriptor alone; the guest it was made of keeps the
// rest to tell what it wrote since. Immutable once made; belongs to one guest.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "region/region.h"
#include "wasm/frozen_state.h"

namespace driftwood::wasm {

class ForkImage {
 public:
  // `not_zero`: the pages of the memory, whole Wasm pages, that are not all zero. `changed`: those that may
  // differ from what the guest began with.
  static Result<std::unique_ptr<ForkImage>> create(std::span<const uint8_t> memory,
                                                   std::span<const region::ByteRange> not_zero,
                                                   std::span<const region::ByteRange> changed);

  const MemoryImage& image() const { return image_; }
  // The pages that differ from the image, after whose end all is zero. `changed` as above, of now: what is in
  // neither is as the guest began with it, then and now.
  std::vector<region::ByteRange> differing(const uint8_t* memory,
                                           std::span<const region::ByteRange> changed) const;

 private:
  ForkImage() = default;
  MemoryImage image_;
  std::vector<region::ByteRange> changed_;
  std::unique_ptr<region::Region> view_;  // its bytes; only read
};

}  // namespace driftwood::wasm
