// Blocks that come from files: mapped where the pool may, else read.
#include <algorithm>
#include <string>

#include "kv/block_pool.h"
#include "region/image_file.h"

namespace driftwood::kv {
namespace {

std::string block_text(size_t number) { return "KV block " + std::to_string(number); }

// Does `next` go on where `count` blocks from `start` on end?
bool follows(const region::FileImage& start, int64_t count, const region::FileImage& next) {
  if (start.fd < 0 || next.fd < 0) return start.fd < 0 && next.fd < 0;
  return next.fd == start.fd && next.offset == start.offset + static_cast<uint64_t>(count) * next.length;
}

// Images against their files; neighbours mostly share one, whose size is asked for once.
class SizeOfLast {
 public:
  Status check(const region::FileImage& image) {
    DW_RETURN_IF_ERROR(region::check_image_shape(image));
    if (image.fd >= 0 && image.fd != fd_) {
      DW_ASSIGN_OR_RETURN(bytes_, region::image_file_bytes(image));
      fd_ = image.fd;
    }
    return region::check_image_end(image, bytes_);
  }

 private:
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace

Status BlockPool::check_files(std::span<const region::FileImage> images) const {
  SizeOfLast size;
  for (size_t i = 0; i < images.size(); ++i) {
    const region::FileImage& image = images[i];
    if (static_cast<int64_t>(image.length) != layout_.block_bytes()) {
      return invalid_argument(block_text(i) + " has " + std::to_string(image.length) +
                              " bytes in its file, expected " + std::to_string(layout_.block_bytes()));
    }
    const Status status = size.check(image);
    if (!status.is_ok()) return status.with_context(block_text(i));
  }
  return Status::ok();
}

Status BlockPool::load_files(std::span<const int32_t> ids, std::span<const region::FileImage> images,
                             int64_t tokens) {
  DW_CHECK(ids.size() == images.size() && blocks_for(tokens) == static_cast<int64_t>(ids.size()),
           "as many blocks as the tokens take");
  DW_RETURN_IF_ERROR(check_files(images));
  for (int32_t id : ids) DW_CHECK(references(id) == 1, "saved KV goes into an unshared block");
  std::vector<std::span<const uint8_t>> on_disk;
  for (size_t i = 0; i < ids.size();) {
    if (file_use_ == FileUse::kRead) {
      const int64_t held = tokens - static_cast<int64_t>(i) * kKvBlockTokens;
      DW_RETURN_IF_ERROR(
          read_block(ids[i], images[i], std::min<int64_t>(held, kKvBlockTokens)).with_context(block_text(i)));
      ++i;
      continue;
    }
    int64_t count = 1;
    for (size_t j = i + 1; j < ids.size() && ids[j] == ids[j - 1] + 1 && follows(images[i], count, images[j]);
         ++j) {
      ++count;
    }
    const region::FileImage run{images[i].fd, images[i].offset,
                                static_cast<size_t>(count * layout_.block_bytes())};
    DW_RETURN_IF_ERROR(map_run(ids[i], count, run).with_context(block_text(i)));
    if (!region::seems_cached(run)) on_disk.emplace_back(block(ids[i]), run.length);
    i += static_cast<size_t>(count);
  }
  read_ahead_.request(on_disk);
  return Status::ok();
}

Status BlockPool::map_run(int32_t first, int64_t count, const region::FileImage& run) {
  DW_RETURN_IF_ERROR(region_->map_piece(static_cast<size_t>(first * layout_.block_bytes()), run));
  for (int64_t i = 0; i < count; ++i) set_mapped(first + static_cast<int32_t>(i), run.fd >= 0);
  return Status::ok();
}

Status BlockPool::read_block(int32_t id, const region::FileImage& image, int64_t tokens) {
  DW_RETURN_IF_ERROR(region::read_image(image, block(id)));
  zero_past(id, tokens);
  return Status::ok();
}

void BlockPool::set_mapped(int32_t id, bool mapped) {
  uint8_t& flag = mapped_[static_cast<size_t>(id)];
  mapped_count_.fetch_add(int64_t{mapped} - int64_t{flag}, std::memory_order_relaxed);
  flag = mapped ? 1 : 0;
}

void BlockPool::unmap(std::vector<int32_t>* ids) {
  std::sort(ids->begin(), ids->end());
  for (size_t i = 0; i < ids->size();) {
    size_t end = i + 1;
    while (end < ids->size() && (*ids)[end] == (*ids)[end - 1] + 1) ++end;
    const auto offset = static_cast<size_t>((*ids)[i] * layout_.block_bytes());
    const bool fresh =
        region_->unmap_piece(offset, (end - i) * static_cast<size_t>(layout_.block_bytes())).is_ok();
    for (; i < end; ++i) {
      if (fresh) {
        set_mapped((*ids)[i], false);
      } else {
        // The system has no mapping left to cut this one: it stays for the next owner, as memory like any
        // other that was used before.
        zero_past((*ids)[i], kKvBlockTokens);
      }
    }
  }
}

}  // namespace driftwood::kv
