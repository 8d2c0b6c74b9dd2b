#include <cstdint>

#include "text/tokenizer.h"

namespace driftwood::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What stands at the start of some bytes.
struct Piece {
  enum Kind { kCharacter, kInvalid, kUnfinished } kind;
  size_t length;
};

// How long the character is that `lead` begins, and between what its second byte must lie (Unicode 15, table
// 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
struct Lead {
  size_t length;
  uint8_t low;
  uint8_t high;
};

Lead lead_of(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// An invalid piece is the longest start of a character that can't go on (Unicode's "maximal subpart"): it
// depends on the bytes only, not on how they were cut.
Piece first_piece(std::string_view bytes) {
  const Lead lead = lead_of(static_cast<uint8_t>(bytes[0]));
  if (lead.length == 0) return {Piece::kInvalid, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Piece::kUnfinished, i};
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xC0) == 0x80;
    if (!fits) return {Piece::kInvalid, i};
  }
  return {Piece::kCharacter, lead.length};
}

}  // namespace

std::string Utf8Assembler::push(std::string_view bytes) {
  std::string joined;
  if (!pending_.empty()) {
    joined = pending_;
    joined += bytes;
    bytes = joined;
  }
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Piece piece = first_piece(bytes);
    if (piece.kind == Piece::kUnfinished) break;
    out += piece.kind == Piece::kCharacter ? bytes.substr(0, piece.length) : kReplacement;
    bytes.remove_prefix(piece.length);
  }
  pending_ = std::string(bytes);
  return out;
}

std::string Utf8Assembler::finish() {
  std::string out;
  if (!pending_.empty()) out = kReplacement;
  pending_.clear();
  return out;
}

}  // namespace driftwood::text
