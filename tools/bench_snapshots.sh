#!/usr/bin/env bash
# Saving, restoring and forking a whole actor of the default model (or $MODEL) by the build folder $1 (configured with
# DW_BENCH=ON), beside llama.cpp's slot files. tools/bench_snapshots.py says what is measured.
set -euo pipefail
build=$1
shift
model=${MODEL:-$(tools/fetch_model.sh)}
exec python3 tools/bench_snapshots.py --model "$model" --build "$build" "$@"
