#!/usr/bin/env python3
"""Times Driftwood and llama.cpp side by side on this machine, in the llama-bench convention.

What is compared: `pp512`, a prompt of 512 tokens from an empty context, and `tg128`, 128 tokens one by one from an
empty context, in tokens per second. Each program runs in turn, several rounds, so that a machine that gets hotter
or busier disturbs both alike; the tables show medians over the rounds, and what share that is of the machine's own
peaks, measured next to each model by machine_peaks. bench/peers/README.md says more.

llama.cpp comes from the source package `llama-cpp-python` on PyPI, built once (release, for this very CPU) under
${XDG_CACHE_HOME:-~/.cache}/driftwood/peers. Nothing of it enters this repository.

  tools/bench_peers.py build
  tools/bench_peers.py run --model model.gguf --driftwood build/release/driftwood
  tools/bench_peers.py run --model a.gguf,threads=1,threads=2 --model b.gguf,generate=64
  tools/bench_peers.py run --model model.gguf --peer-only --threads 1 --threads 2
"""

import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile

import bench_table

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


class Case:
    """A model and how to run it: FILE[,threads=N][,prompt=N][,generate=N] over the command line's own values."""

    def __init__(self, text, options):
        settings = re.search(r"(,[a-z]+=[^,=/.]*)*$", text).group()
        self.model = text[: len(text) - len(settings)]
        self.threads, self.prompt, self.generate = [], options.prompt, options.generate
        for setting in settings.split(",")[1:]:
            key, value = setting.split("=")
            if key not in ("threads", "prompt", "generate"):
                fail(f"'{setting}' of --model {text}: the settings are threads, prompt and generate")
            if not value.isdecimal() or int(value) < 1:
                fail(f"'{setting}' of --model {text}: '{value}' is no number from 1 on")
            if key == "threads":
                self.threads.append(int(value))
            else:
                setattr(self, key, int(value))
        self.threads = self.threads or options.threads or [2]
        if not os.path.isfile(self.model):
            fail(f"no model at {self.model}")


def run_peer(binary, case, threads, repeat):
    command = [binary, "-m", case.model, "-t", str(threads), "-p", str(case.prompt), "-n", str(case.generate), "-r",
               str(repeat), "-o", "json"]
    figures = {"size": 0}
    for row in json_of(command):
        key = "prompt" if row["n_prompt"] else "generate"
        figures[key] = statistics.median(row.get("samples_ts") or [row["avg_ts"]])
        figures["size"] = row["model_size"]
    if "prompt" not in figures or "generate" not in figures:
        fail("llama-bench reported no pp or no tg row")
    return figures


def run_driftwood(program, case, threads, repeat):
    command = [program, "bench", "--model", case.model, "--prompt", str(case.prompt), "--generate", str(case.generate),
               "--threads", str(threads), "--repeat", str(repeat), "--json"]
    row = json_of(command)
    for key in ("prompt_tokens_per_s", "generate_tokens_per_s", "weights_bytes", "bytes_per_token"):
        if not isinstance(row.get(key), (int, float)):
            fail(f"'driftwood bench --json' has no number '{key}'")
    return {"prompt": row["prompt_tokens_per_s"], "generate": row["generate_tokens_per_s"],
            "size": row["weights_bytes"], "bytes_per_token": row["bytes_per_token"],
            "macs_per_token": row["macs_per_token"]}


def run_peaks(program, threads):
    row = json_of([program, str(threads)])
    key = str(threads)
    return {"read_gb_per_s": row["read_gb_per_s"][key], "int8_gmac_per_s": row["int8"]["gmac_per_s"][key],
            "f32_gmac_per_s": row["f32"]["gmac_per_s"][key]}


def summary(rounds):
    """Medians over rounds and the widest deviation from them."""
    result = {"rounds": len(rounds), "size": rounds[-1]["size"]}
    for key in ("prompt", "generate"):
        values = [r[key] for r in rounds]
        middle = statistics.median(values)
        result[key] = middle
        result[key + "_spread"] = max(abs(v - middle) for v in values) / middle if middle else 0.0
    return result


