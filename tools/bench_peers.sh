#!/usr/bin/env bash
# Driftwood (in the build folder $1, configured with DW_BENCH=ON as `make bench-peers` does) against llama.cpp: tables
# over models, then over prompt length, depth and batch. bench/peers/README.md says what is measured.
#   MODELS   which: default, and names of tools/bench_models.py (made on first use); a name left out is not run
#   MODEL    another file as the default one
#   ROUNDS   runs of each program, alternating (3);  REPEAT  repetitions inside a run (5; the matrix has one)
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/bench_peers.sh BUILD_FOLDER" >&2; exit 2; }
build=$(realpath -m "$1")
[ -z "${MODEL:-}" ] || MODEL=$(realpath -m "$MODEL")
cd "$(dirname "$0")/.."
read -ra models <<<"${MODELS:-default smollm2-q4_0 smollm2-q8_0 smollm2-bf16 llama1b-q4_0 llama1b-q4_1}"
rounds=${ROUNDS:-3} repeat=${REPEAT:-5}

# Before any model is made, which takes minutes.
for setting in "ROUNDS=$rounds" "REPEAT=$repeat"; do
  [[ ${setting#*=} =~ ^[1-9][0-9]{0,5}$ ]] || { echo "bench_peers.sh: $setting is no number from 1 on" >&2; exit 2; }
done

declare -A file
made=()
for model in "${models[@]}"; do
  if [ "$model" = default ]; then file[default]=${MODEL:-$(tools/fetch_model.sh)}; else made+=("$model"); fi
done
if ((${#made[@]})); then
  paths=$(tools/bench_models.py "${made[@]}")
  mapfile -t paths <<<"$paths"
  for i in "${!made[@]}"; do file[${made[i]}]=${paths[i]}; done
fi

run=(tools/bench_peers.py run --driftwood "$build/driftwood" --rounds "$rounds" --repeat "$repeat")
for model in "${models[@]}"; do
  case $model in
    default) settings=threads=1,threads=2 ;;
    llama1b-*) settings=threads=2,generate=64 ;;
    *) settings=threads=2 ;;
  esac
  run+=(--model "${file[$model]},$settings")
done
"${run[@]}"

matrix=(tools/bench_peers_matrix.py --driftwood "$build/driftwood" --rounds "$rounds" --no-load-check)
if [ -n "${file[default]:-}" ]; then
  echo && "${matrix[@]}" --model "${file[default]}"
fi
if [ -n "${file[llama1b-q4_0]:-}" ]; then
  echo && "${matrix[@]}" --model "${file[llama1b-q4_0]}" --threads 2 --only 'together 1,' --only 'together 8,'
fi
