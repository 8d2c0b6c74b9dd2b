#!/usr/bin/env bash
# Installs what the build needs on Debian 12 or newer; does nothing (in milliseconds) when all of it is there.
# Elsewhere it names what is missing and stops.
set -euo pipefail

packages=(cmake ninja-build g++ ccache git xz-utils clang-16 lld-16 wasi-libc libclang-rt-16-dev
          libclang-rt-16-dev-wasm32 libgtest-dev libbenchmark-dev nlohmann-json3-dev libcli11-dev valgrind)
# For tools/test_arm64.sh; an arm64 machine runs those tests by itself.
[ "$(uname -m)" = aarch64 ] || packages+=(g++-aarch64-linux-gnu qemu-user)

say() { printf 'setup: %s\n' "$*" >&2; }

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package}\n' "${packages[@]}" 2>/dev/null |
              awk '$1 == "ii" { sub(/:.*/, "", $2); print $2 }') || true
  local p
  for p in "${packages[@]}"; do
    grep -qx -- "$p" <<<"$installed" || echo "$p"
  done
}

if ! command -v dpkg-query >/dev/null; then
  say "this is not a Debian system. Needed, by whatever name your system has for them: ${packages[*]}"
  for tool in cmake ninja g++ clang-16; do
    command -v "$tool" >/dev/null || { say "missing: $tool"; exit 1; }
  done
else
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]})); then
    say "installing ${missing[*]}"
    as_root=()
    if [ "$(id -u)" != 0 ]; then
      command -v sudo >/dev/null || { say "run as root: apt-get install -y ${missing[*]}"; exit 1; }
      as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
  fi
fi

if ! command -v cargo >/dev/null; then
  say "Rust's cargo is missing. Install Rust 1.90 or newer (rustup is the usual way), then run this again."
  exit 1
fi
if ! command -v python3 >/dev/null; then
  say "python3 (3.11 or newer) is missing: apt-get install python3"
  exit 1
fi
