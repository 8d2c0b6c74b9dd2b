// Header: what the first bytes of a snapshot say, as values, and its text form.
//
// encode_header() gives the file's first bytes, a multiple of 64 KiB: length u64, JSON, spaces.
// decode_header() reads them back from a whole file and places every tensor. The text begins with fixed bytes
// that hold the format number and the header's own BLAKE3, so both are checked before anything is parsed.
//
// Errors name the file and the section or tensor: failed_precondition (another format number),
// invalid_argument (not a snapshot, or one that breaks the format), data_loss (damaged or truncated).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "snapshot/identity.h"
#include "snapshot/section.h"

namespace driftwood::snapshot {

struct DirectoryTensor : TensorDescription {
  Digest digest{};  // of the bytes; with piece_bytes, of the piece hashes
};

struct DirectorySection : SectionDescription {
  std::vector<DirectoryTensor> tensors;
};

struct Header {
  Identity identity;
  Origin origin;
  std::vector<DirectorySection> sections;
};

// One tensor of the file, in the order of the data: of the directory, or the piece hashes of one of it.
struct Placement {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;  // stored
  uint64_t begin = 0;          // in the data section
  uint64_t bytes = 0;          // true
  uint64_t extent_bytes = 0;   // stored
};

inline constexpr std::string_view kHeaderStart = "{\"__metadata__\":{\"driftwood_snapshot\":\"";
inline constexpr std::string_view kHashStart = "\",\"header_hash\":\"";

// invalid_argument if names, shapes or sizes break the rules. `place` begins the message.
Status check_header(const Header& header, const std::string& place);

// Precondition: check_header().
std::vector<Placement> place_tensors(const Header& header);

struct EncodedHeader {
  std::vector<uint8_t> bytes;
  Digest hash{};
};
// At least `min_bytes` long: for a file whose data begin at a place that was chosen before.
Result<EncodedHeader> encode_header(const Header& header, const std::string& place, uint64_t min_bytes = 0);

struct DecodedHeader {
  Header header;
  Digest hash{};
  uint64_t data_start = 0;
  std::vector<Placement> placements;
};
Result<DecodedHeader> decode_header(ByteSpan file, const std::string& name);
// The part of it that reads JSON of any spelling (header_scan.h has the other); `decoded` holds the hash and where
// data starts.
Result<DecodedHeader> decode_any_spelling(ByteSpan file, const std::string& name, DecodedHeader decoded);

// The digest of header bytes [0, data start) with the hash's own digits taken as '0'.
Digest header_digest(ByteSpan header);

}  // namespace driftwood::snapshot
