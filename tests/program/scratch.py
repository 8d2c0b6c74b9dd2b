"""What tests of snapshots share: a store in a folder of its own, and an actor that needs no model."""
import json
import pathlib
import tempfile
import unittest

import harness

# Counts its messages, says the count and asks for a snapshot named "cp".
COUNTER = """(module
  (import "driftwood" "emit" (func $emit (param i32 i32) (result i32)))
  (import "driftwood" "checkpoint" (func $checkpoint (param i32 i32) (result i32)))
  (memory (export "memory") 1) (data (i32.const 8) "cp")
  (global $count (mut i32) (i32.const 48))
  (func (export "dw_on_message") (param i64 i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (i32.store8 (i32.const 0) (global.get $count))
    (drop (call $emit (i32.const 0) (i32.const 1)))
    (drop (call $checkpoint (i32.const 8) (i32.const 2)))))"""


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = self.folder / "store"

    def snapshot(self, command, *args, store=None, **kwargs):
        return harness.run("snapshot", command, *args, "--store", store or self.store, **kwargs)

    def json(self, command, *args, **kwargs):
        return json.loads(self.snapshot(command, *args, "--json", **kwargs).stdout)

    def fails(self, code, words, command, *args, **kwargs):
        r = self.snapshot(command, *args, check=False, **kwargs)
        self.assertEqual(r.returncode, code, r.stderr)
        for word in words:
            self.assertIn(word, r.stderr)
        return r


class CountingScratch(Scratch):
    """With an actor that counts its messages."""


    def setUp(self):
        super().setUp()
        self.module = self.folder / "counter.wat"
        self.module.write_text(COUNTER)

    def run_counter(self, *args, **kwargs):
        return harness.run("run", self.module, "--model", "none", "--quiet", *args, **kwargs)

    def save(self, name, messages=1, **kwargs):
        flags = [flag for _ in range(messages) for flag in ("--message", "m")]
        return self.json("save", self.module, "--model", "none", "--name", name, *flags, **kwargs)
