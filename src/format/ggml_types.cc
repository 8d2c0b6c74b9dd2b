#include "format/ggml_types.h"

namespace driftwood::format {
namespace {

constexpr std::optional<Encoding> kUnread = std::nullopt;

constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4, Encoding::kDense, DType::kF32},
    {1, "F16", 1, 2, Encoding::kDense, DType::kF16},
    {2, "Q4_0", 32, 18, Encoding::kQ4_0},
    {3, "Q4_1", 32, 20, Encoding::kQ4_1},
    {6, "Q5_0", 32, 22, Encoding::kQ5_0},
    {7, "Q5_1", 32, 24, Encoding::kQ5_1},
    {8, "Q8_0", 32, 34, Encoding::kQ8_0},
    {9, "Q8_1", 32, 36, kUnread},
    {10, "Q2_K", 256, 84, kUnread},
    {11, "Q3_K", 256, 110, kUnread},
    {12, "Q4_K", 256, 144, kUnread},
    {13, "Q5_K", 256, 176, kUnread},
    {14, "Q6_K", 256, 210, kUnread},
    {15, "Q8_K", 256, 292, kUnread},
    {16, "IQ2_XXS", 256, 66, kUnread},
    {17, "IQ2_XS", 256, 74, kUnread},
    {18, "IQ3_XXS", 256, 98, kUnread},
    {19, "IQ1_S", 256, 50, kUnread},
    {20, "IQ4_NL", 32, 18, kUnread},
    {21, "IQ3_S", 256, 110, kUnread},
    {22, "IQ2_S", 256, 82, kUnread},
    {23, "IQ4_XS", 256, 136, kUnread},
    {24, "I8", 1, 1, kUnread},
    {25, "I16", 1, 2, kUnread},
    {26, "I32", 1, 4, kUnread},
    {27, "I64", 1, 8, kUnread},
    {28, "F64", 1, 8, kUnread},
    {29, "IQ1_M", 256, 56, kUnread},
    {30, "BF16", 1, 2, Encoding::kDense, DType::kBF16},
    {34, "TQ1_0", 256, 54, kUnread},
    {35, "TQ2_0", 256, 66, kUnread},
    {39, "MXFP4", 32, 17, kUnread},
};

}  // namespace

const GgmlType* find_ggml_type(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace driftwood::format
