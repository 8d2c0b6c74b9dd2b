#include "base/code_table.h"

namespace driftwood {
namespace {

constexpr CodeRow kRows[] = {
    {Code::kOk, 200, 0, 0},
    {Code::kCancelled, 499, 130, -1},
    {Code::kUnknown, 500, 70, -2},
    {Code::kInvalidArgument, 400, 64, -3},
    {Code::kDeadlineExceeded, 504, 75, -4},
    {Code::kNotFound, 404, 66, -5},
    {Code::kAlreadyExists, 409, 73, -6},
    {Code::kPermissionDenied, 403, 77, -7},
    {Code::kResourceExhausted, 429, 69, -8},
    {Code::kFailedPrecondition, 409, 65, -9},
    {Code::kAborted, 409, 71, -10},
    {Code::kOutOfRange, 400, 64, -11},
    {Code::kUnimplemented, 501, 69, -12},
    {Code::kInternal, 500, 70, -13},
    {Code::kUnavailable, 503, 69, -14},
    {Code::kDataLoss, 500, 74, -15},
};

}  // namespace

std::span<const CodeRow> code_table() { return kRows; }

const CodeRow& code_row(Code code) {
  const auto index = static_cast<size_t>(code);
  DW_CHECK(index < std::size(kRows) && kRows[index].code == code, "the code table is not in code order");
  return kRows[index];
}

}  // namespace driftwood
