#include "region/region.h"

#include <string>

#include "os/memory_map.h"

namespace driftwood::region {
namespace {

// Rounds up to the OS page; false when that overflows.
bool round_to_page(size_t bytes, size_t* rounded) {
  const size_t page = os::page_bytes();
  if (bytes > SIZE_MAX - (page - 1)) return false;
  *rounded = (bytes + page - 1) / page * page;
  return true;
}

}  // namespace

size_t os_page_bytes() { return os::page_bytes(); }

Result<std::unique_ptr<Region>> Region::create(size_t reserve_bytes, size_t guard_bytes,
                                               size_t commit_bytes) {
  size_t reserve = 0;
  size_t guard = 0;
  if (!round_to_page(reserve_bytes, &reserve) || !round_to_page(guard_bytes, &guard) ||
      guard > SIZE_MAX - reserve) {
    return invalid_argument("region of " + std::to_string(reserve_bytes) + " + " +
                            std::to_string(guard_bytes) + " guard bytes is larger than the address space");
  }
  if (commit_bytes > reserve) {
    return out_of_range("region: commit of " + std::to_string(commit_bytes) +
                        " bytes is past the reservation of " + std::to_string(reserve));
  }
  // Address space without any page has no pointer; one guard page gives an empty region a base.
  if (reserve == 0 && guard == 0) guard = os::page_bytes();
  DW_ASSIGN_OR_RETURN(uint8_t* base, os::reserve_address_space(reserve + guard));
  std::unique_ptr<Region> region(new Region(base, reserve, guard));
  DW_RETURN_IF_ERROR(region->commit(commit_bytes));
  return region;
}

Result<std::unique_ptr<Region>> Region::create_on_file(const FileImage& image, size_t reserve_bytes,
                                                       size_t guard_bytes, size_t commit_bytes) {
  if (image.offset % kImageAlignment != 0) {
    return invalid_argument("image begins at offset " + std::to_string(image.offset) +
                            " of its file: it must be a multiple of " + std::to_string(kImageAlignment));
  }
  if (image.length % os::page_bytes() != 0) {
    return invalid_argument("image of " + std::to_string(image.length) + " bytes: not whole pages of " +
                            std::to_string(os::page_bytes()));
  }
  if (commit_bytes < image.length) {
    return invalid_argument("image of " + std::to_string(image.length) +
                            " bytes is larger than its region of " + std::to_string(commit_bytes));
  }
  DW_ASSIGN_OR_RETURN(std::unique_ptr<Region> region, create(reserve_bytes, guard_bytes, 0));
  if (image.length > region->reserved_) {
    return out_of_range("image of " + std::to_string(image.length) + " bytes is past the reservation of " +
                        std::to_string(region->reserved_));
  }
  DW_RETURN_IF_ERROR(os::map_private_file(region->base_, image.length, image.fd, image.offset));
  region->image_ = image.length;
  region->committed_ = image.length;
  DW_RETURN_IF_ERROR(region->commit(commit_bytes));
  return region;
}

Region::~Region() { os::release_address_space(base_, reserved_ + guard_); }

Status Region::commit(size_t bytes) {
  if (bytes <= committed_) return Status::ok();
  size_t rounded = 0;
  if (!round_to_page(bytes, &rounded) || rounded > reserved_) {
    return out_of_range("region: commit of " + std::to_string(bytes) + " bytes is past the reservation of " +
                        std::to_string(reserved_));
  }
  DW_RETURN_IF_ERROR(os::commit_pages(base_ + committed_, rounded - committed_));
  committed_ = rounded;
  return Status::ok();
}

Result<Residency> process_residency() {
  DW_ASSIGN_OR_RETURN(const os::ProcessMemory memory, os::process_memory());
  return Residency{memory.rss_bytes, memory.anonymous_bytes};
}

}  // namespace driftwood::region
