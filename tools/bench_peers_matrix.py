#!/usr/bin/env python3
"""Driftwood and llama.cpp over prompt length, depth, batch and threads, and from a cold start: what
tools/bench_peers.py measures at one point, at many.

  tools/bench_peers_matrix.py --model model.gguf --driftwood build/release/driftwood [--json figures.json]
  tools/bench_peers_matrix.py --model model.gguf --only 'together 1,' --only 'together 8,'

Rows, tokens per second of each program and the ratio; both run in turn, `--rounds` times (3), medians:
  prompt      512, 2,048 and 8,192 tokens in one go from an empty context
  generate    one token at a time behind 0, 2,048 and nearly 8,192 tokens
  together    1, 4, 8 and 16 sequences that generate at once, behind 128 tokens each: their tokens added up
  cold start  milliseconds from starting the program to its end, a prompt of about 35 tokens and one token more
              (driftwood: the chat actor, sandbox and all; llama.cpp: llama-bench without its warm-up)
Programs and their peculiarities: bench/peers/README.md.
"""

import argparse
import os
import statistics
import subprocess
import time

import peer_build
from bench_common import (check_context, check_output, check_program, fail, figure, from_one, guarded, json_lines,
                          json_of, load_before, note, once, output_of, plural, run, write_json)

CONTEXT = 8192
GENERATE = 32
BATCH_PROMPT = 128
PROMPTS = (512, 2048, CONTEXT)
DEPTHS = (0, 2048, CONTEXT - GENERATE)
BATCHES = (1, 4, 8, 16)
COLD_PROMPT = 35
COLD_TOKENS = 64  # of both programs at most


class Peer:
    """llama.cpp's programs."""

    def __init__(self, options):
        self.model = options.model
        self.bench = peer_build.program(options.peer_version, options.jobs)
        self.batched = peer_build.program(options.peer_version, options.jobs, "llama-batched-bench")

    def one(self, threads, prompt, generate, depth):
        rows = json_of([self.bench, "-m", self.model, "-t", str(threads), "-p", str(prompt), "-n", str(generate), "-d",
                        str(depth), "-r", "1", "-o", "json"])
        return figure("llama-bench", rows, 0, "avg_ts")

    def prompt(self, threads, count):
        return self.one(threads, count, 0, 0)

    def generate(self, threads, depth):
        return self.one(threads, 0, GENERATE, depth)

    def together(self, threads, sequences):
        command = [self.batched, "-m", self.model, "-t", str(threads), "-c", str(sequences * 256), "-npp",
                   str(BATCH_PROMPT), "-ntg", str(GENERATE), "-npl", str(sequences), "--output-format", "jsonl"]
        return figure("llama-batched-bench", json_lines(output_of(command)), -1, "speed_tg")

    def cold(self, threads):
        return [self.bench, "-m", self.model, "-t", str(threads), "-p", "0", "-n", "0", "-pg", f"{COLD_PROMPT},1", "-r",
                "1", "--no-warmup"], ""


class Driftwood:
    def __init__(self, options):
        self.model = options.model
        self.program = options.driftwood

    def one(self, threads, prompt, generate, depth, sessions, key):
        row = json_of([self.program, "bench", "--model", self.model, "--threads", str(threads), "--prompt", str(prompt),
                       "--generate", str(generate), "--depth", str(depth), "--sessions", str(sessions), "--repeat", "1",
                       "--json"])
        return figure("'driftwood bench --json'", row, key)

    def prompt(self, threads, count):
        return self.one(threads, count, 0, 0, 1, "prompt_tokens_per_s")

    def generate(self, threads, depth):
        return self.one(threads, 0, GENERATE, depth, 1, "generate_tokens_per_s")

    def together(self, threads, sequences):
        return self.one(threads, 0, GENERATE, BATCH_PROMPT, sequences, "generate_tokens_per_s")

    def cold(self, threads):
        return [self.program, "chat", "--model", self.model, "--threads", str(threads), "--max-tokens", "1"], "Hi\n"


