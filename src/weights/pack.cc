#include "weights/pack.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "weights/pack_blocks.h"

namespace driftwood::weights {
namespace {

using format::Encoding;
using format::TensorInfo;

// Blocks of one row packed before the next row of the group has its turn: 16 rows of 32 records stay in
// L1/L2.
constexpr int64_t kBlocksAtOnce = 32;
constexpr int64_t kDenseColumnsAtOnce = 256;

const char* layout_name(PackedLayout layout) {
  switch (layout) {
    case PackedLayout::kP4H:
      return "P4H";
    case PackedLayout::kP4F:
      return "P4F";
    case PackedLayout::kP8H:
      return "P8H";
    case PackedLayout::kP8F:
      return "P8F";
    case PackedLayout::kF32:
      return "F32";
    case PackedLayout::kF16:
      return "F16";
    case PackedLayout::kBF16:
      return "BF16";
  }
  return "?";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<PackedForm> dense_form(const TensorInfo& t) {
  if (t.dtype == DType::kF32) return PackedForm{PackedLayout::kF32};
  if (t.dtype == DType::kF16) return PackedForm{PackedLayout::kF16};
  if (t.dtype == DType::kBF16) return PackedForm{PackedLayout::kBF16};
  return invalid_argument("tensor '" + t.name + "' has dtype " + std::string(dtype_name(t.dtype)) +
                          "; a weight matrix must be F32, F16, BF16 or quantised");
}

Result<const TensorInfo*> find_tensor(const format::Checkpoint& checkpoint, const std::string& name) {
  const TensorInfo* t = checkpoint.find(name);
  if (t == nullptr) return not_found(checkpoint.path() + ": the model lacks tensor '" + name + "'");
  return t;
}

// Row `row` of the joined matrix: which tensor, and which of its rows.
struct RowPlace {
  const TensorInfo* tensor;
  int64_t row;
};
RowPlace place_of(const MatrixPlan& plan, int64_t row) {
  const auto after = std::upper_bound(plan.part_begin.begin(), plan.part_begin.end(), row);
  const auto part = static_cast<size_t>(after - plan.part_begin.begin()) - 1;
  return {plan.parts[part], row - plan.part_begin[part]};
}

LaneJob lane_job(const RowPlace& place, const PackedMatrix& m, int lane) {
  const TensorInfo& t = *place.tensor;
  LaneJob job{};
  job.codes =
      t.bytes.data() + static_cast<size_t>(place.row * m.blocks()) * file_block_bytes(t.encoding, t.bits);
  job.record_bytes = block_record_bytes(m.layout, m.has_min);
  job.lane = lane;
  if (t.encoding == Encoding::kMlxAffine) {
    const auto row_bytes = static_cast<size_t>(m.cols / t.group_size) * dtype_size(t.scale_dtype);
    job.scales = t.scales.data() + static_cast<size_t>(place.row) * row_bytes;
    job.biases = t.biases.data() + static_cast<size_t>(place.row) * row_bytes;
    job.blocks_per_group = t.group_size / kQuantBlock;
    job.scale_dtype = t.scale_dtype;
  }
  return job;
}

void pack_quantised_group(const MatrixPlan& plan, int64_t group, uint8_t* out) {
  const PackedMatrix& m = plan.matrix;
  const int lanes = static_cast<int>(std::min<int64_t>(kRowGroup, m.rows - group * kRowGroup));
  LaneJob jobs[kRowGroup];
  PackBlocks pack[kRowGroup];
  size_t file_bytes[kRowGroup];
  for (int lane = 0; lane < lanes; ++lane) {
    const RowPlace place = place_of(plan, group * kRowGroup + lane);
    jobs[lane] = lane_job(place, m, lane);
    pack[lane] = pack_blocks_of(place.tensor->encoding, place.tensor->bits);
    file_bytes[lane] = file_block_bytes(place.tensor->encoding, place.tensor->bits);
  }
  const size_t record_bytes = block_record_bytes(m.layout, m.has_min);
  for (int64_t b = 0; b < m.blocks(); b += kBlocksAtOnce) {
    const int64_t count = std::min(kBlocksAtOnce, m.blocks() - b);
    for (int lane = 0; lane < lanes; ++lane) {
      LaneJob& job = jobs[lane];
      job.first_block = b;
      job.count = count;
      job.record = out + static_cast<size_t>(b) * record_bytes;
      pack[lane](job);
      job.codes += static_cast<size_t>(count) * file_bytes[lane];
    }
  }
}

template <typename Element>
void pack_dense_group(const MatrixPlan& plan, int64_t group, uint8_t* out) {
  const PackedMatrix& m = plan.matrix;
  const int lanes = static_cast<int>(std::min<int64_t>(kRowGroup, m.rows - group * kRowGroup));
  const uint8_t* rows[kRowGroup];
  for (int lane = 0; lane < lanes; ++lane) {
    const RowPlace place = place_of(plan, group * kRowGroup + lane);
    rows[lane] = place.tensor->bytes.data() + static_cast<size_t>(place.row * m.cols) * sizeof(Element);
  }
  for (int64_t k0 = 0; k0 < m.cols; k0 += kDenseColumnsAtOnce) {
    const int64_t k1 = std::min(k0 + kDenseColumnsAtOnce, m.cols);
    for (int lane = 0; lane < lanes; ++lane) {
      const uint8_t* in = rows[lane] + static_cast<size_t>(k0) * sizeof(Element);
      uint8_t* to = out + static_cast<size_t>(k0 * kRowGroup + lane) * sizeof(Element);
      for (int64_t k = k0; k < k1; ++k, in += sizeof(Element), to += kRowGroup * sizeof(Element)) {
        std::memcpy(to, in, sizeof(Element));
      }
    }
  }
}

void dense_to_f32(DType dtype, const uint8_t* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == DType::kF32) {
      std::memcpy(out + i, in + 4 * i, 4);
      continue;
    }
    uint16_t half = 0;
    std::memcpy(&half, in + 2 * i, 2);
    out[i] = dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
  }
}

Result<const TensorInfo*> find_vector(const format::Checkpoint& checkpoint, const VectorRequest& request) {
  DW_ASSIGN_OR_RETURN(const TensorInfo* t, find_tensor(checkpoint, request.tensor));
  const bool dense = t->encoding == Encoding::kDense && dense_form(*t).is_ok();
  if (!dense || t->shape.size() != 1 || t->shape[0] < 1) {
    return invalid_argument(checkpoint.path() + ": tensor '" + t->name + "' (" +
                            format::encoding_name(t->encoding) + ", " + shape_text(t->shape) +
                            ") cannot be the vector '" + request.key +
                            "', which must be F32, F16 or BF16 of one dimension");
  }
  return t;
}

}  // namespace

