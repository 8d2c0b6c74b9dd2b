// Snapshots leave a store as one portable file, and come in as one.
#include <optional>

#include "os/mapped_file.h"
#include "os/mapped_memory.h"
#include "snapshot/container.h"
#include "snapshot/contents.h"
#include "snapshot/store_files.h"

namespace driftwood::snapshot {
namespace {

// A checked file as contents, its digests known. Borrows.
SnapshotContents contents_of(const Snapshot& file) {
  SnapshotContents contents = stored_contents(file.identity(), file.origin(), file.sections());
  for (size_t i = 0; i < contents.sections.size(); ++i) {
    for (size_t j = 0; j < contents.sections[i].tensors.size(); ++j) {
      const StoredTensor& tensor = file.sections()[i].tensors[j];
      if (tensor.piece_bytes == 0) continue;
      const auto* digests = reinterpret_cast<const Digest*>(tensor.piece_hashes.data());
      contents.sections[i].tensors[j].known.assign(digests,
                                                   digests + tensor.piece_hashes.size() / sizeof(Digest));
    }
  }
  return contents;
}

// A header that says the same in other words would get another hash.
Status check_canonical(const Snapshot& file, ByteSpan bytes, const std::string& path) {
  Header header{file.identity(), file.origin(), {}};
  for (const StoredSection& section : file.sections()) {
    DirectorySection entry;
    static_cast<SectionDescription&>(entry) = section;
    entry.tensors.assign(section.tensors.begin(), section.tensors.end());
    header.sections.push_back(std::move(entry));
  }
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded, encode_header(header, path));
  if (encoded.bytes.size() <= bytes.size() && to_hex(encoded.hash) == file.hash()) return Status::ok();
  return invalid_argument(
      path +
      ": its header is not written as this program writes headers, so that a store could not keep its hash");
}

}  // namespace

Result<WrittenSnapshot> FolderStore::export_file(std::string_view which, const std::string& path) {
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_reading());
  DW_ASSIGN_OR_RETURN(const std::string hash, resolve_locked(which));
  DW_ASSIGN_OR_RETURN(const auto snapshot, load_locked(hash, Verify::kIfTouched));
  const Manifest& manifest = snapshot->manifest();
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded,
                      encode_header(manifest.portable_header(), manifest.path()));
  if (to_hex(encoded.hash) != hash) {
    return data_loss(manifest.path() + ": damaged: its contents are of snapshot " + to_hex(encoded.hash));
  }
  static constexpr uint8_t kZeros[kUnitBytes] = {};
  const SnapshotContents contents = snapshot->contents(kZeros);
  DW_ASSIGN_OR_RETURN(os::AtomicFile file, os::AtomicFile::create(path, os::FileAccess::kPrivate));
  WrittenSnapshot written{hash, 0};
  DW_ASSIGN_OR_RETURN(written.file_bytes, write_container(&file, encoded, contents, manifest.digests()));
  DW_RETURN_IF_ERROR(file.commit());
  return written;
}

// The file is read into memory and checked there: what is saved is what was checked, whoever writes the file
// meanwhile.
Result<SaveReport> FolderStore::import_file(const std::string& path, const std::string& name,
                                            const AcceptFile& accept) {
  DW_RETURN_IF_ERROR(folder_.check_writable());
  if (!name.empty()) DW_RETURN_IF_ERROR(folder_.check_name(name));
  DW_ASSIGN_OR_RETURN(const os::FileCopy copy, os::FileCopy::read(path));
  DW_ASSIGN_OR_RETURN(const auto file, Snapshot::parse(copy.bytes(), path));
  DW_RETURN_IF_ERROR(file->verify_contents(threads_));
  DW_RETURN_IF_ERROR(check_canonical(*file, copy.bytes(), path));
  if (accept) DW_RETURN_IF_ERROR(accept(*file));
  return save(contents_of(*file), name);
}

}  // namespace driftwood::snapshot
