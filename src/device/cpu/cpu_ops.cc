#include "device/cpu/cpu_ops.h"

#include <algorithm>

#include "device/cpu/cpu_device.h"
#include "device/cpu/op_arguments.h"

namespace driftwood::device {
namespace {

using kernels::KernelTable;

// Estimates of work are in nanoseconds of one thread, by rule of thumb: they decide who works, never what
// comes out.

// How units are given to workers:
//   kRanges       equal ranges
//   kInterleaved  unit by unit in turn
//   kClaimed      ranges of most units, then pieces of the rest for whoever is ready: threads that stream
//                 weights do not get equal shares of the memory
enum class Split { kRanges, kInterleaved, kClaimed };

constexpr int64_t kClaimedPieces = 6;  // a worker

template <typename Body>
void run_claimed(WorkerPool& pool, int64_t units, int worker, int count, const Body& body) {
  const int64_t ranged = ranged_units(units);
  const int64_t piece = std::max<int64_t>(1, (units - ranged) / (kClaimedPieces * count));
  body(ranged * worker / count, ranged * (worker + 1) / count);
  for (;;) {
    const int64_t begin = ranged + piece * pool.claim();
    if (begin >= units) return;
    body(begin, std::min(begin + piece, units));
  }
}

// Runs body(begin, end) over [0, units) on as many workers as the work is worth.
template <typename Body>
void split(CpuStream& stream, int64_t units, double work_ns, Split how, const Body& body,
           const ReadAhead& idle = {}) {
  if (units <= 0) return;
  WorkerPool& pool = stream.cpu().pool();
  const double wake_ns = stream.cpu().wake_ns();
  const double worth = wake_ns > 0.0 ? std::min(work_ns / wake_ns, 1.0 * kMaxThreads) : kMaxThreads;
  const int64_t workers = std::min<int64_t>({pool.threads(), units, static_cast<int64_t>(worth)});
  if (workers <= 1) {
    body(int64_t{0}, units);
    return;
  }
  const auto part = [&](int worker, int count) {
    if (how == Split::kRanges) {
      body(units * worker / count, units * (worker + 1) / count);
    } else if (how == Split::kClaimed) {
      run_claimed(pool, units, worker, count, body);
    } else {
      for (int64_t unit = worker; unit < units; unit += count) body(unit, unit + 1);
    }
  };
  pool.run(static_cast<int>(workers), part, idle);
}

template <typename Args>
using Kernel = void (*)(const Args&, int64_t, int64_t);

// The common case: one kernel over `units`.
template <typename Args>
Status run(Stream& stream, const Args& args, Kernel<Args> KernelTable::* kernel, int64_t units,
           double work_ns) {
  auto& cpu_stream = static_cast<CpuStream&>(stream);
  const Kernel<Args> function = cpu_stream.cpu().table().*kernel;
  split(cpu_stream, units, work_ns, Split::kRanges,
        [&](int64_t begin, int64_t end) { function(args, begin, end); });
  return Status::ok();
}

int64_t pieces(int64_t count, int64_t size) { return (count + size - 1) / size; }
double product(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

Status embed(Stream& stream, const EmbedArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::embed, args.tokens, 1.0 * product(args.tokens, args.table.cols));
}

Status rms_norm(Stream& stream, const RmsNormArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::rms_norm, args.tokens, 0.4 * product(args.tokens, args.width));
}

Status quantise(Stream& stream, const QuantiseArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::quantise, args.tokens, 0.2 * product(args.tokens, args.width));
}

// The row groups of all parts, one after the other, are cut into ranges.
Status matmul(Stream& stream, const MatmulBatchArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  auto& cpu_stream = static_cast<CpuStream&>(stream);
  if (args.parts[0].tokens == 0) return Status::ok();
  int64_t first[5] = {0};
  double work_ns = 0.0;
  for (int i = 0; i < args.count; ++i) {
    const PackedMatrix& w = args.parts[i].weight;
    first[i + 1] = first[i] + w.groups();
    work_ns += std::max(static_cast<double>(w.size_bytes()) / 16.0,
                        product(w.rows, w.cols) * static_cast<double>(args.parts[i].tokens) / 100.0);
  }
  const auto body = [&](int64_t begin, int64_t end) {
    for (int i = 0; i < args.count; ++i) {
      const MatmulArgs& part = args.parts[i];
      const int64_t from = std::max(begin, first[i]) - first[i];
      const int64_t to = std::min(end, first[i + 1]) - first[i];
      if (from >= to) continue;
      // Quantised weights with f32 activations: a path for debugging that only ref has.
      const bool debug = is_quantised(part.weight.layout) && part.q8.q == nullptr;
      (debug ? kernels::ref::table() : cpu_stream.cpu().table()).matmul(part, from, to);
    }
  };
  split(cpu_stream, first[args.count], work_ns, Split::kClaimed, body, ReadAhead(args.next));
  return Status::ok();
}

