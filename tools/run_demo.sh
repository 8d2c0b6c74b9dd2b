#!/usr/bin/env bash
# The main job of `make run`: one real conversation turn through a sandboxed actor, then the proof table.
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/run_demo.sh BUILD_FOLDER" >&2; exit 2; }
build=$(realpath -m "$1")
program="$build/driftwood"
question=${QUESTION:-Why is the sky blue? Answer in two sentences.}
printf '\n  A WebAssembly actor chats with a real model (SmolLM2-135M), sandboxed:\n\n'
printf '%s\n' "$question" | "$program" chat --model smollm2-135m --max-tokens 80
printf '\n  Guest, CPU and device work on the same bytes:\n\n'
"$program" proof --model smollm2-135m