std::string form_name(const PackedForm& form) {
  std::string text = layout_name(form.layout);
  if (!is_quantised(form.layout)) return text;
  return text + (form.has_min ? " with minima" : " without minima") + ", zero point " +
         std::to_string(form.zero_point);
}

Result<PackedForm> packed_form(const TensorInfo& t) {
  if (t.shape.size() != 2 || t.shape[0] < 1 || t.shape[1] < 1) {
    return invalid_argument("tensor '" + t.name + "' has shape " + shape_text(t.shape) +
                            "; a weight matrix must have two dimensions of at least 1");
  }
  if (t.encoding != Encoding::kDense && t.shape[1] % kQuantBlock != 0) {
    return invalid_argument("tensor '" + t.name + "' has rows of " + std::to_string(t.shape[1]) +
                            " values; quantised ones must be a multiple of 32");
  }
  const bool half = t.scale_dtype == DType::kF16;
  switch (t.encoding) {
    case Encoding::kDense:
      return dense_form(t);
    case Encoding::kQ4_0:
      return PackedForm{PackedLayout::kP4H, false, 8};
    case Encoding::kQ4_1:
      return PackedForm{PackedLayout::kP4H, true, 0};
    case Encoding::kQ5_0:
      return PackedForm{PackedLayout::kP8H, false, 0};
    case Encoding::kQ5_1:
      return PackedForm{PackedLayout::kP8H, true, 0};
    case Encoding::kQ8_0:
      return PackedForm{PackedLayout::kP8H, false, 0};
    case Encoding::kMlxAffine:
      if (t.bits == 4) return PackedForm{half ? PackedLayout::kP4H : PackedLayout::kP4F, true, 0};
      return PackedForm{half ? PackedLayout::kP8H : PackedLayout::kP8F, true, -128};
  }
  return internal_error("unknown encoding");
}

Result<MatrixPlan> plan_matrix(const format::Checkpoint& checkpoint, const MatrixRequest& request) {
  if (request.tensors.empty()) return invalid_argument("matrix '" + request.key + "' names no tensor");
  MatrixPlan plan;
  plan.key = request.key;
  PackedForm first;
  for (const std::string& name : request.tensors) {
    DW_ASSIGN_OR_RETURN(const TensorInfo* t, find_tensor(checkpoint, name));
    auto form = packed_form(*t);
    if (!form.is_ok()) return form.status().with_context(checkpoint.path());
    if (plan.parts.empty()) {
      first = *form;
      plan.matrix.layout = form->layout;
      plan.matrix.has_min = form->has_min;
      plan.matrix.zero_point = form->zero_point;
      plan.matrix.cols = t->shape[1];
    } else if (!(*form == first) || t->shape[1] != plan.matrix.cols) {
      return invalid_argument(checkpoint.path() + ": tensors '" + plan.parts[0]->name + "' (" +
                              form_name(first) + ", " + std::to_string(plan.matrix.cols) + " columns) and '" +
                              name + "' (" + form_name(*form) + ", " + std::to_string(t->shape[1]) +
                              " columns) cannot be joined in matrix '" + request.key + "'");
    }
    plan.part_begin.push_back(plan.matrix.rows);
    plan.parts.push_back(t);
    plan.matrix.rows += t->shape[0];
  }
  plan.part_begin.push_back(plan.matrix.rows);
  return plan;
}

void pack_groups(const MatrixPlan& plan, int64_t begin, int64_t end, uint8_t* out) {
  const PackedMatrix& m = plan.matrix;
  DW_CHECK(begin >= 0 && end <= m.groups(), "row groups outside the matrix");
  for (int64_t g = begin; g < end; ++g) {
    uint8_t* const at = out + static_cast<size_t>(g) * m.group_bytes();
    if ((g + 1) * kRowGroup > m.rows) std::memset(at, 0, m.group_bytes());  // rows past N are zero
    if (is_quantised(m.layout)) {
      pack_quantised_group(plan, g, at);
    } else if (m.layout == PackedLayout::kF32) {
      pack_dense_group<uint32_t>(plan, g, at);
    } else {
      pack_dense_group<uint16_t>(plan, g, at);
    }
  }
}

Result<int64_t> vector_length(const format::Checkpoint& checkpoint, const VectorRequest& request) {
  DW_ASSIGN_OR_RETURN(const TensorInfo* t, find_vector(checkpoint, request));
  return t->shape[0];
}

Status copy_vector(const format::Checkpoint& checkpoint, const VectorRequest& request, float* out) {
  DW_ASSIGN_OR_RETURN(const TensorInfo* t, find_vector(checkpoint, request));
  dense_to_f32(t->dtype, t->bytes.data(), t->shape[0], out);
  return Status::ok();
}

}  // namespace driftwood::weights
