"""What the benchmark tools share: messages, numbers of the command line, other programs and their figures."""

import argparse
import json
import os
import signal
import stat
import subprocess
import sys

# A machine with more runnable processes than this per CPU gives figures that mean nothing.
BUSY_LOAD_PER_CPU = 0.25
LINES_OF_STDERR = 10
MOST = 1_048_576  # no option here means anything beyond


def tool():
    return os.path.basename(sys.argv[0]).removesuffix(".py")


def fail(message):
    sys.exit(f"{tool()}: {message}")


def note(message):
    print(f"{tool()}: {message}", file=sys.stderr)


def plural(count, word):
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def words_of(error):
    """An OSError for a reader: 'FILE: what the system says'."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def guarded(main):
    """Runs a tool's main(): what the system refuses (a folder, a full disk) and an interrupt end it with a line."""
    try:
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(f"{tool()}: interrupted")
    except OSError as error:
        # Python flushes once more at its end: what cannot be written must not be told twice.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        fail(words_of(error))


def from_one(text):
    """A number of the command line that cannot be 0."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 to {MOST}")
    return int(text)


def once(numbers):
    """`numbers` without repetitions, in their order."""
    return list(dict.fromkeys(numbers))


def check_program(path, remedy):
    if not os.path.isfile(path):
        fail(f"no program at {path}: {remedy}")
    if not os.access(path, os.X_OK):
        fail(f"{path} is not executable: {remedy}")


def check_output(path):
    """Fails now, not after the measuring, if `path` cannot be written. Leaves it as it was."""
    there = os.path.lexists(path)
    if there and not (os.path.isdir(path) or stat.S_ISREG(os.stat(path).st_mode)):
        return  # a pipe or a device: opening it could mean something to the other end
    with open(path, "ab"):
        pass
    if not there:
        os.remove(path)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2)


def how_it_ended(code):
    if code >= 0:
        return f"failed with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def what_failed(command, code, stderr):
    last = [f"\n  {line}" for line in (stderr or "").splitlines()[-LINES_OF_STDERR:]]
    return f"'{' '.join(command)}' {how_it_ended(code)}{''.join(last)}"


def run(command, about="", **kwargs):
    """subprocess.run() that ends the tool if the program fails, with the last lines of its stderr if it is captured."""
    about = about and about + ": "
    command = [os.fspath(part) for part in command]
    try:
        done = subprocess.run(command, check=False, **kwargs)
    except FileNotFoundError:
        fail(f"{about}'{command[0]}' is not installed")
    except OSError as error:
        fail(f"{about}cannot run '{command[0]}': {error.strerror}")
    if done.returncode != 0:
        fail(about + what_failed(command, done.returncode, done.stderr))
    return done


def output_of(command, about="", **kwargs):
    """What a program prints; its stderr is shown only if it fails."""
    return run(command, about, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
               **kwargs).stdout


def run_shown(command, about=""):
    """For programs that take long: all their output is progress, on our stderr."""
    run(command, about, stdout=sys.stderr)


def json_of(command, about=""):
    text = output_of(command, about)
    try:
        return json.loads(text)
    except ValueError as error:
        fail(f"'{' '.join(command)}' wrote no JSON: {error}")


def json_lines(text):
    """The lines that are JSON objects: such programs print other lines, too."""
    try:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    except ValueError as error:
        fail(f"a line of figures is no JSON: {error}")


def figure(program, row, *keys):
    """The number at row[key][key]... of what `program` printed."""
    value = row
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            value = None
            break
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        fail(f"{program} gave no number '{'.'.join(map(str, keys))}': is it the program it should be?")
    return value


def check_context(driftwood, model, tokens, what):
    """Fails if `model` cannot hold `tokens`, or cannot be loaded at all: the program knows, and says so at once."""
    output_of([driftwood, "bench", "--model", model, "--context", str(tokens), "--prompt", "1", "--generate", "0",
               "--repeat", "1"], f"{what} of {os.path.basename(model)}")


def load_before(warn=True):
    """The load per CPU; says so if it is too high."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    if warn and load > BUSY_LOAD_PER_CPU:
        note(f"warning: the machine is busy (load {load:.2f} per CPU before the start): the figures will be low")
    return load
