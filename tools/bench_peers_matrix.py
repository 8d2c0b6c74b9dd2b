#!/usr/bin/env python3
"""Driftwood and llama.cpp over prompt length, depth, batch and threads, and from a cold start: what
tools/bench_peers.py measures at one point, at many.

  tools/bench_peers_matrix.py --model model.gguf --driftwood build/release/driftwood [--json figures.json]
  tools/bench_peers_matrix.py --model model.gguf --only 'together 1,' --only 'together 8,'

Rows, tokens per second of each program and the ratio; both run in turn, `--rounds` times, medians:
  prompt      512, 2,048 and 8,192 tokens in one go from an empty context
  generate    one token at a time behind 0, 2,048 and nearly 8,192 tokens
  together    1, 4, 8 and 16 sequences that generate at once, behind 128 tokens each: their tokens added up
  cold start  milliseconds from starting the program to its end, a prompt of about 35 tokens and one token more
              (driftwood: the chat actor, sandbox and all; llama.cpp: llama-bench without its warm-up)
Programs and their peculiarities: bench/peers/README.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

import bench_peers

CONTEXT = 8192
GENERATE = 32
BATCH_PROMPT = 128
PROMPTS = (512, 2048, CONTEXT)
DEPTHS = (0, 2048, CONTEXT - GENERATE)
BATCHES = (1, 4, 8, 16)
COLD_PROMPT = 35


class Peer:
    """llama.cpp's programs."""

    def __init__(self, options):
        self.model = options.model
        self.bench = bench_peers.build_peer(options.peer_version, options.jobs)
        self.batched = bench_peers.build_peer(options.peer_version, options.jobs, "llama-batched-bench")

    def one(self, threads, prompt, generate, depth):
        rows = bench_peers.json_of([self.bench, "-m", self.model, "-t", str(threads), "-p", str(prompt), "-n",
                                    str(generate), "-d", str(depth), "-r", "1", "-o", "json"])
        return rows[0]["avg_ts"]

    def prompt(self, threads, count):
        return self.one(threads, count, 0, 0)

    def generate(self, threads, depth):
        return self.one(threads, 0, GENERATE, depth)

    def together(self, threads, sequences):
        command = [self.batched, "-m", self.model, "-t", str(threads), "-c", str(sequences * 256), "-npp",
                   str(BATCH_PROMPT), "-ntg", str(GENERATE), "-npl", str(sequences), "--output-format", "jsonl"]
        done = bench_peers.run_checked(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not rows:
            bench_peers.fail("llama-batched-bench wrote no figures")
        return rows[-1]["speed_tg"]

    def cold(self, threads):
        return [self.bench, "-m", self.model, "-t", str(threads), "-p", "0", "-n", "0", "-pg", f"{COLD_PROMPT},1", "-r",
                "1", "--no-warmup"], ""


class Driftwood:
    def __init__(self, options):
        self.model = options.model
        self.program = options.driftwood

    def one(self, threads, prompt, generate, depth, sessions, key):
        row = bench_peers.json_of([self.program, "bench", "--model", self.model, "--threads", str(threads), "--prompt",
                                   str(prompt), "--generate", str(generate), "--depth", str(depth), "--sessions",
                                   str(sessions), "--repeat", "1", "--json"])
        return row[key]

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
    bench_peers.run_checked(command, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    return 1000 * (time.monotonic() - start)


def cells(threads):
    """(name, how to measure it, whether more is better)."""
    most = max(threads)
    for t in threads:
        for count in PROMPTS if t == most else PROMPTS[:1]:
            yield f"prompt {count:,}, {t} threads", lambda p, t=t, c=count: p.prompt(t, c), True
        for depth in DEPTHS if t == most else DEPTHS[:1]:
            yield f"generate at {depth:,}, {t} threads", lambda p, t=t, d=depth: p.generate(t, d), True
    for n in BATCHES:
        yield f"together {n}, {most} threads", lambda p, n=n: p.together(most, n), True
    yield f"cold start, {most} threads, ms", lambda p: cold_start_ms(p, most), False


def chosen(options):
    """The rows whose names begin as one of --only says; all without it."""
    every = list(cells(options.threads))
    for start in options.only:
        if not any(name.startswith(start) for name, _, _ in every):
            bench_peers.fail(f"--only '{start}': no row begins so; there are {'; '.join(name for name, _, _ in every)}")
    return [row for row in every if not options.only or row[0].startswith(tuple(options.only))]


def measure(options, rows, peer, ours):
    figures = []
    for name, how, more_is_better in rows:
        values = {"llama.cpp": [], "driftwood": []}
        for index in range(options.rounds):
            bench_peers.note(f"{name}: round {index + 1} of {options.rounds}")
            values["llama.cpp"].append(how(peer))
            values["driftwood"].append(how(ours))
        row = {"what": name, **{k: statistics.median(v) for k, v in values.items()}}
        low, high = ("llama.cpp", "driftwood") if more_is_better else ("driftwood", "llama.cpp")
        row["ratio"] = row[high] / row[low]
        figures.append(row)
        print(f"{name:<28} {row['llama.cpp']:>10.1f} {row['driftwood']:>10.1f} {row['ratio']:>7.2f}", flush=True)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--driftwood", default="build/release/driftwood", help="our program")
    parser.add_argument("--threads", type=int, action="append", help="may be given several times; default 1 and 2")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program, alternating")
    parser.add_argument("--only", action="append", default=[], metavar="START",
                        help="only rows whose names begin so; may be given several times")
    parser.add_argument("--no-load-check", action="store_true", help="after a run of ours, which is a load itself")
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("--peer-version", help="as bench_peers.py has it")
    parser.add_argument("--jobs", type=int, default=2, help="parallel compilers")
    options = parser.parse_args()
    options.threads = options.threads or [1, 2]
    rows = chosen(options)
    load = bench_peers.load_per_cpu()
    if load > bench_peers.BUSY_LOAD_PER_CPU and not options.no_load_check:
        bench_peers.note(f"warning: the machine is busy (load {load:.2f} per CPU): the figures will be low")
    peer, ours = Peer(options), Driftwood(options)
    print(f"{os.path.basename(options.model)}: tokens per second, median of {options.rounds}\n"
          f"{'':<28} {'llama.cpp':>10} {'driftwood':>10} {'ratio':>7}", flush=True)
    figures = measure(options, rows, peer, ours)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"model": options.model, "load_per_cpu_before": load, "figures": figures}, out, indent=2)


if __name__ == "__main__":
    main()
