#include "kernels/kernel_table.h"

namespace driftwood::kernels {
namespace {

constexpr const char* kNeonFeatures[] = {"asimd", "asimddp"};
constexpr TableEntry kTables[] = {
    {"neon", neon::table, kNeonFeatures},
    {"ref", ref::table, {}},
};

}  // namespace

std::span<const TableEntry> built_tables() { return kTables; }

}  // namespace driftwood::kernels
