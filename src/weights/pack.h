// Packing: tensors of a checkpoint, in whatever encoding, into the layouts of tensor/packed_matrix.h. Exact:
// codes keep their values, f16 scales stay f16, bf16 scales widen to f32; unpacking gives the bits that
// decoding the file's bytes gives (pack_test.cc decodes them independently).
//
// A plan says what becomes of one MatrixRequest; packing fills any range of its row groups, so ranges can be
// given to threads freely. Pure apart from the output; no allocation in pack_groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"
#include "tensor/packed_matrix.h"
#include "weights/weight_source.h"

namespace driftwood::weights {

// Changes whenever the bytes that packing produces change; part of the packed cache's identity.
inline constexpr uint32_t kPackedLayoutVersion = 1;

// How one tensor packs.
struct PackedForm {
  PackedLayout layout = PackedLayout::kF32;
  bool has_min = false;
  int32_t zero_point = 0;
  bool operator==(const PackedForm&) const = default;
};
// "P4H with minima, zero point 0".
std::string form_name(const PackedForm& form);

// invalid_argument for a dtype or shape that cannot be a weight matrix.
Result<PackedForm> packed_form(const format::TensorInfo& tensor);

struct MatrixPlan {
  std::string key;
  PackedMatrix matrix;                           // data is null
  std::vector<const format::TensorInfo*> parts;  // borrowed from the checkpoint
  std::vector<int64_t> part_begin;               // first row of each part, then the row count
};
Result<MatrixPlan> plan_matrix(const format::Checkpoint& checkpoint, const MatrixRequest& request);

// Writes row groups [begin, end) at their places in `out`, the start of the whole packed matrix.
void pack_groups(const MatrixPlan& plan, int64_t begin, int64_t end, uint8_t* out);

// Row `row` of a packed matrix as f32, by the embed rule of docs/numerics.md.
void unpack_row(const PackedMatrix& matrix, int64_t row, float* out);

// A dense vector (rank 1) as f32.
Status copy_vector(const format::Checkpoint& checkpoint, const VectorRequest& request, float* out);
Result<int64_t> vector_length(const format::Checkpoint& checkpoint, const VectorRequest& request);

}  // namespace driftwood::weights
