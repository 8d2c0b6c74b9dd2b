// Cases of the ops that work on rows of values: rms_norm, quantise, swiglu, add, softmax.
#include "tests/conformance/cases.h"

namespace driftwood::conformance {
namespace {

using device::OpTable;

constexpr int64_t kWidths[] = {1, 15, 16, 17, 31, 32, 33, 64, 250, 256, 288, 576, 1000, 1536};

std::string shape(const char* op, int64_t tokens, int64_t width) {
  return std::string(op) + " T=" + std::to_string(tokens) + " width=" + std::to_string(width);
}

Floats row_of(const Floats& all, int64_t t, int64_t width) {
  Floats row(width);
  std::copy(all.data() + t * width, all.data() + (t + 1) * width, row.data());
  return row;
}

struct NormResult {
  NormResult(int64_t tokens, int64_t width) : x(0), out(tokens * width), q8(tokens, width / 32 * 32) {}
  Floats x;
  Floats out;
  Quantised q8;
};

enum Outputs { kOut, kBoth, kQ8 };

NormResult run_norm(Runner& run, int64_t tokens, int64_t width, const Floats& x, const Floats* residual,
                    const Floats& weight, Outputs outputs) {
  NormResult result(tokens, width);
  result.x = x;
  RmsNormArgs args{tokens,
                   width,
                   result.x.data(),
                   residual == nullptr ? nullptr : residual->data(),
                   weight.data(),
                   1e-5f,
                   outputs == kQ8 ? nullptr : result.out.data(),
                   {}};
  if (outputs != kOut) args.q8 = result.q8.view();
  run(&OpTable::rms_norm, args);
  return result;
}

std::string norm_case(Runner& reference, Runner& candidate, int64_t tokens, int64_t width, bool with_residual,
                      Outputs outputs) {
  const std::string what = shape("rms_norm", tokens, width);
  const Floats x = random_floats(tokens * width, 1);
  const Floats residual = random_floats(tokens * width, 2);
  const Floats weight = random_floats(width, 3);
  const Floats* extra = with_residual ? &residual : nullptr;
  const NormResult expected = run_norm(reference, tokens, width, x, extra, weight, outputs);
  const NormResult actual = run_norm(candidate, tokens, width, x, extra, weight, outputs);
  DW_RETURN_DIFFERENCE(compare(expected.x, actual.x, what + " x"));
  DW_RETURN_DIFFERENCE(compare(expected.out, actual.out, what + " out"));
  DW_RETURN_DIFFERENCE(compare(expected.q8, actual.q8, what));
  const int64_t t = tokens / 2;
  const Floats one_residual = row_of(residual, t, width);
  const NormResult alone = run_norm(candidate, 1, width, row_of(x, t, width),
                                    with_residual ? &one_residual : nullptr, weight, kOut);
  return outputs == kQ8 ? "" : compare_row(actual.out, t, alone.out, what);
}

}  // namespace

std::string rms_norm_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (int64_t width : kWidths) {
    for (int64_t tokens : kTokenCounts) {
      for (bool residual : {false, true}) {
        for (Outputs outputs : {kOut, kBoth, kQ8}) {
          if (outputs != kOut && width % 32 != 0) continue;
          DW_RETURN_DIFFERENCE(norm_case(expected, actual, tokens, width, residual, outputs));
        }
      }
    }
  }
  return actual.error();
}

std::string quantise_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (int64_t width : {32, 64, 96, 576, 1536}) {
    for (int64_t tokens : kTokenCounts) {
      // Blocks of every magnitude: ordinary, tiny (below the 1e-30 rule), zero, huge.
      Floats x = random_floats(tokens * width, 4);
      constexpr float kScales[] = {1.0f, 1e-31f, 0.0f, 1e30f, 1e-29f, 127.0f};
      for (int64_t i = 0; i < x.size(); ++i) x[i] *= kScales[i / 32 % 6];
      Quantised a(tokens, width);
      Quantised b(tokens, width);
      expected(&OpTable::quantise, QuantiseArgs{tokens, width, x.data(), a.view()});
      actual(&OpTable::quantise, QuantiseArgs{tokens, width, x.data(), b.view()});
      DW_RETURN_DIFFERENCE(compare(a, b, shape("quantise", tokens, width)));
    }
  }
  // Halves: x * inv lies exactly between two integers.
  Floats ties(32);
  for (int i = 0; i < 32; ++i) ties[i] = static_cast<float>(i - 16) + 0.5f;
  ties[0] = 127.0f;
  Quantised a(1, 32);
  Quantised b(1, 32);
  expected(&OpTable::quantise, QuantiseArgs{1, 32, ties.data(), a.view()});
  actual(&OpTable::quantise, QuantiseArgs{1, 32, ties.data(), b.view()});
  DW_RETURN_DIFFERENCE(compare(a, b, "quantise ties"));
  return actual.error();
}

std::string swiglu_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (int64_t width : kWidths) {
    for (int64_t tokens : kTokenCounts) {
      const int64_t stride = 2 * width + 3;
      const Floats both = random_floats(tokens * stride, 5, 4.0f);
      for (Outputs outputs : {kOut, kBoth, kQ8}) {
        if (outputs != kOut && width % 32 != 0) continue;
        NormResult a(tokens, width);
        NormResult b(tokens, width);
        auto args = [&](NormResult& r) {
          return SwigluArgs{tokens,
                            width,
                            both.data(),
                            both.data() + width,
                            stride,
                            outputs == kQ8 ? nullptr : r.out.data(),
                            outputs == kOut ? ActivationsQ8{} : r.q8.view()};
        };
        expected(&OpTable::swiglu, args(a));
        actual(&OpTable::swiglu, args(b));
        DW_RETURN_DIFFERENCE(compare(a.out, b.out, shape("swiglu", tokens, width)));
        DW_RETURN_DIFFERENCE(compare(a.q8, b.q8, shape("swiglu", tokens, width)));
      }
    }
  }
  return actual.error();
}

std::string add_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (int64_t count : {0, 1, 15, 16, 17, 4095, 4096, 4097, 10000}) {
    const Floats a = random_floats(count, 6);
    const Floats b = random_floats(count, 7);
    Floats x(count);
    Floats y = a;
    expected(&OpTable::add, AddArgs{count, a.data(), b.data(), x.data()});
    actual(&OpTable::add, AddArgs{count, y.data(), b.data(), y.data()});
    DW_RETURN_DIFFERENCE(compare(x, y, shape("add", 1, count)));
  }
  return actual.error();
}

std::string softmax_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (int64_t width : kWidths) {
    for (int64_t tokens : kTokenCounts) {
      const Floats x = random_floats(tokens * width, 8, 20.0f);
      Floats a(tokens * width);
      Floats b = x;
      expected(&OpTable::softmax, SoftmaxArgs{tokens, width, x.data(), a.data()});
      actual(&OpTable::softmax, SoftmaxArgs{tokens, width, b.data(), b.data()});
      DW_RETURN_DIFFERENCE(compare(a, b, shape("softmax", tokens, width)));
      const Floats row = row_of(x, tokens - 1, width);
      Floats alone(width);
      actual(&OpTable::softmax, SoftmaxArgs{1, width, row.data(), alone.data()});
      DW_RETURN_DIFFERENCE(compare_row(b, tokens - 1, alone, shape("softmax", tokens, width)));
    }
  }
  return actual.error();
}

}  // namespace driftwood::conformance
