#include "snapshot/container.h"
#include "snapshot/manifest.h"

namespace driftwood::snapshot {
namespace {

std::string description_of(const TensorDescription& tensor) {
  std::string shape;
  for (const int64_t d : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
  return std::string(dtype_name(tensor.dtype)) + " " + std::to_string(tensor.piece_bytes) + " " +
         (shape.empty() ? "-" : shape) + " " + tensor.layout;
}

SectionTensor table(const std::string& name, DType dtype, size_t rows, int64_t columns, const char* layout,
                    ByteSpan bytes) {
  SectionTensor t{{name, dtype, {static_cast<int64_t>(rows), columns}, layout}, {}, {}};
  if (!bytes.empty()) t.chunks = {bytes};
  return t;
}

}  // namespace

Status check_storable(const SnapshotContents& contents, const std::string& place) {
  for (const Section& section : contents.sections) {
    if (!section.name.starts_with(kStoreSection)) continue;
    return invalid_argument(place + ": section '" + section.name.substr(0, kMaxNameBytes) +
                            "': names that begin with \".store\" are the store's own");
  }
  return Status::ok();
}

Result<uint64_t> write_manifest(os::AtomicFile* file, const std::string& path,
                                const SnapshotContents& contents, const std::vector<TensorDigests>& digests,
                                const ManifestPlaces& places) {
  SnapshotContents stored{contents.identity, contents.origin, {}};
  std::vector<TensorDigests> stored_digests;
  Section store{{kStoreSection, "store", {{"store", std::string(kStoreFormat)}, {"snapshot", places.hash}}},
                {}};
  size_t index = 0;
  for (const Section& section : contents.sections) {
    Section entry;
    static_cast<SectionDescription&>(entry) = section;
    for (const SectionTensor& tensor : section.tensors) {
      const TensorDigests& of = digests[index++];
      if (tensor.piece_bytes == 0) {
        entry.tensors.push_back(tensor);
        stored_digests.push_back({of.whole, {}});
        continue;
      }
      const ByteSpan bytes = digest_bytes(of.pieces);
      store.attributes[section.name + "." + tensor.name] = description_of(tensor);
      entry.tensors.push_back(table(tensor.name, DType::kU8, of.pieces.size(), 32, "[piece][digest]", bytes));
      stored_digests.push_back({blake3(bytes), {}});
    }
    stored.sections.push_back(std::move(entry));
  }
  const ByteSpan packs = digest_bytes(places.packs);
  const ByteSpan runs(reinterpret_cast<const uint8_t*>(places.runs.data()),
                      places.runs.size() * sizeof(PieceRun));
  store.tensors = {
      table("packs", DType::kU8, places.packs.size(), 32, "[pack][hash]", packs),
      table("runs", DType::kU64, places.runs.size(), 3, "[run](pieces,pack,offset)", runs),
  };
  stored_digests.push_back({blake3(packs), {}});
  stored_digests.push_back({blake3(runs), {}});
  stored.sections.push_back(std::move(store));
  DW_ASSIGN_OR_RETURN(Header header, describe(stored, path));
  set_digests(&header, stored_digests);
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded, encode_header(header, path));
  return write_container(file, encoded, stored, stored_digests);
}

}  // namespace driftwood::snapshot
