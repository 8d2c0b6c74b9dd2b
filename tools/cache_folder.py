"""Folders below ${XDG_CACHE_HOME:-~/.cache}/driftwood in which tools keep what they made once.

A thing is made under a scratch name and renamed when it is complete, so that an interrupted run leaves nothing that
looks complete. Whoever makes something holds the folder's lock; scratch folders that are there then are an interrupted
run's, and are removed.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile

from bench_common import note

SCRATCH = "tmp."


def path(*parts):
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(root, "driftwood", *parts)


@contextlib.contextmanager
def locked(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"another run works in {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for name in os.listdir(folder):
            if name.startswith(SCRATCH):
                shutil.rmtree(os.path.join(folder, name))
        yield


@contextlib.contextmanager
def scratch(folder):
    """A new folder in `folder`, whose lock is held; what is not moved out of it is removed with it."""
    made = tempfile.mkdtemp(prefix=SCRATCH, dir=folder)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
