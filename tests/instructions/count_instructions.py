#!/usr/bin/env python3
"""Counts the instructions of the AVX2 kernels under callgrind and compares them with the baseline.

Usage: count_instructions.py [--update] [--baseline FILE] PATH_OF_kernel_workload

Exit 0: no case costs more than the baseline by more than the limit. 1: one does, or the cases differ. 77 (skipped):
no valgrind, no AVX2, or a compiler the baseline does not speak for; in the last case the table is printed all the same.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path(__file__).with_name("baseline.json")
SKIPPED = 77
# Counts repeat exactly, so the limit is no allowance for noise. One more instruction for each block of 32 inputs and 16
# rows of a token costs a matmul 0.8 to 1.6 percent: the limit is below that.
LIMIT = 0.005


class Failed(Exception):
    """What the user has to know; the exit code is 1."""


class Skipped(Exception):
    """Why nothing could be judged; the exit code is 77."""


@dataclasses.dataclass
class Count:
    name: str
    unit: str      # "MAC" or "value"
    amount: int    # of units
    least: float   # instructions a unit that the inner loop cannot do without
    instructions: int

    def each(self):
        return self.instructions / self.amount


def instructions_of_dumps(folder):
    """The total of each dump, in the order of the calls of measured_kernel."""
    dumps = sorted(folder.glob("dump.*[0-9]"), key=lambda path: int(path.suffix[1:]))
    totals = []
    for dump in dumps:
        lines = [line for line in dump.read_text().splitlines() if line.startswith("totals:")]
        if len(lines) != 1:
            raise Failed(f"{dump.name} of callgrind has {len(lines)} lines of totals; expected 1")
        totals.append(int(lines[0].split()[1]))
    return totals


def count(workload):
    """(compiler, [Count]) of one run of all cases under callgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise Skipped("valgrind is not installed (tools/setup.sh does it)")
    if not pathlib.Path(workload).is_file():
        raise Failed(f"{workload}: no such program; build the target kernel_workload")
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [valgrind, "--tool=callgrind", "--toggle-collect=measured_kernel", "--dump-after=measured_kernel",
             f"--callgrind-out-file={folder}/dump", workload], capture_output=True, text=True)
        if run.returncode == SKIPPED:
            raise Skipped(next((line for line in run.stderr.splitlines() if line.startswith("kernel_workload:")),
                               f"{workload} says it cannot run here"))
        if run.returncode != 0:
            raise Failed(f"{workload} under valgrind ended with {run.returncode}:\n{run.stderr}")
        return counts_of(workload, run.stdout, instructions_of_dumps(pathlib.Path(folder)))


def counts_of(workload, printed, totals):
    """(compiler, [Count]) of what kernel_workload printed and callgrind counted."""
    try:
        (kind, *compiler), *cases = [line.split() for line in printed.splitlines()]
        if kind != "compiler":
            raise ValueError
        cases = [(name, unit, int(amount), float(least)) for _, name, unit, amount, least in cases]
    except ValueError:
        raise Failed(f"{workload} is no kernel_workload: it printed no compiler and cases, but "
                     f"{repr(printed[:200]) if printed else 'nothing'}") from None
    if len(cases) != len(totals):
        raise Failed(f"{len(cases)} cases but {len(totals)} dumps of callgrind:\n{printed}")
    return " ".join(compiler), [Count(*case, total) for case, total in zip(cases, totals)]


def read_baseline(path):
    """(compiler, {case: instructions})."""
    try:
        baseline = json.loads(path.read_text())
        known, before = baseline["compiler"], baseline["instructions"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failed(f"{path} is no baseline ({error!r}); --update writes one") from error
    if not isinstance(known, str) or not isinstance(before, dict):
        raise Failed(f"{path} is no baseline ('compiler' is to be a text, 'instructions' an object); --update writes one")
    for name, number in before.items():
        if type(number) is not int or number < 1:
            raise Failed(f"{path} is no baseline ({name} has {json.dumps(number)} instructions, which is no count); "
                         "--update writes one")
    return known, before


def table(counts, before):
    head = f"{'case':32} {'baseline':>11} {'now':>11} {'ratio':>7}   {'a unit':>7} {'least':>7} {'now/least':>9}  unit"
    yield head
    yield "-" * len(head)
    for c in counts:
        old = before.get(c.name)
        ratio = f"{c.instructions / old:7.4f}" if old else f"{'new':>7}"
        yield (f"{c.name:32} {old or '':>11} {c.instructions:>11} {ratio}   {c.each():7.3f} {c.least:7.3f} "
               f"{c.each() / c.least:9.2f}  {c.unit}")


def judge(counts, before):
    """([what is wrong], [what is better])."""
    worse, better = [], []
    for c in counts:
        old = before.get(c.name)
        if old is None:
            worse.append(f"{c.name} is not in the baseline: --update adds it")
        elif c.instructions > old * (1 + LIMIT):
            worse.append(f"{c.name} takes {c.instructions / old - 1:.2%} more instructions than the baseline "
                         f"(limit {LIMIT:.1%}): {old} -> {c.instructions}")
        elif c.instructions < old * (1 - LIMIT):
            better.append(f"{c.name} takes {1 - c.instructions / old:.2%} fewer instructions than the baseline")
    counted = {c.name for c in counts}
    worse += [f"{name} is in the baseline but was not counted: --update drops it"
              for name in before if name not in counted]
    return worse, better


def check(args):
    compiler, counts = count(args.workload)
    if args.update:
        numbers = {c.name: c.instructions for c in counts}
        try:
            args.baseline.write_text(json.dumps({"compiler": compiler, "instructions": numbers}, indent=2) + "\n")
        except OSError as error:
            raise Failed(f"cannot write {args.baseline}: {error.strerror}") from error
        print(*table(counts, {}), f"written: {args.baseline}", sep="\n")
        return
    known, before = read_baseline(args.baseline)
    print(*table(counts, before), sep="\n")
    if compiler != known:
        raise Skipped(f"the baseline is for {known}, this is {compiler}: the ratios above say nothing about the source")
    worse, better = judge(counts, before)
    for line in better:
        print(f"better: {line}")
    if better:
        print("Keep what was won: update the baseline with --update.")
    if worse:
        raise Failed("\n".join(worse) + "\nIf that is meant, update the baseline with --update.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", help="the program kernel_workload")
    parser.add_argument("--baseline", type=pathlib.Path, default=BASELINE)
    parser.add_argument("--update", action="store_true", help="write the counts as the new baseline")
    try:
        check(parser.parse_args())
        sys.stdout.flush()
    except Skipped as why:
        print(f"skipped: {why}")
        return SKIPPED
    except Failed as why:
        print(f"failed: {why}")
        return 1
    except OSError as error:  # nobody may read the table: a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains once more when it ends
        print(f"failed: cannot write the table: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