def cold_start_ms(program, threads):
    command, text = program.cold(threads)
    start = time.monotonic()
    run(command, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    return 1000 * (time.monotonic() - start)


def cells(threads):
    """(name, tokens of context, how to measure it, whether more is better)."""
    most = max(threads)
    for t in threads:
        of = plural(t, "thread")
        for count in PROMPTS if t == most else PROMPTS[:1]:
            yield f"prompt {count:,}, {of}", count, lambda p, t=t, c=count: p.prompt(t, c), True
        for depth in DEPTHS if t == most else DEPTHS[:1]:
            yield f"generate at {depth:,}, {of}", depth + GENERATE, lambda p, t=t, d=depth: p.generate(t, d), True
    of = plural(most, "thread")
    for n in BATCHES:
        yield f"together {n}, {of}", BATCH_PROMPT + GENERATE, lambda p, n=n: p.together(most, n), True
    yield f"cold start, {of}, ms", COLD_TOKENS, lambda p: cold_start_ms(p, most), False


def chosen(options):
    """The rows whose names begin as one of --only says; all without it."""
    every = list(cells(options.threads))
    for start in options.only:
        if not any(row[0].startswith(start) for row in every):
            fail(f"--only '{start}': no row begins so; there are {'; '.join(row[0] for row in every)}")
    return [row for row in every if not options.only or row[0].startswith(tuple(options.only))]


def measure(options, rows, peer, ours):
    figures = []
    for name, _, how, more_is_better in rows:
        values = {"llama.cpp": [], "driftwood": []}
        for index in range(options.rounds):
            note(f"{name}: round {index + 1} of {options.rounds}")
            values["driftwood"].append(how(ours))
            values["llama.cpp"].append(how(peer))
        row = {"what": name, **{k: statistics.median(v) for k, v in values.items()}}
        low, high = ("llama.cpp", "driftwood") if more_is_better else ("driftwood", "llama.cpp")
        row["ratio"] = row[high] / row[low]
        figures.append(row)
        print(f"{name:<28} {row['llama.cpp']:>10.1f} {row['driftwood']:>10.1f} {row['ratio']:>7.2f}", flush=True)
    return figures


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--driftwood", default="build/release/driftwood", help="our program")
    parser.add_argument("--threads", type=from_one, action="append",
                        help="may be given several times; default 1 and 2")
    parser.add_argument("--rounds", type=from_one, default=3, help="runs of each program, alternating (default 3)")
    parser.add_argument("--only", action="append", default=[], metavar="START",
                        help="only rows whose names begin so; may be given several times")
    parser.add_argument("--no-load-check", action="store_true", help="after a run of ours, which is a load itself")
    parser.add_argument("--json", help="write the figures to this file, too")
    peer_build.add_options(parser)
    options = parser.parse_args()
    options.threads = once(options.threads or [1, 2])
    return options


def check_before(options, rows):
    """What would otherwise be found after minutes of building or measuring."""
    if not os.path.isfile(options.model):
        fail(f"no model at {options.model}")
    check_program(options.driftwood, "build it, or name it with --driftwood")
    if options.json:
        check_output(options.json)
    name, tokens, *_ = max(rows, key=lambda row: row[1])
    check_context(options.driftwood, options.model, tokens, f"row '{name}' (--only leaves it out)")


def main():
    options = parse_arguments()
    rows = chosen(options)
    check_before(options, rows)
    peer, ours = Peer(options), Driftwood(options)
    load = load_before(warn=not options.no_load_check)
    print(f"{os.path.basename(options.model)}: tokens per second, median of {plural(options.rounds, 'round')}\n"
          f"{'':<28} {'llama.cpp':>10} {'driftwood':>10} {'ratio':>7}", flush=True)
    figures = measure(options, rows, peer, ours)
    if options.json:
        write_json(options.json, {"model": options.model, "load_per_cpu_before": load, "figures": figures})


if __name__ == "__main__":
    guarded(main)
