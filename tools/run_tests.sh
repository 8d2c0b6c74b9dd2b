#!/usr/bin/env bash
# Runs every test of the build folder given as $1; ctest's summary comes last.
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/run_tests.sh BUILD_FOLDER" >&2; exit 2; }
build=$(realpath -m "$1")
cd "$(dirname "$0")/.."
tools/fetch_model.sh >/dev/null
export DRIFTWOOD_SMOLLM2
DRIFTWOOD_SMOLLM2=$(tools/fetch_model.sh)
export DRIFTWOOD_FIXTURE_MODELS
DRIFTWOOD_FIXTURE_MODELS=$(tools/fixtures.sh "$build")
if [ -z "$DRIFTWOOD_FIXTURE_MODELS" ]; then
  echo "tests: no fixtures (../shared/fixtures or DRIFTWOOD_FIXTURES); the tests that need them are skipped" >&2
fi
fixtures_root=${DRIFTWOOD_FIXTURES:-$PWD/../shared/fixtures}
[ -d "$fixtures_root" ] && export DRIFTWOOD_FIXTURES=$fixtures_root
ctest --test-dir "$build" --output-on-failure -j "${DW_TEST_JOBS:-1}"
