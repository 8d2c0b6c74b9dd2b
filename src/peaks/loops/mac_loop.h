// The body of a loop over independent chains of multiply-accumulates, enough of them to hide the latency: two
// multiplies a cycle times 4 or 5 cycles, or four times 3.
#pragma once

namespace driftwood::peaks {

inline constexpr int kChains = 12;

}  // namespace driftwood::peaks

// The constraint of a vector register; on a processor without a name for it, memory: slow, but right.
#if defined(__x86_64__)
#define DW_IN_REGISTER "+x"
#elif defined(__aarch64__)
#define DW_IN_REGISTER "+w"
#else
#define DW_IN_REGISTER "+m"
#endif

// Declares `sums[kChains]`, each the result of sum = STEP(sum) done `rounds` times; STEP reads the variable
// `a`. The empty asm "changes" sum and operand: without it the compiler would find out that all chains are
// equal. It costs nothing. The sums have names since arrays that an asm touches go to memory.
// clang-format off
#define DW_MAC_LOOP(Vector, STEP, rounds)                                          \
  Vector s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{}, s8{}, s9{}, s10{}, s11{}; \
  for (int64_t round = 0; round < (rounds); ++round) {                             \
    DW_MAC_STEP(s0, STEP) DW_MAC_STEP(s1, STEP) DW_MAC_STEP(s2, STEP)              \
    DW_MAC_STEP(s3, STEP) DW_MAC_STEP(s4, STEP) DW_MAC_STEP(s5, STEP)              \
    DW_MAC_STEP(s6, STEP) DW_MAC_STEP(s7, STEP) DW_MAC_STEP(s8, STEP)              \
    DW_MAC_STEP(s9, STEP) DW_MAC_STEP(s10, STEP) DW_MAC_STEP(s11, STEP)            \
  }                                                                                \
  const Vector sums[kChains] = {s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11}
// clang-format on

#define DW_MAC_STEP(sum, STEP) \
  sum = STEP(sum);             \
  __asm__ volatile("" : DW_IN_REGISTER(sum), DW_IN_REGISTER(a));
