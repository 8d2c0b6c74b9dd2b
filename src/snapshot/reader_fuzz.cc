// libFuzzer entry point: any bytes as a snapshot, and any header text with a right hash (which a fuzzer would
// never find) before a few units of data. What is accepted must lie inside the file and survive the full
// check.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "snapshot/container.h"
#include "snapshot/header.h"
#include "snapshot/header_scan.h"
#include "snapshot/reader.h"

namespace {

using namespace driftwood::snapshot;

// What the quick reader of headers takes, the general one reads equally (the tables of both are those of the
// header).
void compare_readers(ByteSpan file) {
  const auto decoded = decode_header(file, "fuzz");
  if (!decoded.is_ok()) return;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, decoded->data_start - 8);
  if (!scan_header(text, "fuzz").has_value()) return;
  DecodedHeader start;
  start.data_start = decoded->data_start;
  const auto general = decode_any_spelling(file, "fuzz", std::move(start));
  DW_CHECK(general.is_ok(), "the general reader refuses what the quick one took");
  const auto quick_bytes = encode_header(decoded->header, "fuzz");
  const auto general_bytes = encode_header(general->header, "fuzz");
  DW_CHECK(quick_bytes.is_ok() && general_bytes.is_ok() && quick_bytes->bytes == general_bytes->bytes,
           "the readers of headers do not agree");
}

void read(ByteSpan file) {
  compare_readers(file);
  const auto snapshot = Snapshot::parse(file, "fuzz");
  if (!snapshot.is_ok()) return;
  for (const StoredSection& section : (*snapshot)->sections()) {
    for (const StoredTensor& t : section.tensors) {
      DW_CHECK(t.file_offset + t.extent_bytes <= file.size() && t.bytes.size() <= t.extent_bytes,
               "a tensor outside the file");
      DW_CHECK(t.bytes.empty() || t.bytes.data() == file.data() + t.file_offset, "a tensor not in its place");
      DW_CHECK(t.piece_hashes.empty() || t.piece_hashes_offset + t.piece_hashes.size() <= file.size(),
               "hashes outside the file");
    }
  }
  (void)(*snapshot)->verify_contents().is_ok();  // must not step outside; zeros rarely match
  DW_CHECK((*snapshot)->check_identity((*snapshot)->identity()).is_ok(), "a snapshot unlike itself");
}

// data[0]: units of data; then the header's text from behind the hash.
std::vector<uint8_t> build(const uint8_t* data, size_t size) {
  const std::string start = std::string(kHeaderStart) + "0" + std::string(kHashStart) + std::string(64, '0');
  const size_t text_bytes = start.size() + size - 1;
  const uint64_t header_bytes = padded_bytes(8 + text_bytes);
  std::vector<uint8_t> file(header_bytes, ' ');
  const uint64_t length = header_bytes - 8;
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, start.data(), start.size());
  std::memcpy(file.data() + 8 + start.size(), data + 1, size - 1);
  const std::string hex = to_hex(header_digest(file));
  std::memcpy(file.data() + 8 + start.size() - 64, hex.data(), hex.size());
  file.resize(header_bytes + (data[0] % 8) * kUnitBytes, 0);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read({data, size});
  if (size > 0) read(build(data, size));
  return 0;
}
