#include "kernels/kernel_table.h"

namespace driftwood::kernels {
namespace {

constexpr TableEntry kTables[] = {{"ref", ref::table, {}}};

}  // namespace

std::span<const TableEntry> built_tables() { return kTables; }

}  // namespace driftwood::kernels
