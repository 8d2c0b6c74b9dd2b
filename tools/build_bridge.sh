#!/usr/bin/env bash
# Builds the Rust bridge and prints, as the last line of stdout, the folder that holds it:
#   lib/libdriftwood_bridge.a   every Rust dependency in one archive
#   include/                    dw_bridge.h and Wasmtime's C headers
#
# The folder lies in ${XDG_CACHE_HOME:-$HOME/.cache}/driftwood and its name is a hash of all that goes
# into it, so a second clone, or a second call, finds it built. Safe to call several times at once:
# a lock admits one builder, and a result appears under its name only when it is complete.
# Cargo's own target folder is kept beside it, so that a change in our few files does not build Wasmtime again.
set -euo pipefail

if [[ "${1:-}" == "-h" || "${1:-}" == "--help" ]]; then
  printf 'usage: %s\n' "$(basename "$0")"
  printf 'Builds bridge/ into the cache and prints the result'"'"'s folder as the last line of stdout.\n'
  exit 0
fi

shopt -s inherit_errexit
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
self="$root/tools/$(basename "${BASH_SOURCE[0]}")"
crate="$root/bridge"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftwood"

say() { printf 'bridge: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}
need() { command -v "$1" >/dev/null 2>&1 || die "cannot find '$1': $2"; }

need rustc "install Rust, then run this again"
need cargo "install Rust's cargo, then run this again"

if command -v sha256sum >/dev/null 2>&1; then sha256=(sha256sum); else sha256=(shasum -a 256); fi
short_hash() { "${sha256[@]}" | cut -c1-16; }

toolchain="$(rustc -vV)" || die "rustc is there but does not run"
flags="${RUSTFLAGS:-} ${CARGO_BUILD_TARGET:-}"

# The hashes come with the files' names, so a moved file is a change, too.
cd "$crate"
key="$({
  find src include -type f -print0 | LC_ALL=C sort -z | xargs -0 "${sha256[@]}" Cargo.toml Cargo.lock "../tools/${self##*/}"
  printf '%s\n' "$toolchain" "$flags"
} | short_hash)"
deps_key="$({ cat Cargo.lock && printf '%s\n' "$toolchain" "$flags"; } | short_hash)"
out="$cache/bridge-$key"
target="$cache/bridge-target-$deps_key"

if [[ -f "$out/lib/libdriftwood_bridge.a" ]]; then
  printf '%s\n' "$out"
  exit 0
fi

need cmake "Wasmtime's C API installs its headers with it"
mkdir -p "$target"

# One builder for a target folder at a time. Where flock is missing cargo's own lock still keeps the builds apart.
if command -v flock >/dev/null 2>&1; then
  exec 9>"$target/driftwood.lock"
  if ! flock -n 9; then
    say "another build is under way, waiting for it"
    flock 9
  fi
fi
if [[ -f "$out/lib/libdriftwood_bridge.a" ]]; then
  printf '%s\n' "$out"
  exit 0
fi

say "building the Rust bridge (some minutes the first time, about half a minute afterwards)"
started=$SECONDS
log="$(mktemp "$target/messages.XXXXXX")"
stage=""
cleanup() {
  rm -f -- "$log"
  [[ -z "$stage" ]] || rm -rf -- "$stage"
}
trap cleanup EXIT

# Cargo's messages name the very build folder that was used; the target folder may hold older ones beside it.
cargo build --release --locked --manifest-path "$crate/Cargo.toml" --target-dir "$target" \
  --message-format=json-render-diagnostics >"$log" || die "cargo failed (its messages are above)"

headers="$(sed -n '/"reason":"build-script-executed"/{/wasmtime-c-api-impl/s/.*"out_dir":"\([^"]*\)".*/\1/p;}' "$log" | tail -n 1)"
archive="$(sed -n 's/.*"\([^"]*libdriftwood_bridge\.a\)".*/\1/p' "$log" | tail -n 1)"
[[ -f "$headers/include/wasmtime.h" ]] || die "Wasmtime's headers are not where its build script said: '$headers'"
[[ -f "$archive" ]] || die "cargo reported no libdriftwood_bridge.a"

stage="$(mktemp -d "$cache/bridge-stage.XXXXXX")"
mkdir -p "$stage/lib" "$stage/include"
cp -R -- "$headers/include/." "$stage/include/"
cp -- "$crate/include/dw_bridge.h" "$stage/include/"
cp -- "$archive" "$stage/lib/"
chmod 755 "$stage"
if ! mv -T -- "$stage" "$out" 2>/dev/null && ! mv -- "$stage" "$out"; then
  [[ -f "$out/lib/libdriftwood_bridge.a" ]] || die "could not move the result to $out"
fi
stage=""
say "built in $((SECONDS - started)) s"
printf '%s\n' "$out"
