#include "snapshot/store_files.h"
namespace driftwood::snapshot {
Result<GcReport> FolderStore::gc(const GcOptions&) { return unimplemented("gc"); }
}  // namespace driftwood::snapshot
