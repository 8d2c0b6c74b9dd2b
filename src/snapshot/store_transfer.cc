#include "snapshot/store_files.h"
namespace driftwood::snapshot {
Result<WrittenSnapshot> FolderStore::export_file(std::string_view, const std::string&) {
  return unimplemented("x");
}
Result<SaveReport> FolderStore::import_file(const std::string&, const std::string&) {
  return unimplemented("x");
}
}  // namespace driftwood::snapshot
