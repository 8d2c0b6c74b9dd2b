#!/usr/bin/env python3
"""Times Driftwood and llama.cpp side by side on this machine, in the llama-bench convention.

What is compared: `pp512`, a prompt of 512 tokens from an empty context, and `tg128`, 128 tokens one by one from an
empty context, in tokens per second. Each program runs in turn, several rounds, so that a machine that gets hotter
or busier disturbs both alike; the tables show medians over the rounds, and what share that is of the machine's own
peaks, measured next to each model by machine_peaks. bench/peers/README.md says more.

llama.cpp is built once, under ${XDG_CACHE_HOME:-~/.cache}/driftwood/peers (peer_build.py).

  tools/bench_peers.py build
  tools/bench_peers.py run --model model.gguf --driftwood build/release/driftwood
  tools/bench_peers.py run --model a.gguf,threads=1,threads=2 --model b.gguf,generate=64
  tools/bench_peers.py run --model model.gguf --peer-only --threads 1 --threads 2
"""

import argparse
import os
import re
import statistics

import bench_table
import peer_build
from bench_common import (check_context, check_output, check_program, fail, figure, from_one, guarded, json_of,
                          load_before, note, once, plural, write_json)


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
            try:
                number = from_one(value)
            except argparse.ArgumentTypeError as error:
                fail(f"'{setting}' of --model {text}: {error}")
            if key == "threads":
                self.threads.append(number)
            else:
                setattr(self, key, number)
        self.threads = once(self.threads or options.threads or [2])
        if not os.path.isfile(self.model):
            fail(f"no model at {self.model}")


def run_peer(binary, case, threads, repeat):
    command = [binary, "-m", case.model, "-t", str(threads), "-p", str(case.prompt), "-n", str(case.generate), "-r",
               str(repeat), "-o", "json"]
    figures = {}
    for row in json_of(command):
        key = "prompt" if figure("llama-bench", row, "n_prompt") else "generate"
        figures[key] = statistics.median(row.get("samples_ts") or [figure("llama-bench", row, "avg_ts")])
        figures["size"] = figure("llama-bench", row, "model_size")
    if "prompt" not in figures or "generate" not in figures:
        fail("llama-bench reported no pp or no tg row")
    return figures


def run_driftwood(program, case, threads, repeat):
    row = json_of([program, "bench", "--model", case.model, "--prompt", str(case.prompt), "--generate",
                   str(case.generate), "--threads", str(threads), "--repeat", str(repeat), "--json"])

    def number(*keys):
        return figure("'driftwood bench --json'", row, *keys)

    return {"prompt": number("prompt_tokens_per_s"), "generate": number("generate_tokens_per_s"),
            "size": number("weights_bytes"), "bytes_per_token": number("bytes_per_token"),
            "macs_per_token": {kind: number("macs_per_token", kind) for kind in ("int8", "f32")}}


def run_peaks(program, threads):
    row = json_of([program, str(threads)])
    key = str(threads)
    return {"read_gb_per_s": figure(program, row, "read_gb_per_s", key),
            **{f"{kind}_gmac_per_s": figure(program, row, kind, "gmac_per_s", key) for kind in ("int8", "f32")}}


def summary(rounds):
    """Medians over rounds and the widest deviation from them."""
    result = {"rounds": len(rounds), "size": rounds[-1]["size"]}
    for key in ("prompt", "generate"):
        values = [r[key] for r in rounds]
        middle = statistics.median(values)
        result[key] = middle
        result[key + "_spread"] = max(abs(v - middle) for v in values) / middle if middle else 0.0
    return result


def measure(options, binary, case, threads):
    """One entry of the tables: bench_table says what is in it. The peaks are the better of before and after, since
    what a shared machine has to give varies by the hour."""
    peers, ours, peaks = [], [], []
    if options.peaks:
        peaks.append(run_peaks(options.peaks, threads))
    for index in range(options.rounds):
        note(f"{os.path.basename(case.model)}, {plural(threads, 'thread')}, round {index + 1} of {options.rounds}")
        if not options.peer_only:
            ours.append(run_driftwood(options.driftwood, case, threads, options.repeat))
        peers.append(run_peer(binary, case, threads, options.repeat))
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
    peer_build.add_options(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="fetch and build llama-bench, print its path")
    run = commands.add_parser("run", help="measure; a table for each model, then the ratios of all in Markdown")
    run.add_argument("--model", required=True, action="append", metavar="FILE[,threads=N][,prompt=N][,generate=N]",
                     help="a GGUF file, with settings of its own; may be given several times, so may threads=N")
    run.add_argument("--driftwood", default="build/release/driftwood", help="our program")
    run.add_argument("--peer-only", action="store_true", help="measure llama.cpp alone")
    run.add_argument("--threads", type=from_one, action="append", help="may be given several times; default 2")
    run.add_argument("--prompt", type=from_one, default=512, help="tokens (default 512)")
    run.add_argument("--generate", type=from_one, default=128, help="tokens (default 128)")
    run.add_argument("--repeat", type=from_one, default=5, help="repetitions inside one run of a program (default 5)")
    run.add_argument("--rounds", type=from_one, default=3, help="runs of each program, alternating (default 3)")
    run.add_argument("--peaks", help="machine_peaks; default: bench/machine_peaks beside our program")
    run.add_argument("--no-peaks", action="store_true", help="no shares of the machine's peaks")
    run.add_argument("--json", help="write the figures to this file, too")
    return parser.parse_args()


def check_before(options, cases):
    """What would otherwise be found after minutes of building or measuring."""
    if not options.peer_only:
        check_program(options.driftwood, "build it, or name it with --driftwood, or ask for --peer-only")
    if options.no_peaks:
        options.peaks = None
    else:
        options.peaks = options.peaks or os.path.join(os.path.dirname(options.driftwood), "bench", "machine_peaks")
        check_program(options.peaks, "build with -DDW_BENCH=ON, or name it with --peaks, or ask for --no-peaks")
        check_processors(max(threads for case in cases for threads in case.threads))
    if options.json:
        check_output(options.json)
    if not options.peer_only:
        for case in cases:
            check_context(options.driftwood, case.model, max(case.prompt, case.generate),
                          f"prompt={case.prompt}, generate={case.generate}")


def check_processors(threads):
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if threads > processors:
        fail(f"threads={threads}: this process may use {plural(processors, 'processor')}; --no-peaks measures all the "
             "same, for what it is worth")


def main():
    options = parse_arguments()
    if options.command == "build":
        print(peer_build.program(options.peer_version, options.jobs))
        return
    cases = [Case(text, options) for text in options.model]
    check_before(options, cases)
    binary = peer_build.program(options.peer_version, options.jobs)
    load = load_before()
    results = measure_all(options, binary, cases)
    print(bench_table.summary(results))
    print(f"\nload per CPU before the start: {load:.2f}")
    if options.json:
        write_json(options.json, {"load_per_cpu_before": load, "results": results})


if __name__ == "__main__":
    guarded(main)
