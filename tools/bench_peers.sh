#!/usr/bin/env bash
# Driftwood (in the build folder $1) against llama.cpp, the default model or $MODEL, 1 and 2 threads; then over prompt
# length, depth and batch (MATRIX_ROUNDS, 3, rounds of that).
# bench/peers/README.md says what is measured and where the peer comes from.
set -euo pipefail
build=$1
model=${MODEL:-$(tools/fetch_model.sh)}
python3 tools/bench_peers.py run --model "$model" --driftwood "$build/driftwood" --threads 1 --threads 2
exec python3 tools/bench_peers_matrix.py --model "$model" --driftwood "$build/driftwood" --rounds "${MATRIX_ROUNDS:-3}"
