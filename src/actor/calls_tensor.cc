// Host calls that compute on guest memory: the device gets pointers to the guest's own bytes, checked here,
// and is waited for before the guest runs on (DESIGN 4.1).
#include "actor/abi_structs.h"
#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

// One f32 matrix in guest memory: byte span of rows x columns with a stride, in elements.
struct Matrix {
  const char* name;
  uint64_t offset;
  uint64_t rows, columns, stride;
  uint64_t bytes = 0;
  float* data = nullptr;
};

constexpr uint64_t kMaxExtent = uint64_t{1} << 30;  // of a dimension or stride: no product below overflows

Status check_shape(Matrix* matrix) {
  const std::string name = matrix->name;
  if (matrix->rows > kMaxExtent || matrix->columns > kMaxExtent || matrix->stride > kMaxExtent) {
    return invalid_argument(name + ": a dimension or stride above 1073741824");
  }
  if (matrix->stride < matrix->columns) {
    return invalid_argument(name + ": stride " + std::to_string(matrix->stride) + " is below its " +
                            std::to_string(matrix->columns) + " columns");
  }
  if (matrix->offset % sizeof(float) != 0) {
    return invalid_argument(name + " at offset " + std::to_string(matrix->offset) + " must be aligned to 4");
  }
  const bool empty = matrix->rows == 0 || matrix->columns == 0;
  matrix->bytes = empty ? 0 : ((matrix->rows - 1) * matrix->stride + matrix->columns) * sizeof(float);
  return Status::ok();
}

bool locate(GuestCall& call, Matrix* matrix) {
  std::span<uint8_t> bytes;
  if (!call.memory(matrix->offset, matrix->bytes, &bytes)) return false;
  matrix->data = reinterpret_cast<float*>(bytes.data());
  return true;
}

bool overlap(const Matrix& a, const Matrix& b) {
  return a.bytes != 0 && b.bytes != 0 && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

Status check_apart(const Matrix& out, const Matrix& in) {
  if (!overlap(out, in)) return Status::ok();
  return invalid_argument(std::string(out.name) + " overlaps " + in.name);
}

// The device, ready for this actor's memory.
Status open_device(GuestCall& call) {
  ActorContext& actor = call.actor();
  if (actor.device == nullptr) return unavailable("this actor runs without a device");
  return actor.window.open(actor.device, call.instance().memory());
}

Status run_gemm(GuestCall& call, const AbiGemmParams& p, const Matrix& a, const Matrix& b, const Matrix& c) {
  if (c.bytes == 0) return Status::ok();
  DW_RETURN_IF_ERROR(open_device(call));
  device::Stream& stream = call.actor().window.stream();
  const auto gemm = stream.device().ops().gemm;
  if (gemm == nullptr) return unimplemented("the device '" + stream.device().info().name + "' has no gemm");
  const auto i64 = [](uint64_t x) { return static_cast<int64_t>(x); };
  DW_RETURN_IF_ERROR(gemm(
      stream, {i64(p.m), i64(p.n), i64(p.k), a.data, i64(p.lda), b.data, i64(p.ldb), c.data, i64(p.ldc)}));
  return stream.wait();
}

int64_t gemm(GuestCall& call) {
  AbiGemmParams p{};
  std::span<uint8_t> bytes;
  if (!call.memory(call.u32(0), sizeof(p), &bytes)) return 0;
  std::memcpy(&p, bytes.data(), sizeof(p));
  Matrix a{"A", p.a_offset, p.m, p.k, p.lda};
  Matrix b{"B", p.b_offset, p.k, p.n, p.ldb};
  Matrix c{"C", p.c_offset, p.m, p.n, p.ldc};
  for (Matrix* matrix : {&a, &b, &c}) {
    if (const Status shape = check_shape(matrix); !shape.is_ok()) return call.fail(shape);
  }
  if (!locate(call, &a) || !locate(call, &b) || !locate(call, &c)) return 0;
  Status status = check_apart(c, a);
  if (status.is_ok()) status = check_apart(c, b);
  if (status.is_ok()) status = run_gemm(call, p, a, b, c);
  return call.result(status);
}

Status run_softmax(GuestCall& call, const AbiSoftmaxParams& p, const Matrix& x, const Matrix& out) {
  if (out.bytes == 0) return Status::ok();
  DW_RETURN_IF_ERROR(open_device(call));
  device::Stream& stream = call.actor().window.stream();
  const auto softmax = stream.device().ops().softmax;
  if (softmax == nullptr) {
    return unimplemented("the device '" + stream.device().info().name + "' has no softmax");
  }
  DW_RETURN_IF_ERROR(
      softmax(stream, {static_cast<int64_t>(p.rows), static_cast<int64_t>(p.width), x.data, out.data}));
  return stream.wait();
}

int64_t softmax(GuestCall& call) {
  AbiSoftmaxParams p{};
  std::span<uint8_t> bytes;
  if (!call.memory(call.u32(0), sizeof(p), &bytes)) return 0;
  std::memcpy(&p, bytes.data(), sizeof(p));
  Matrix x{"x", p.x_offset, p.rows, p.width, p.width};
  Matrix out{"out", p.out_offset, p.rows, p.width, p.width};
  for (Matrix* matrix : {&x, &out}) {
    if (const Status shape = check_shape(matrix); !shape.is_ok()) return call.fail(shape);
  }
  if (!locate(call, &x) || !locate(call, &out)) return 0;
  Status status = x.offset == out.offset ? Status::ok() : check_apart(out, x);
  if (status.is_ok()) status = run_softmax(call, p, x, out);
  return call.result(status);
}

constexpr HostCall kCalls[] = {
    {"tensor", "gemm", "ptr params", "i32", DW_HOST_CALL(gemm)},
    {"tensor", "softmax", "ptr params", "i32", DW_HOST_CALL(softmax)},
};

}  // namespace

std::span<const HostCall> tensor_calls() { return kCalls; }

}  // namespace driftwood::actor