def load_per_cpu():
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def measure(options, binary, case, threads):
    """One entry of the tables: bench_table says what is in it. The peaks are the better of before and after, since
    what a shared machine has to give varies by the hour."""
    peers, ours, peaks = [], [], []
    if options.peaks:
        peaks.append(run_peaks(options.peaks, threads))
    for index in range(options.rounds):
        note(f"{os.path.basename(case.model)}, {threads} threads, round {index + 1} of {options.rounds}")
        peers.append(run_peer(binary, case, threads, options.repeat))
        if not options.peer_only:
            ours.append(run_driftwood(options.driftwood, case, threads, options.repeat))
    if options.peaks:
        peaks.append(run_peaks(options.peaks, threads))
    result = {"model": case.model, "threads": threads, "prompt_tokens": case.prompt, "generate_tokens": case.generate,
              "bytes_per_token": ours[0]["bytes_per_token"] if ours else peers[0]["size"],
              "macs_per_token": ours[0]["macs_per_token"] if ours else None,
              "peaks": {key: max(p[key] for p in peaks) for key in peaks[0]} if peaks else None,
              "llama.cpp": summary(peers)}
    if ours:
        result["driftwood"] = summary(ours)
    return result


def measure_all(options, binary, cases):
    results = []
    for case in cases:
        of_case = [measure(options, binary, case, threads) for threads in case.threads]
        print(bench_table.model_table(of_case, options.rounds, options.repeat), "\n", sep="", flush=True)
        results += of_case
    return results


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-version", help=f"version of {PACKAGE}; default: the newest in the cache, else on PyPI")
    parser.add_argument("--jobs", type=int, default=2, help="parallel compilers (default 2)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="fetch and build llama-bench, print its path")
    run = commands.add_parser("run", help="measure; a table for each model, then the ratios of all in Markdown")
    run.add_argument("--model", required=True, action="append", metavar="FILE[,threads=N][,prompt=N][,generate=N]",
                     help="a GGUF file, with settings of its own; may be given several times, so may threads=N")
    run.add_argument("--driftwood", default="build/release/driftwood", help="our program")
    run.add_argument("--peer-only", action="store_true", help="measure llama.cpp alone")
    run.add_argument("--threads", type=int, action="append", help="may be given several times; default 2")
    run.add_argument("--prompt", type=int, default=512)
    run.add_argument("--generate", type=int, default=128)
    run.add_argument("--repeat", type=int, default=5, help="repetitions inside one run of a program")
    run.add_argument("--rounds", type=int, default=3, help="runs of each program, alternating")
    run.add_argument("--peaks", help="machine_peaks; default: bench/machine_peaks beside our program")
    run.add_argument("--no-peaks", action="store_true", help="no shares of the machine's peaks")
    run.add_argument("--json", help="write the figures to this file, too")
    return parser.parse_args()


def check_programs(options):
    if not options.peer_only and not os.access(options.driftwood, os.X_OK):
        fail(f"no program at {options.driftwood}: build it, or name it with --driftwood, or ask for --peer-only")
    if options.no_peaks:
        options.peaks = None
        return
    options.peaks = options.peaks or os.path.join(os.path.dirname(options.driftwood), "bench", "machine_peaks")
    if not os.access(options.peaks, os.X_OK):
        fail(f"no program at {options.peaks}: build with -DDW_BENCH=ON, or name it with --peaks, or ask for --no-peaks")


def main():
    options = parse_arguments()
    if options.command == "build":
        print(build_peer(options.peer_version, options.jobs))
        return
    cases = [Case(text, options) for text in options.model]
    check_programs(options)
    binary = build_peer(options.peer_version, options.jobs)
    load = load_per_cpu()
    if load > BUSY_LOAD_PER_CPU:
        note(f"warning: the machine is busy (load {load:.2f} per CPU before the start): the figures will be low")
    results = measure_all(options, binary, cases)
    print(bench_table.summary(results))
    print(f"\nload per CPU before the start: {load:.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"load_per_cpu_before": load, "results": results}, out, indent=2)


if __name__ == "__main__":
    main()
