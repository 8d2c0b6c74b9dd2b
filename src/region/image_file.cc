#include "region/image_file.h"

#include <cstring>
#include <span>
#include <string>

#include "os/folder.h"
#include "os/os_error.h"
#include "os/page_cache.h"

namespace driftwood::region {
namespace {

std::string descriptor_text(int fd) { return "image file, descriptor " + std::to_string(fd); }

}  // namespace

Status check_image_shape(const FileImage& image) {
  if (image.length % os_page_bytes() != 0) {
    return invalid_argument("image of " + std::to_string(image.length) + " bytes: not whole pages of " +
                            std::to_string(os_page_bytes()));
  }
  if (image.fd < 0 || image.offset % kImageAlignment == 0) return Status::ok();
  return invalid_argument("image begins at offset " + std::to_string(image.offset) +
                          " of its file: it must be a multiple of " + std::to_string(kImageAlignment));
}

Result<uint64_t> image_file_bytes(const FileImage& image) {
  os::FileInfo info;
  if (const int error = os::info_of(image.fd, &info); error != 0) {
    return os::errno_status(error, descriptor_text(image.fd));
  }
  if (info.kind == os::FileKind::kRegular) return info.size_bytes;
  return invalid_argument(descriptor_text(image.fd) + ": it is no regular file");
}

Status check_image_end(const FileImage& image, uint64_t file_bytes) {
  if (image.fd < 0 || (image.offset <= file_bytes && image.length <= file_bytes - image.offset)) {
    return Status::ok();
  }
  return data_loss("image file has " + std::to_string(file_bytes) + " bytes, the image needs " +
                   std::to_string(image.length) + " from offset " + std::to_string(image.offset));
}

Status read_image(const FileImage& image, uint8_t* to) {
  if (image.fd < 0) {
    std::memset(to, 0, image.length);
    return Status::ok();
  }
  for (size_t at = 0; at < image.length;) {
    size_t done = 0;
    const std::span<uint8_t> rest(to + at, image.length - at);
    if (const int error = os::read_some_at(image.fd, rest, image.offset + at, &done); error != 0) {
      return os::errno_status(error, descriptor_text(image.fd));
    }
    if (done == 0) return check_image_end(image, image.offset + at);
    at += done;
  }
  return Status::ok();
}

bool seems_cached(const FileImage& image) {
  constexpr size_t kLookEvery = size_t{4} << 20;
  if (image.fd < 0 || image.length == 0) return true;
  for (size_t at = 0; at < image.length; at += kLookEvery) {
    if (!os::is_cached(image.fd, image.offset + at)) return false;
  }
  return os::is_cached(image.fd, image.offset + image.length - 1);
}

}  // namespace driftwood::region
