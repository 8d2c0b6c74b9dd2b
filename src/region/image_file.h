// Images in files without mapping them: checked, or read.
//
// Stateless, any thread. Errors name what is wrong with the image and the values; whose image it is the
// caller adds.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "region/region.h"

namespace driftwood::region {

// invalid_argument: an offset that is no multiple of kImageAlignment, a length that is not whole OS pages.
Status check_image_shape(const FileImage& image);

// Bytes of the regular file behind an image; invalid_argument for any other kind of file.
Result<uint64_t> image_file_bytes(const FileImage& image);

// data_loss unless a file of `file_bytes` bytes holds the whole image.
Status check_image_end(const FileImage& image, uint64_t file_bytes);

// Copies the image to `to`; zeros where it needs no file. data_loss if the file ends before the image does.
Status read_image(const FileImage& image, uint8_t* to);

// True if the image seems to be in memory already, by a look at a page here and there.
bool seems_cached(const FileImage& image);

}  // namespace driftwood::region
