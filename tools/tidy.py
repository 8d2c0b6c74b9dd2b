#!/usr/bin/env python3
"""Checks the shape of the source tree: layers, sizes, banned constructs, dead files, weak kernel symbols.

Usage: tools/tidy.py [--build DIR]    (DIR enables the checks that need compiled objects)
Prints one line per fault and exits 1 if there is any.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".cc", ".h", ".c", ".hpp", ".cu", ".rs", ".py", ".sh"}
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70

# (pattern, what is wrong, folders it applies to; empty: everywhere under src/)
BANNED = [
    (r"\bthrow\b(?!\()", "throw: errors are Status or Result", ()),
    (r"\bstd::rand\b|\bsrand\(|\brand\(\)", "libc random: use base/rng.h", ()),
    (r"using namespace std\s*;", "using namespace std", ()),
    (r"\bfast-math\b|#pragma\s+STDC\s+FP_CONTRACT\s+ON", "relaxed floating point", ()),
    (r"\b(std::)?(expf?|logf?|powf?|sinf?|cosf?|tanhf?|exp2f?)\(", "libm: use base/math.h",
     ("kernels", "sampler", "engine", "graph", "model")),
    (r"\bstd::(thread|mutex)\b|\bnew\b |\bmalloc\(", "kernels neither allocate nor start threads", ("kernels",)),
    (r"#\s*if(def)?\s+.*WITH_", "#if WITH_X in shared code: use a folder and its null twin", ()),
    (r"#\s*if.*\b(__linux__|__APPLE__|_WIN32)\b", "operating system #ifdef outside src/os", ("!os",)),
]


def tracked_files():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in out.stdout.splitlines() if (ROOT / line).is_file()]


def strip_comments(text):
    """Blanks comments and string literals, keeping line numbers and columns."""
    pattern = re.compile(r'R"(?P<end>\w*)\(.*?\)(?P=end)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def layer_of(path, layers):
    parts = path.relative_to(ROOT / "src").parts
    two = "/".join(parts[:2])
    return two if len(parts) > 2 and two in layers else parts[0]


def check_layers(path, text, layers, faults):
    layer = layer_of(path, layers)
    if layer not in layers:
        faults.append(f"{rel(path)}: folder {layer} has no row in tools/layers.toml")
        return
    allowed = set(layers[layer]) | {"base", layer}
    is_test = path.stem.endswith(("_test", "_fuzz", "_bench"))
    for number, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not m or not (ROOT / "src" / m.group(1)).exists():
            continue
        target = layer_of(ROOT / "src" / m.group(1), layers)
        parent = target.split("/")[0]
        if "*" in allowed or target in allowed or parent in allowed or is_test:
            continue
        faults.append(f"{rel(path)}:{number}: {layer} may not include {target} (tools/layers.toml)")


def check_bridge(path, text, users, faults):
    layer = path.relative_to(ROOT / "src").parts[0]
    if layer in users:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r'\s*#\s*include\s+[<"](dw_bridge|wasmtime|wasm)\.h', line):
            faults.append(f"{rel(path)}:{number}: {layer} may not use the bridge (tools/layers.toml)")


def check_banned(path, code, faults):
    layer = path.relative_to(ROOT / "src").parts[0]
    if path.stem.endswith(("_test", "_fuzz", "_bench")):
        return
    lines = code.splitlines()
    for pattern, why, where in BANNED:
        excluded = [w[1:] for w in where if w.startswith("!")]
        included = [w for w in where if not w.startswith("!")]
        if layer in excluded or (included and layer not in included):
            continue
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line):
                faults.append(f"{rel(path)}:{number}: {why}")


def check_functions(path, code, faults):
    """A function body: a `{` at the end of a line whose statement looks like a definition."""
    lines = code.splitlines()
    depth, start, header = 0, None, ""
    stack = []
    for number, line in enumerate(lines, 1):
        for ch in line:
            if ch == "{":
                is_function = re.search(r"\)\s*(const|noexcept|override|final|->[^;{}]*|\s)*$", header.strip()) is not None
                is_control = re.match(r"\s*(if|for|while|switch|else|do|catch)\b", header.strip()) is not None
                stack.append((number, is_function and not is_control))
                header = ""
            elif ch == "}":
                if stack:
                    begin, is_function = stack.pop()
                    if is_function and number - begin + 1 > MAX_FUNCTION_LINES:
                        faults.append(f"{rel(path)}:{begin}: function of {number - begin + 1} lines (limit {MAX_FUNCTION_LINES})")
                header = ""
            elif ch == ";":
                header = ""
            else:
                header += ch
        header += " "


def rel(path):
    return str(path.relative_to(ROOT))


def check_sizes_and_words(path, text, faults):
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        faults.append(f"{rel(path)}: {lines} lines (limit {MAX_FILE_LINES})")
    if path.name == "tidy.py":
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            faults.append(f"{rel(path)}:{number}: left-over marker")


def check_dead(files, build, faults):
    headers = [f for f in files if f.suffix in (".h", ".hpp") and f.is_relative_to(ROOT / "src")]
    everything = "\n".join(f.read_text(errors="replace") for f in files
                           if f.suffix in CODE or f.name in ("CMakeLists.txt",) or f.suffix == ".cmake")
    for header in headers:
        name = str(header.relative_to(ROOT / "src"))
        if f'"{name}"' not in everything and f'"{header.name}"' not in everything:
            faults.append(f"{rel(header)}: included by nobody")
    commands = build / "compile_commands.json"
    if not commands.exists():
        return
    kernel_flags = (ROOT / "src" / "kernels" / "CMakeLists.txt").read_text()
    compiled = {pathlib.Path(e["file"]).resolve() for e in json.loads(commands.read_text())}
    for f in files:
        if f.suffix == ".cc" and f.is_relative_to(ROOT / "src") and f.resolve() not in compiled:
            # A kernel for another processor's instruction set is picked by the end of its name.
            other_isa = f.parent.name == "cpu" and rf'"_{f.stem.split("_")[-1]}\\.cc$"' in kernel_flags
            if not f.stem.endswith(("_fuzz", "_bench")) and f'{f.name}' not in everything and not other_isa:
                faults.append(f"{rel(f)}: compiled by nothing")


def check_weak_symbols(build, faults):
    """An inline function emitted from a file built for AVX could be picked by the linker for everybody."""
    folders = (build / "src" / "kernels", build / "arm64" / "src" / "kernels")  # the second: tools/test_arm64.sh
    objects = [o for folder in folders for o in folder.rglob("*.o") if re.search(r"avx|neon", o.name)
               and not re.search(r"_test|_bench", o.name)]
    for obj in objects:
        out = subprocess.run(["nm", "-C", str(obj)], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            m = re.match(r"[0-9a-f]+ ([WVu]) (.*)", line)
            if m and "DW.ref" not in m.group(2):
                faults.append(f"{obj.name}: weak symbol {m.group(2)}")
    if not objects:
        faults.append("no kernel objects found to check for weak symbols")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path)
    args = parser.parse_args()
    table = tomllib.loads((ROOT / "tools" / "layers.toml").read_text())
    files = tracked_files()
    faults = []
    for path in files:
        if path.suffix not in CODE:
            continue
        text = path.read_text(errors="replace")
        check_sizes_and_words(path, text, faults)
        if path.suffix in (".cc", ".h", ".hpp", ".c"):
            code = strip_comments(text)
            check_functions(path, code, faults)
            if path.is_relative_to(ROOT / "src"):
                check_layers(path, text, table["layers"], faults)
                check_bridge(path, text, table["bridge"]["users"], faults)
                check_banned(path, code, faults)
    if args.build:
        check_dead(files, args.build.resolve(), faults)
        check_weak_symbols(args.build.resolve(), faults)
    for fault in faults:
        print(fault)
    print(f"tidy: {len(files)} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
