#!/usr/bin/env bash
# Driftwood (in the build folder $1, configured with DW_BENCH=ON as `make bench-peers` does) against llama.cpp: tables
# over models, then over prompt length, depth and batch. bench/peers/README.md says what is measured.
#   MODELS   which: default, and names of tools/bench_models.py (made on first use); a name left out is not run
#   MODEL    another file as the default one
#   ROUNDS   runs of each program, alternating (3);  REPEAT  repetitions inside a run (5; the matrix has one)
set -euo pipefail
build=$1
read -ra models <<<"${MODELS:-default smollm2-q4_0 smollm2-q8_0 smollm2-bf16 llama1b-q4_0 llama1b-q4_1}"
rounds=${ROUNDS:-3}

declare -A file
run=(python3 tools/bench_peers.py run --driftwood "$build/driftwood" --rounds "$rounds" --repeat "${REPEAT:-5}")
for model in "${models[@]}"; do
  case $model in
    default) file[$model]=${MODEL:-$(tools/fetch_model.sh)} settings=threads=1,threads=2 ;;
    llama1b-*) file[$model]=$(python3 tools/bench_models.py "$model") settings=threads=2,generate=64 ;;
    *) file[$model]=$(python3 tools/bench_models.py "$model") settings=threads=2 ;;
  esac
  run+=(--model "${file[$model]},$settings")
done
"${run[@]}"

matrix=(python3 tools/bench_peers_matrix.py --driftwood "$build/driftwood" --rounds "$rounds" --no-load-check)
if [ -n "${file[default]:-}" ]; then
  echo && "${matrix[@]}" --model "${file[default]}"
fi
if [ -n "${file[llama1b-q4_0]:-}" ]; then
  echo && "${matrix[@]}" --model "${file[llama1b-q4_0]}" --threads 2 --only 'together 1,' --only 'together 8,'
fi
