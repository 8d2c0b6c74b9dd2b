#!/usr/bin/env bash
# Builds every x_fuzz.cc with clang-16 and sanitizers and runs each for $1 seconds (default 20). The corpus is kept
# in build/fuzz/corpus/NAME, a crashing input in build/fuzz/crashes. Exits 1 if any fuzzer finds a fault.
set -euo pipefail
seconds=${1:-20}
cd "$(dirname "$0")/.."
build=build/fuzz
if [ ! -f "$build/build.ninja" ]; then
  cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16 \
        -DDW_FUZZ=ON
fi
cmake --build "$build" --target fuzzers
mkdir -p "$build/crashes"
failed=0
while read -r program; do
  [ -n "$program" ] || continue
  name=$(basename "$program")
  mkdir -p "$build/corpus/$name"
  seeds=()
  [ -d "tests/corpus/$name" ] && seeds=("tests/corpus/$name")
  echo "fuzz: $name for $seconds s"
  if ! "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
       -artifact_prefix="$build/crashes/$name-" "$build/corpus/$name" "${seeds[@]}" >"$build/$name.log" 2>&1; then
    echo "fuzz: $name FAILED; see $build/$name.log"
    tail -n 30 "$build/$name.log"
    failed=1
  else
    grep -E 'number_of_executed_units' "$build/$name.log" || true
  fi
done <"$build/fuzzers.txt"
exit $failed
