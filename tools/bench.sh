#!/usr/bin/env bash
# Reproduces the figures of the README on this machine: speed of the default model and the proof table.
# Against llama.cpp: `make bench-peers`.
set -euo pipefail
build=$1
program="$build/driftwood"
model=${MODEL:-smollm2-135m}
for threads in 1 2; do
  "$program" bench --model "$model" --prompt 512 --generate 128 --threads "$threads" --repeat 5
done
"$program" bench --model "$model" --prompt 0 --generate 64 --depth 2048 --threads 2 --repeat 3
"$program" proof --model "$model"
