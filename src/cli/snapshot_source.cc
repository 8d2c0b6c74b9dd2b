#include "cli/snapshot_source.h"

#include <cstring>
#include <filesystem>

#include "actor/actor_sections.h"
#include "actor/attributes.h"
#include "snapshot/container.h"

namespace driftwood::cli {

bool names_a_file(const std::string& which, snapshot::Store* store) {
  if (which.find('/') != std::string::npos) return true;
  if (store != nullptr && store->resolve(which).status().code() != Code::kNotFound) return false;
  std::error_code error;
  return std::filesystem::is_regular_file(which, error);
}

snapshot::Store::AcceptFile accept_actor(const std::string& path) {
  return [path](const snapshot::Snapshot& file) {
    const Status good = actor::check_portable(file);
    return good.is_ok()
               ? good
               : good.with_context(path + ": its bytes are whole, but it is no actor that can go on");
  };
}

Result<std::unique_ptr<SnapshotView>> SnapshotView::open(const StoreFlags& flags, const std::string& which) {
  std::unique_ptr<SnapshotView> view(new SnapshotView());
  view->which_ = which;
  auto store = open_store(flags, StoreUse::kRead);
  if (names_a_file(which, store.is_ok() ? store->get() : nullptr)) {
    DW_ASSIGN_OR_RETURN(view->file_, snapshot::Snapshot::open(which));
    DW_RETURN_IF_ERROR(view->file_->verify_contents(hash_threads()));
    return view;
  }
  DW_RETURN_IF_ERROR(store.status());
  view->store_ = std::move(*store);
  DW_ASSIGN_OR_RETURN(view->stored_, view->store_->load(which));
  return view;
}

Status SnapshotView::read(const snapshot::StoredTensor& tensor, uint64_t offset,
                          std::span<uint8_t> out) const {
  DW_CHECK(offset <= bytes_of(tensor) && out.size() <= bytes_of(tensor) - offset, "a read within the tensor");
  if (stored_ != nullptr && tensor.piece_bytes != 0) return stored_->read(tensor, offset, out);
  if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data() + offset, out.size());
  return Status::ok();
}

std::vector<snapshot::Digest> SnapshotView::digests(const snapshot::StoredTensor& tensor) const {
  if (stored_ != nullptr) {
    const auto known = stored_->digests(tensor);
    return {known.begin(), known.end()};
  }
  std::vector<snapshot::Digest> digests(tensor.piece_hashes.size() / sizeof(snapshot::Digest));
  if (!digests.empty()) {
    std::memcpy(digests.data(), tensor.piece_hashes.data(), digests.size() * sizeof(snapshot::Digest));
  }
  return digests;
}

std::string module_name(const snapshot::StoredSnapshot& stored) {
  const snapshot::StoredSection* section = stored.find(actor::names::kModule);
  std::string name;
  if (section == nullptr || !section->attributes.contains("name") ||
      !actor::unescape(section->attributes.at("name"), &name)) {
    return "module";
  }
  return name;
}

uint64_t bytes_of(const snapshot::StoredTensor& tensor) {
  return snapshot::tensor_bytes(tensor.dtype, tensor.shape).value_or(0);
}

}  // namespace driftwood::cli