Status rope_table(Stream& stream, const RopeTableArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::rope_table, args.tokens, 150.0 * product(args.tokens, args.half));
}

Status rope(Stream& stream, const RopeArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::rope, args.tokens,
             0.3 * product(args.tokens, args.heads * args.half));
}

Status kv_store(Stream& stream, const KvStoreArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  const int64_t width = args.layer.kv_heads * args.layer.head_dim;
  return run(stream, args, &KernelTable::kv_store, args.tokens, 1.0 * product(args.tokens, width));
}

// Few rows with long contexts are cut by runs of keys as well; the merge gives the same bits as the whole.
constexpr int64_t kSplitRows = 64;
constexpr int64_t kSplitFloats = 16 << 20;

Status attention(Stream& stream, const AttentionArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  auto& cpu_stream = static_cast<CpuStream&>(stream);
  const KernelTable& table = cpu_stream.cpu().table();
  const int64_t kv_heads = args.layer.kv_heads;
  const int64_t dim = args.layer.head_dim;
  int64_t runs = 0;
  int64_t keys = 0;
  for (int64_t t = 0; t < args.tokens; ++t) {
    const int64_t visible = int64_t{args.rows[t].position} + 1;
    runs = std::max(runs, kernels::attention_runs(args.rows[t].position, args.window));
    keys += args.window > 0 ? std::min(visible, args.window) : visible;
  }
  const double work_ns = product(keys, args.heads * dim) / 12.0;
  const int64_t tiles = pieces(args.tokens, kernels::kAttentionTile) * kv_heads;
  const int64_t run_units = args.tokens * kv_heads * runs;
  const int64_t floats = args.tokens * args.heads * runs * (dim + 2);
  const int threads = cpu_stream.cpu().pool().threads();
  if (threads > 1 && tiles < 4 * threads && run_units > tiles && work_ns >= 2 * cpu_stream.cpu().wake_ns() &&
      args.tokens <= kSplitRows && floats <= kSplitFloats) {
    float* partials = cpu_stream.partials(static_cast<size_t>(floats));
    split(cpu_stream, run_units, work_ns, Split::kInterleaved,
          [&](int64_t begin, int64_t end) { table.attention_run(args, partials, runs, begin, end); });
    split(cpu_stream, args.tokens * args.heads, 0.2 * static_cast<double>(floats), Split::kRanges,
          [&](int64_t begin, int64_t end) { table.attention_merge(args, partials, runs, begin, end); });
  } else {
    // Interleaved: in a prompt, later tiles see more keys.
    split(cpu_stream, tiles, work_ns, Split::kInterleaved,
          [&](int64_t begin, int64_t end) { table.attention(args, begin, end); });
  }
  if (args.q8.q == nullptr) return Status::ok();
  return quantise(stream, QuantiseArgs{args.tokens, args.heads * dim, args.out, args.q8});
}

Status swiglu(Stream& stream, const SwigluArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::swiglu, args.tokens, 0.9 * product(args.tokens, args.width));
}

Status add(Stream& stream, const AddArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::add, pieces(args.count, kernels::kElementPiece),
             0.2 * static_cast<double>(args.count));
}

Status softmax(Stream& stream, const SoftmaxArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::softmax, args.tokens, 0.8 * product(args.tokens, args.width));
}

Status gemm(Stream& stream, const GemmArgs& args) {
  DW_RETURN_IF_ERROR(check(args));
  return run(stream, args, &KernelTable::gemm, pieces(args.m, kernels::kGemmRows),
             product(args.m, args.n) * static_cast<double>(args.k) / 16.0);
}

}  // namespace

const OpTable& cpu_op_table() {
  static constexpr OpTable kTable = {
      .embed = embed,
      .rms_norm = rms_norm,
      .quantise = quantise,
      .matmul = matmul,
      .rope_table = rope_table,
      .rope = rope,
      .kv_store = kv_store,
      .attention = attention,
      .swiglu = swiglu,
      .add = add,
      .softmax = softmax,
      .gemm = gemm,
  };
  return kTable;
}

}  // namespace driftwood::device
