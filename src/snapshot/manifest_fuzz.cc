// libFuzzer entry point: what a store's manifest says of places, beside a small pack. The input is any bytes
// as a manifest; any header text with a right hash; and runs, packs and a description in an otherwise right
// manifest. What is accepted must lie inside the pack and be readable to the last byte.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "snapshot/container.h"
#include "snapshot/contents.h"
#include "snapshot/pack_file.h"
#include "snapshot/stored_snapshot.h"

namespace {

using namespace driftwood;
using namespace driftwood::snapshot;

std::vector<uint8_t> write_out(const SnapshotContents& contents) {
  std::vector<uint8_t> file;
  auto header = describe(contents, "fuzz");
  if (!header.is_ok()) return file;
  const std::vector<TensorDigests> digests = hash_contents(contents, 1);
  set_digests(&*header, digests);
  const auto encoded = encode_header(*header, "fuzz");
  if (!encoded.is_ok()) return file;
  file = encoded->bytes;
  const auto append = [&](ByteSpan bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
    file.resize(padded_bytes(file.size()), 0);
  };
  size_t index = 0;
  for (const Section& section : contents.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      std::vector<uint8_t> bytes;
      for (const ByteSpan chunk : tensor.chunks) bytes.insert(bytes.end(), chunk.begin(), chunk.end());
      append(bytes);
      if (tensor.piece_bytes != 0) append(digest_bytes(digests[index].pieces));
      ++index;
    }
  }
  return file;
}

// Two pieces of a unit and two of 4 KiB.
struct Pack {
  std::vector<uint8_t> units = std::vector<uint8_t>(2 * kUnitBytes, 3);
  std::vector<uint8_t> small = std::vector<uint8_t>(2 * kUnitBytes, 0);
  std::vector<uint8_t> digests = std::vector<uint8_t>(64, 5);
  std::vector<uint8_t> file;
  std::shared_ptr<PackFile> pack;
  Pack() {
    const std::vector<int64_t> shape = {2, 65536};
    SnapshotContents contents;
    contents.sections = {{{"pack", "pack", {}},
                          {{{"pieces65536", DType::kU8, shape, "[piece][byte]", kUnitBytes}, {units}, {}},
                           {{"pieces4096", DType::kU8, shape, "[piece][byte]", kUnitBytes}, {small}, {}},
                           {{"digests4096", DType::kU8, {2, 32}, "[piece][digest]"}, {digests}, {}}}}};
    file = write_out(contents);
    Digest name;
    DW_CHECK(from_hex((*Snapshot::parse(file, "pack"))->hash(), &name), "a hash");
    auto parsed = PackFile::parse(file, "pack", name);
    DW_CHECK(parsed.is_ok(), "the pack is right");
    pack = *parsed;
  }
};

void check(ByteSpan bytes) {
  static const Pack pack;
  const auto manifest = Manifest::parse(bytes, "fuzz", "");
  if (!manifest.is_ok()) return;
  (void)(*manifest)->verify(1).is_ok();
  (void)(*manifest)->bytes_total();
  uint64_t pieces = 0;
  for (const Manifest::Placed& tensor : (*manifest)->placed()) pieces += tensor.digests.size();
  DW_CHECK(pieces * sizeof(Digest) <= bytes.size(), "more pieces than digests");
  const std::vector<std::shared_ptr<PackFile>> packs((*manifest)->packs().size(), pack.pack);
  const auto snapshot = PackedSnapshot::create(*manifest, packs);
  if (!snapshot.is_ok()) return;
  (void)(*snapshot)->check_trusted_pieces().is_ok();
  for (const Manifest::Placed& tensor : (*manifest)->placed()) {
    if (tensor.bytes > 16 * kUnitBytes) return;
  }
  (void)(*snapshot)->verify_other_pieces(1).is_ok();
  static const std::vector<uint8_t> zeros(kUnitBytes, 0);
  for (const Section& section : (*snapshot)->contents(zeros).sections) {
    for (const SectionTensor& tensor : section.tensors) {
      uint64_t sum = 0;
      for (const ByteSpan chunk : tensor.chunks) sum += chunk.size() + (chunk.back() & 0);
      DW_CHECK(sum == *tensor_bytes(tensor.dtype, tensor.shape), "chunks are not the tensor");
    }
  }
}

// data[0]: pieces of the tensor; data[1]: packs; data[2]: length of its description; then that, then runs.
std::vector<uint8_t> build_places(const uint8_t* data, size_t size) {
  const size_t pieces = data[0] % 9, packs = data[1] % 4;
  const size_t text = std::min<size_t>(data[2], size - 3);
  const std::string description(reinterpret_cast<const char*>(data + 3), text);
  const std::vector<uint8_t> digests(pieces * 32, 5), names(packs * 32, 1);
  const size_t runs = (size - 3 - text) / 24;
  const ByteSpan run_bytes(data + 3 + text, runs * 24);
  const auto rows = [](size_t n) { return static_cast<int64_t>(n); };
  SnapshotContents contents;
  contents.sections = {
      {{"a", "k", {}}, {{{"b", DType::kU8, {rows(pieces), 32}, "[piece][digest]"}, {digests}, {}}}},
      {{".store", "store", {{"store", "0"}, {"snapshot", std::string(64, 'a')}, {"a.b", description}}},
       {{{"packs", DType::kU8, {rows(packs), 32}, "[pack][hash]"}, {names}, {}},
        {{"runs", DType::kU64, {rows(runs), 3}, "[run](pieces,pack,offset)"}, {run_bytes}, {}}}}};
  return write_out(contents);
}

// Any header text behind a right start and with a right hash.
std::vector<uint8_t> build_header(const uint8_t* data, size_t size) {
  const std::string start = std::string(kHeaderStart) + "0" + std::string(kHashStart) + std::string(64, '0');
  const uint64_t header_bytes = padded_bytes(8 + start.size() + size);
  std::vector<uint8_t> file(header_bytes, ' ');
  const uint64_t length = header_bytes - 8;
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, start.data(), start.size());
  std::memcpy(file.data() + 8 + start.size(), data, size);
  const std::string hex = to_hex(header_digest(file));
  std::memcpy(file.data() + 8 + start.size() - 64, hex.data(), hex.size());
  file.resize(header_bytes + 4 * kUnitBytes, 0);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check({data, size});
  if (size > 0) check(build_header(data, size));
  if (size > 3) check(build_places(data, size));
  return 0;
}
