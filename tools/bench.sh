#!/usr/bin/env bash
# Reproduces the figures of the README on this machine: speed of the default model, the proof table and the
# micro-benchmarks (the build folder $1 must be configured with DW_BENCH=ON, as `make bench` does).
# Against llama.cpp: `make bench-peers`.
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/bench.sh BUILD_FOLDER" >&2; exit 2; }
build=$(realpath -m "$1")
[ ! -f "${MODEL:-}" ] || MODEL=$(realpath "$MODEL")
cd "$(dirname "$0")/.."
program="$build/driftwood"
model=${MODEL:-smollm2-135m}
for threads in 1 2; do
  "$program" bench --model "$model" --prompt 512 --generate 128 --threads "$threads" --repeat 5
done
"$program" bench --model "$model" --prompt 0 --generate 64 --depth 2048 --threads 2 --repeat 3
"$program" proof --model "$model"
for bench in wasm_bench actor_bench sampler_bench ops_bench; do
  echo "== $bench"
  "$build/bench/$bench" --benchmark_min_time=0.1
done
echo "== freeze_bench"
DRIFTWOOD_SMOLLM2=$(tools/fetch_model.sh) "$build/bench/freeze_bench" --benchmark_min_time=0.1
echo "== snapshots (against llama.cpp: make bench-snapshots)"
tools/bench_snapshots.sh "$build" --no-peer
echo "== matmul_bench"
"$build/bench/matmul_bench"
