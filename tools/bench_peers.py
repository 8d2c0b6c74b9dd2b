#!/usr/bin/env python3
"""Times Driftwood and llama.cpp side by side on this machine, in the llama-bench convention.

What is compared: `pp512`, a prompt of 512 tokens from an empty context, and `tg128`, 128 tokens one by one from an
empty context, in tokens per second. Each program runs in turn, several rounds, so that a machine that gets hotter
or busier disturbs both alike; the table shows medians over the rounds. bench/peers/README.md says more.

llama.cpp comes from the source package `llama-cpp-python` on PyPI, built once (release, for this very CPU) under
${XDG_CACHE_HOME:-~/.cache}/driftwood/peers. Nothing of it enters this repository.

  tools/bench_peers.py build
  tools/bench_peers.py run --model model.gguf --driftwood build/release/driftwood
  tools/bench_peers.py run --model model.gguf --peer-only --threads 1 --threads 2
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile

PACKAGE = "llama-cpp-python"
CMAKE_OPTIONS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_NATIVE=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_OPENSSL=OFF",
]
# A machine with more runnable processes than this per CPU gives figures that mean nothing.
BUSY_LOAD_PER_CPU = 0.25


def fail(message):
    sys.exit(f"bench_peers: {message}")


def note(message):
    print(f"bench_peers: {message}", file=sys.stderr)


def cache_dir():
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(root, "driftwood", "peers")


def run_checked(command, **kwargs):
    try:
        return subprocess.run(command, check=True, **kwargs)
    except FileNotFoundError:
        fail(f"'{command[0]}' is not installed")
    except subprocess.CalledProcessError as error:
        fail(f"'{' '.join(command)}' failed with exit code {error.returncode}")


def fetch(version):
    """The source archive's path; pip is asked only if no archive of that version is in the cache."""
    directory = cache_dir()
    os.makedirs(directory, exist_ok=True)
    pattern = os.path.join(directory, f"llama_cpp_python-{version or '*'}.tar.gz")
    found = sorted(glob.glob(pattern), key=os.path.getmtime)
    if not found:
        wanted = f"{PACKAGE}=={version}" if version else PACKAGE
        note(f"fetching the source of {wanted}")
        run_checked([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", PACKAGE,
                     "--dest", directory, wanted], stdout=sys.stderr)
        found = sorted(glob.glob(pattern), key=os.path.getmtime)
    if not found:
        fail(f"pip brought no source archive of {PACKAGE}")
    return found[-1]


def unpack(archive):
    """Unpacks only vendor/llama.cpp; returns its folder."""
    name = os.path.basename(archive)[: -len(".tar.gz")]
    root = os.path.join(cache_dir(), name)
    source = os.path.join(root, "vendor", "llama.cpp")
    if os.path.isfile(os.path.join(source, "CMakeLists.txt")):
        return source
    prefix = f"{name}/vendor/llama.cpp/"
    with tarfile.open(archive) as tar:
        members = [m for m in tar.getmembers() if m.name.startswith(prefix) and ".." not in m.name.split("/")]
        tar.extractall(cache_dir(), members=members)
    if not os.path.isfile(os.path.join(source, "tools", "llama-bench", "CMakeLists.txt")):
        fail(f"{archive} holds no tools/llama-bench: try another --peer-version")
    return source


def build_peer(version, jobs, target="llama-bench"):
    """The path of one of llama.cpp's programs, built if it is not there yet."""
    source = unpack(fetch(version))
    build = os.path.join(os.path.dirname(source), "build")
    binary = os.path.join(build, "bin", target)
    if os.path.isfile(binary):
        return binary
    polite = ["nice", "-n", "10"] if shutil.which("nice") else []
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    note(f"building {target} in {build} (the first about ten minutes on two cores, once)")
    run_checked(["cmake", "-S", source, "-B", build, *generator, *CMAKE_OPTIONS], stdout=sys.stderr)
    run_checked([*polite, "cmake", "--build", build, "--target", target, "-j", str(jobs)], stdout=sys.stderr)
    if not os.path.isfile(binary):
        fail(f"the build left no {binary}")
    return binary


