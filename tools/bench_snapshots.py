#!/usr/bin/env python3
"""Snapshots of a whole actor beside llama.cpp's slot files: the same machine, model, threads and run.

`snapshot_actor_bench` (src/actor) measures ours, `bench/peers/llama_slots.cc` theirs, built here against the llama.cpp
that tools/bench_peers.py keeps under the user's cache. What theirs holds: token ids and KV, written without a flush.
What ours holds: the whole actor (memory, globals, mailbox, sampler, logits, KV), durable on the disk. The programs run
one after the other, never at once.

  tools/bench_snapshots.py --model model.gguf --build build/release
  tools/bench_snapshots.py --model model.gguf --build build/release --no-peer --json
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

import peer_build
from bench_common import check_program, fail, guarded, json_lines, load_before, output_of, run, what_failed

LONGEST = 4096
CONTEXTS = (24, 512, LONGEST)
# Figure, tokens, words, most it may be (or least, with a minus), in its unit.
TARGETS = [
    *[("restore", n, "restore to runnable", 0.5) for n in CONTEXTS],
    *[("restore_first_time", n, "the same, first time in a store", 0.5) for n in CONTEXTS],
    ("held_by_save", LONGEST, "actor held by a save", 5),
    ("save_ratio", LONGEST, "save against write + fsync", 1.3),
    ("token_ratio", LONGEST, "first token after restore against a warm step", 1.3),
    ("fork_of_restored", LONGEST, "live fork, 1 % of 1 MB written", 150),
    ("fork_of_started", LONGEST, "the same of an actor never restored", 150),
    ("thousand_forks_rss", LONGEST, "memory of one of 1,000 forks", 200),
    ("verified_restore_rate", LONGEST, "verified restore", -4),
]
PLAIN = [
    ("save", LONGEST, "save"), ("save_bytes", LONGEST, "bytes of it"),
    ("save_after_1_more", LONGEST, "save after 1 more token"), ("save_after_1_more_bytes", LONGEST, "bytes of it"),
    ("save_after_32_more", LONGEST, "save after 32 more tokens"), ("save_after_32_more_bytes", LONGEST, "bytes of it"),
    ("verified_restore_processor", LONGEST, "processor time of a verified restore"),
    ("cycle", 24, "write, save, restore, destroy"), ("cycles_800_rss", 24, "memory after 800 cycles"),
    ("cycles_800_mappings", 24, "mappings after 800 cycles"),
    ("cycles_800_descriptors", 24, "descriptors after 800 cycles"),
]
BESIDE = [
    *[("restore", n, "restore") for n in CONTEXTS], *[("token_after_restore", n, "token after it") for n in CONTEXTS],
    ("save", LONGEST, "save"), ("save_bytes", LONGEST, "bytes of it"), ("prefill", LONGEST, "prefill"),
    ("prefill_and_first_token", LONGEST, "prefill + first token"),
    ("restore_and_first_token", LONGEST, "restore + first token, page cache warm"),
    ("cold_restore_and_first_token", LONGEST, "restore + first token, page cache cold"),
]


def figures_of(command, environment=None):
    text = run(command, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return {(row["figure"], row["tokens"]): row for row in json_lines(text)}


def build_slots():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return peer_build.compiled(2, os.path.join(root, "bench", "peers", "llama_slots.cc"), "llama_slots")


def new_process(options, folder):
    """From nothing to the first output of a restored chat, in a process of its own."""
    program = os.path.join(options.build, "driftwood")
    common = ["--store", os.path.join(folder, "cli-store"), "--model", options.model]
    chat = os.path.join(options.build, "guests", "chat.wasm")
    config = os.path.join(folder, "chat.config")
    with open(config, "w", encoding="ascii") as file:
        file.write("max_tokens=16\n")  # of an answer; the snapshot keeps it
    output_of([program, "snapshot", "save", chat, "--message", "Name three colours.", "--name", "chat",
               "--actor-config", config, *common])
    restore = [program, "snapshot", "restore", "chat", "--message", "And a fourth?", *common]
    times = []
    for _ in range(5):
        start = time.monotonic()
        with (tempfile.TemporaryFile("w+", errors="replace") as errors,
              subprocess.Popen(restore, stdout=subprocess.PIPE, stderr=errors) as child):
            first = child.stdout.read(1)
            times.append((time.monotonic() - start) * 1e3)
            child.stdout.read()
            code = child.wait()
            errors.seek(0)
            if code != 0 or not first:
                fail(what_failed(restore, code, errors.read()))
    times.sort()
    return {"figure": "new_process_first_output", "tokens": 0, "unit": "ms", "median": times[len(times) // 2],
            "low": times[1], "high": times[-2], "n": len(times)}


def show(row):
    return f"{row['median']:>10.3f} {row['unit']:<6} ({row['low']:.3f} to {row['high']:.3f})"


def with_ratio(ours):
    after, warm = ours.get(("token_after_restore", LONGEST)), ours.get(("token_never_stopped", LONGEST))
    if after and warm:
        ours[("token_ratio", LONGEST)] = {
            "figure": "token_ratio", "tokens": LONGEST, "unit": "ratio", "n": after["n"],
            "median": after["median"] / warm["median"], "low": after["low"] / warm["median"],
            "high": after["high"] / warm["median"]}


def table(ours, theirs):
    lines = ["An actor of 1 MB with one session; medians (quartiles)", ""]
    for figure, tokens, words, target in TARGETS:
        row = ours.get((figure, tokens))
        if row:
            met = row["median"] >= -target if target < 0 else row["median"] <= target
            wanted = f"{'>=' if target < 0 else '<='} {abs(target)}: {'met' if met else 'MISSED'}"
            lines.append(f"{words:<46} {tokens:>5}  {show(row):<44} {wanted}")
    for figure, tokens, words in PLAIN:
        if (figure, tokens) in ours:
            lines.append(f"{words:<46} {tokens:>5}  {show(ours[(figure, tokens)])}")
    for (figure, _), row in ours.items():
        if figure == "new_process_first_output":
            lines.append(f"{'new process, from nothing to its first output':<46} {'':>5}  {show(row)}")
    if theirs:
        lines += ["", f"{'beside llama.cpp':<46} {'':>5}  {'driftwood':>12} {'llama.cpp':>12} {'times':>8}"]
        for figure, tokens, words in BESIDE:
            mine, other = ours.get((figure, tokens)), theirs.get(("llama_" + figure, tokens))
            if mine and other:
                lines.append(f"{words:<46} {tokens:>5}  {mine['median']:>12.3f} {other['median']:>12.3f} "
                             f"{other['median'] / mine['median']:>8.1f}  {mine['unit']}")
        for name, rows, prefix in (("driftwood", ours, ""), ("llama.cpp", theirs, "llama_")):
            for cache in ("", "cold_"):
                prefill = rows.get((prefix + "prefill_and_first_token", LONGEST))
                restore = rows.get((f"{prefix}{cache}restore_and_first_token", LONGEST))
                if prefill and restore:
                    lines.append(f"{name}: prefill + first token takes {prefill['median'] / restore['median']:.0f} times "
                                 f"as long as restore + first token (page cache {'cold' if cache else 'warm'})")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--build", default="build/release", help="our build folder, configured with DW_BENCH=ON")
    parser.add_argument("--no-peer", action="store_true", help="without llama.cpp")
    parser.add_argument("--figure", action="append", default=[], help="only this group of snapshot_actor_bench")
    parser.add_argument("--json", action="store_true", help="figures as JSON on stdout")
    options = parser.parse_args()
    bench = os.path.join(options.build, "bench", "snapshot_actor_bench")
    if not os.path.isfile(options.model):
        fail(f"no model at {options.model}")
    check_program(bench, "configure with -DDW_BENCH=ON and build it")
    slots = None if options.no_peer else build_slots()
    load = load_before()
    with tempfile.TemporaryDirectory() as folder:
        ours = figures_of([bench, *options.figure], {**os.environ, "DRIFTWOOD_SMOLLM2": options.model})
        with_ratio(ours)
        if not options.figure:
            started = new_process(options, folder)
            ours[(started["figure"], 0)] = started
        theirs = figures_of([slots, options.model, "2", folder]) if slots else {}
    if options.json:
        print(json.dumps({"load_per_cpu_before": load, "figures": [*ours.values(), *theirs.values()]}, indent=2))
    else:
        print(table(ours, theirs))
        print(f"load per CPU before the start: {load:.2f}")


if __name__ == "__main__":
    guarded(main)
