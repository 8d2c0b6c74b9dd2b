// Runs of pages: what finding and copying written pages share.
//
// Pure functions over bytes; any thread. Ranges are whole OS pages, ascending, neighbours joined.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "region/region.h"

namespace driftwood::region {

// Adds [offset, offset + length), which begins at or after the end of the last range.
inline void append_range(std::vector<ByteRange>* ranges, size_t offset, size_t length) {
  if (length == 0) return;
  if (!ranges->empty() && ranges->back().offset + ranges->back().length == offset) {
    ranges->back().length += length;
  } else {
    ranges->push_back(ByteRange{offset, length});
  }
}

inline bool is_zero(const uint8_t* bytes, size_t count) {
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

// Adds the pages of [begin, end) that are not all zero; offsets count from `base`.
inline void append_nonzero(std::vector<ByteRange>* ranges, const uint8_t* base, size_t begin, size_t end) {
  const size_t page = os_page_bytes();
  for (size_t at = begin; at < end; at += page) {
    if (!is_zero(base + at, page)) append_range(ranges, at, page);
  }
}

// What is in one or the other; they may overlap.
inline std::vector<ByteRange> united(std::span<const ByteRange> a, std::span<const ByteRange> b) {
  std::vector<ByteRange> sorted(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), sorted.begin(),
             [](const ByteRange& x, const ByteRange& y) { return x.offset < y.offset; });
  std::vector<ByteRange> ranges;
  size_t end = 0;
  for (const ByteRange& range : sorted) {
    const size_t begin = std::max(range.offset, end);
    end = std::max(end, range.offset + range.length);
    if (begin < end) append_range(&ranges, begin, end - begin);
  }
  return ranges;
}

}  // namespace driftwood::region
