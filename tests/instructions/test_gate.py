"""The gate has to fail when a count rises: its judgement on numbers made up here (no valgrind needed)."""
import contextlib
import io
import json
import pathlib
import tempfile
import types
import unittest
from unittest import mock

import count_instructions as gate


def counted(**instructions):
    return [gate.Count(name, "MAC", 1000, 0.5, number) for name, number in instructions.items()]


class Judgement(unittest.TestCase):
    def test_same_counts_pass(self):
        self.assertEqual(gate.judge(counted(a=1000, b=2000), {"a": 1000, "b": 2000}), ([], []))

    def test_a_rise_past_the_limit_fails_and_is_named(self):
        worse, better = gate.judge(counted(a=1000, b=2011), {"a": 1000, "b": 2000})
        self.assertEqual(better, [])
        self.assertEqual(len(worse), 1)
        self.assertIn("b takes 0.55% more", worse[0])

    def test_a_rise_below_the_limit_passes(self):
        self.assertEqual(gate.judge(counted(a=1004), {"a": 1000}), ([], []))

    def test_a_fall_is_reported_but_passes(self):
        worse, better = gate.judge(counted(a=900), {"a": 1000})
        self.assertEqual(worse, [])
        self.assertIn("a takes 10.00% fewer", better[0])

    def test_new_and_lost_cases_fail(self):
        worse, _ = gate.judge(counted(new=1), {"lost": 1})
        self.assertIn("new is not in the baseline", worse[0])
        self.assertIn("lost is in the baseline but was not counted", worse[1])


class WholeCheck(unittest.TestCase):
    """check() with counts given instead of valgrind's."""

    def check(self, compiler, counts, text, update=False):
        with (tempfile.TemporaryDirectory() as folder,
              mock.patch.object(gate, "count", return_value=(compiler, counts)),
              contextlib.redirect_stdout(io.StringIO())):
            file = pathlib.Path(folder) / "baseline.json"
            file.write_text(text)
            gate.check(types.SimpleNamespace(workload="", baseline=file, update=update))
            return file.read_text()

    def test_a_rise_fails(self):
        text = json.dumps({"compiler": "GNU 12", "instructions": {"a": 1000}})
        self.check("GNU 12", counted(a=1000), text)
        with self.assertRaisesRegex(gate.Failed, "a takes 10.00% more"):
            self.check("GNU 12", counted(a=1100), text)

    def test_another_compiler_is_skipped_whatever_the_counts(self):
        text = json.dumps({"compiler": "GNU 12", "instructions": {"a": 1000}})
        with self.assertRaisesRegex(gate.Skipped, "baseline is for GNU 12, this is Clang 16"):
            self.check("Clang 16", counted(a=1100), text)

    def test_a_damaged_baseline_is_named(self):
        for text in ("", "[]", '{"compiler": "GNU 12"}', *(
                json.dumps({"compiler": "GNU 12", "instructions": instructions})
                for instructions in ([], "a", {"a": "1000"}, {"a": 0}, {"a": True}, {"a": 1.5})),
                     '{"compiler": 12, "instructions": {"a": 1000}}'):
            with self.assertRaisesRegex(gate.Failed, "is no baseline"):
                self.check("GNU 12", counted(a=1), text)

    def test_what_cannot_be_written_is_named(self):
        for path in ("/no/such/folder/b.json", "/dev/full"):
            with (mock.patch.object(gate, "count", return_value=("GNU 12", counted(a=1))),
                  self.assertRaisesRegex(gate.Failed, f"cannot write {path}: ")):
                gate.check(types.SimpleNamespace(workload="", baseline=pathlib.Path(path), update=True))

    def test_update_writes_what_then_passes(self):
        text = self.check("GNU 12", counted(a=1100), "", update=True)
        self.check("GNU 12", counted(a=1100), text)


class Printed(unittest.TestCase):
    def test_cases_and_dumps_are_put_together(self):
        compiler, counts = gate.counts_of("w", "compiler GNU 12\ncase a MAC 1000 0.5\n", [700])
        self.assertEqual((compiler, counts), ("GNU 12", counted(a=700)))

    def test_another_program_is_named(self):
        for printed in ("", "\n", "hello\n", "compiler GNU 12\ncase a\n", "compiler GNU 12\ncase a MAC x 0.5\n"):
            with self.assertRaisesRegex(gate.Failed, "/bin/true is no kernel_workload"):
                gate.counts_of("/bin/true", printed, [])

    def test_a_lost_dump_fails(self):
        with self.assertRaisesRegex(gate.Failed, "1 cases but 0 dumps"):
            gate.counts_of("w", "compiler GNU 12\ncase a MAC 1000 0.5\n", [])


if __name__ == "__main__":
    unittest.main()
