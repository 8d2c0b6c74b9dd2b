#!/usr/bin/env bash
# Unpacks the fixture models (if the checkout has ../shared/fixtures or DRIFTWOOD_FIXTURES is set) below the build
# folder given as $1 and prints the folder of the models; prints nothing when there are no fixtures.
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/fixtures.sh BUILD_FOLDER" >&2; exit 2; }
build=$1
source_root=$(cd "$(dirname "$0")/.." && pwd)
fixtures=${DRIFTWOOD_FIXTURES:-$source_root/../shared/fixtures}
[ -f "$fixtures/models.tar.xz" ] || exit 0
target="$(cd "$build" && pwd)/fixtures"
if [ ! -f "$target/.complete" ]; then
  rm -rf "$target.tmp"
  mkdir -p "$target.tmp"
  tar -xJf "$fixtures/models.tar.xz" -C "$target.tmp"
  touch "$target.tmp/.complete"
  rm -rf "$target"
  mv "$target.tmp" "$target"
fi
echo "$target/models"
