#!/usr/bin/env bash
# clang-format over the tree's C and C++, in place, by the version that the tree is formatted with: fetched once from
# PyPI into ${XDG_CACHE_HOME:-~/.cache}/driftwood, since no two versions agree on everything.
set -euo pipefail
[ $# = 0 ] || { echo "usage: tools/format.sh" >&2; exit 2; }
version=19.1.7
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftwood"
folder="$cache/clang-format-$version"
program="$folder/clang_format/data/bin/clang-format"
cd "$(dirname "$0")/.."

say() { printf 'format: %s\n' "$*" >&2; }

if [ ! -x "$program" ]; then
  if ! python3 -m pip --version >/dev/null 2>&1; then
    say "python3 has no pip; install it (Debian: apt-get install python3-pip)"
    exit 1
  fi
  mkdir -p "$cache"
  exec 9>"$cache/.clang-format.lock"
  flock 9
  if [ ! -x "$program" ]; then
    rm -rf "$cache"/.clang-format.tmp.*  # of interrupted runs
    scratch=$(mktemp -d "$cache/.clang-format.tmp.XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    say "fetching clang-format $version"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --disable-pip-version-check -q --no-deps \
      --target "$scratch/made" "clang-format==$version" >&2
    rm -rf "$folder"
    mv "$scratch/made" "$folder"
    [ -x "$program" ] || { say "the package clang-format $version holds no $program"; exit 1; }
  fi
fi
git ls-files -z '*.cc' '*.h' '*.hpp' '*.c' | xargs -0 "$program" -i
