#include "kernels/kernel_table.h"

namespace driftwood::kernels {
namespace {

constexpr const char* kAvx2Features[] = {"avx2", "fma", "f16c"};
constexpr const char* kAvxVnniFeatures[] = {"avx2", "fma", "f16c", "avxvnni"};
constexpr const char* kAvx512Features[] = {"avx512f",    "avx512bw", "avx512vl", "avx512dq",
                                           "avx512vnni", "fma",      "f16c"};
constexpr TableEntry kTables[] = {
    {"avx512", avx512::table, kAvx512Features},
    {"avxvnni", avxvnni::table, kAvxVnniFeatures},
    {"avx2", avx2::table, kAvx2Features},
    {"ref", ref::table, {}},
};

}  // namespace

std::span<const TableEntry> built_tables() { return kTables; }

}  // namespace driftwood::kernels
