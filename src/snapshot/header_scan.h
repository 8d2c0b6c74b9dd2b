// scan_header(): reads a header that is spelled as encode_header() spells it, in one pass and without a tree.
//
// Which is every header that this program wrote. Any other spelling (white space, another order, texts beyond
// ASCII) and anything wrong is not taken: decode_header() then reads it with the general parser, which also
// finds the words for what is wrong. What is taken here is read equally there; the fuzzer compares. About a
// tenth of the general parser's time, which was most of what opening a snapshot cost.
#pragma once

#include <optional>
#include <string_view>

#include "snapshot/header.h"

namespace driftwood::snapshot {

struct ScannedHeader {
  Header header;
  std::vector<Placement> placements;  // of check_header()ed sections; equal to the file's table
};

// `text`: the header after its length, with its padding. `place` begins messages that nobody sees.
std::optional<ScannedHeader> scan_header(std::string_view text, const std::string& place);

}  // namespace driftwood::snapshot
