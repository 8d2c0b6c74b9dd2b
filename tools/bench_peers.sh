#!/usr/bin/env bash
# Driftwood (in the build folder $1) against llama.cpp, the default model or $MODEL, 1 and 2 threads.
# bench/peers/README.md says what is measured and where the peer comes from.
set -euo pipefail
build=$1
model=${MODEL:-$(tools/fetch_model.sh)}
exec python3 tools/bench_peers.py run --model "$model" --driftwood "$build/driftwood" --threads 1 --threads 2