def json_of(command):
    done = run_checked(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        fail(f"'{' '.join(command)}' wrote no JSON: {error}")


def run_peer(binary, options, threads):
    command = [binary, "-m", options.model, "-t", str(threads), "-p", str(options.prompt), "-n",
               str(options.generate), "-r", str(options.repeat), "-o", "json"]
    rows = json_of(command)
    figures = {"size": 0}
    for row in rows:
        key = "prompt" if row["n_prompt"] else "generate"
        figures[key] = statistics.median(row.get("samples_ts") or [row["avg_ts"]])
        figures["size"] = row["model_size"]
        figures["what"] = f"{row.get('model_type', '?')}, build {row.get('build_commit', '?')}"
    if "prompt" not in figures or "generate" not in figures:
        fail("llama-bench reported no pp or no tg row")
    return figures


def run_driftwood(options, threads):
    command = [options.driftwood, "bench", "--model", options.model, "--prompt", str(options.prompt), "--generate",
               str(options.generate), "--threads", str(threads), "--repeat", str(options.repeat), "--json"]
    row = json_of(command)
    for key in ("prompt_tokens_per_s", "generate_tokens_per_s"):
        if not isinstance(row.get(key), (int, float)):
            fail(f"'driftwood bench --json' has no number '{key}'")
    return {"prompt": row["prompt_tokens_per_s"], "generate": row["generate_tokens_per_s"],
            "size": row.get("weights_bytes", 0)}


def summary(rounds):
    """Medians over rounds, the widest deviation from them, and the weights read per second while generating."""
    result = {"rounds": len(rounds), "size": rounds[-1]["size"]}
    for key in ("prompt", "generate"):
        values = [r[key] for r in rounds]
        middle = statistics.median(values)
        result[key] = middle
        result[key + "_spread"] = max(abs(v - middle) for v in values) / middle if middle else 0.0
    result["read_gb_per_s"] = result["generate"] * result["size"] / 1e9
    return result


def load_per_cpu():
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def measure(options, binary):
    results = []
    for threads in options.threads:
        peers, ours = [], []
        for index in range(options.rounds):
            note(f"{threads} threads, round {index + 1} of {options.rounds}")
            peers.append(run_peer(binary, options, threads))
            if not options.peer_only:
                ours.append(run_driftwood(options, threads))
        result = {"threads": threads, "llama.cpp": summary(peers)}
        if ours:
            result["driftwood"] = summary(ours)
            for key in ("prompt", "generate"):
                result[key + "_ratio"] = result["driftwood"][key] / result["llama.cpp"][key]
        results.append(result)
    return results


def table(options, results):
    pp, tg = f"pp{options.prompt}", f"tg{options.generate}"
    lines = [f"{os.path.basename(options.model)}: tokens per second, median of {options.rounds} rounds of "
             f"{options.repeat} (spread over the rounds)",
             f"{'threads':>7}  {'program':<10} {pp:>16} {tg:>16} {'MB weights':>11} {'GB/s read':>10}"]
    for result in results:
        for name in ("llama.cpp", "driftwood"):
            row = result.get(name)
            if row:
                lines.append(f"{result['threads']:>7}  {name:<10} "
                             f"{row['prompt']:>8.1f} ±{100 * row['prompt_spread']:>4.1f} % "
                             f"{row['generate']:>8.1f} ±{100 * row['generate_spread']:>4.1f} % "
                             f"{row['size'] / 1e6:>11.1f} {row['read_gb_per_s']:>10.1f}")
        if "prompt_ratio" in result:
            lines.append(f"{result['threads']:>7}  {'ratio':<10} {result['prompt_ratio']:>8.2f} {'':>7} "
                         f"{result['generate_ratio']:>8.2f}")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-version", help=f"version of {PACKAGE}; default: the newest in the cache, else on PyPI")
    parser.add_argument("--jobs", type=int, default=2, help="parallel compilers (default 2)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="fetch and build llama-bench, print its path")
    run = commands.add_parser("run", help="measure and print the table")
    run.add_argument("--model", required=True, help="a GGUF file")
    run.add_argument("--driftwood", default="build/release/driftwood", help="our program")
    run.add_argument("--peer-only", action="store_true", help="measure llama.cpp alone")
    run.add_argument("--threads", type=int, action="append", help="may be given several times; default 2")
    run.add_argument("--prompt", type=int, default=512)
    run.add_argument("--generate", type=int, default=128)
    run.add_argument("--repeat", type=int, default=5, help="repetitions inside one run of a program")
    run.add_argument("--rounds", type=int, default=3, help="runs of each program, alternating")
    run.add_argument("--json", action="store_true", help="figures as JSON on stdout")
    return parser.parse_args()


def main():
    options = parse_arguments()
    if options.command == "build":
        print(build_peer(options.peer_version, options.jobs))
        return
    options.threads = options.threads or [2]
    if not os.path.isfile(options.model):
        fail(f"no model at {options.model}")
    if not options.peer_only and not os.access(options.driftwood, os.X_OK):
        fail(f"no program at {options.driftwood}: build it, or name it with --driftwood, or ask for --peer-only")
    binary = build_peer(options.peer_version, options.jobs)
    load = load_per_cpu()
    if load > BUSY_LOAD_PER_CPU:
        note(f"warning: the machine is busy (load {load:.2f} per CPU before the start): the figures will be low")
    results = measure(options, binary)
    if options.json:
        print(json.dumps({"model": options.model, "load_per_cpu_before": load, "results": results}, indent=2))
    else:
        print(table(options, results))
        print(f"load per CPU before the start: {load:.2f}")


if __name__ == "__main__":
    main()
