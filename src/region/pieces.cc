// Parts of a region that change places with parts of files.
#include <string>

#include "os/memory_map.h"
#include "region/image_file.h"
#include "region/region.h"

namespace driftwood::region {

Status Region::map_piece(size_t offset, const FileImage& piece) {
  if (piece.fd < 0) return unmap_piece(offset, piece.length);
  DW_RETURN_IF_ERROR(check_image_shape(piece));
  DW_CHECK(offset % os::page_bytes() == 0 && contains(offset, piece.length),
           "a piece replaces whole committed pages");
  return os::map_private_file(base_ + offset, piece.length, piece.fd, piece.offset);
}

Status Region::unmap_piece(size_t offset, size_t length) {
  DW_CHECK(offset % os::page_bytes() == 0 && length % os::page_bytes() == 0 && contains(offset, length),
           "a piece replaces whole committed pages");
  return os::map_zero_pages(base_ + offset, length);
}

}  // namespace driftwood::region
