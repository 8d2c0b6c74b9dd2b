#!/usr/bin/env bash
# Builds the kernels for arm64 in $1/arm64 ($1: a build folder) and runs their tests under qemu's user emulation:
# every op of the NEON table against ref, byte for byte. Exits 77 (skipped) where cross compiler or emulator is missing.
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/test_arm64.sh BUILD_FOLDER" >&2; exit 2; }
build=$(realpath -m "$1")/arm64
cd "$(dirname "$0")/.."

for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || { echo "arm64: skipped, there is no $tool (tools/setup.sh installs it on Debian)"; exit 77; }
done

if [ ! -f "$build/build.ninja" ]; then
  cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DDW_KERNELS_ONLY=ON \
        --toolchain "$PWD/cmake/toolchains/arm64_linux.cmake"
fi
cmake --build "$build" --target peaks_test kernels_test device_cpu_test conformance_test

# run NAME CPU PROGRAM...: on an emulated processor, which must have what every test needs.
run() {
  local log=$build/$1.log
  if ! QEMU_CPU=$2 qemu-aarch64 "${@:3}" >"$log" 2>&1; then
    echo "arm64: $1 FAILED"
    grep -v -E '\[ +(RUN|OK) ' "$log"
    return 1
  fi
  if grep -q SKIPPED "$log"; then
    echo "arm64: $1 skipped a test on a processor that has everything"
    grep SKIPPED "$log"
    return 1
  fi
  echo "arm64: $1 passed: $(grep -c -E '\[ +OK ' "$log") tests"
}

# A processor without dot product must be refused the NEON table by the name of what it lacks.
refuses() {
  local log=$build/refuses.log
  QEMU_CPU=cortex-a53 qemu-aarch64 "$build/tests/conformance/conformance_test" --gtest_filter='*/add*_neon_1' >"$log" 2>&1
  grep -q "'neon': this processor has no asimddp" "$log" && return
  echo "arm64: a processor without dot product was given the NEON table"
  cat "$log"
  return 1
}

failed=0
run peaks max "$build/src/peaks/peaks_test" || failed=1
run kernels max "$build/src/kernels/kernels_test" || failed=1
run device max "$build/src/device/cpu/device_cpu_test" || failed=1
run device_without_dot_product cortex-a53 "$build/src/device/cpu/device_cpu_test" || failed=1
refuses || failed=1
# The cut into threads is the same on every processor: one and three are enough here.
filter='-*_neon_2:*_neon_4:*_ref_3'
shards=2
pids=()
for ((i = 0; i < shards; ++i)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i GTEST_FILTER=$filter \
    run "conformance_$i" max "$build/tests/conformance/conformance_test" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
