#!/usr/bin/env bash
# Saving, restoring and forking a whole actor of the default model (or $MODEL) by the build folder $1 (configured with
# DW_BENCH=ON), beside llama.cpp's slot files. tools/bench_snapshots.py says what is measured.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tools/bench_snapshots.sh BUILD_FOLDER [OPTION OF bench_snapshots.py ...]" >&2; exit 2; }
build=$(realpath -m "$1")
shift
[ ! -f "${MODEL:-}" ] || MODEL=$(realpath "$MODEL")
cd "$(dirname "$0")/.."
model=${MODEL:-$(tools/fetch_model.sh)}
exec python3 tools/bench_snapshots.py --model "$model" --build "$build" "$@"
