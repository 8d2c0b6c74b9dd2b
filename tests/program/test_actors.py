"""Actors from the command line: the examples, grants, and guests that misbehave."""
import json
import pathlib
import tempfile
import unittest

import harness


class Actors(unittest.TestCase):
    def guest(self, name, *args, **kwargs):
        return harness.run("run", harness.GUESTS / f"{name}.wasm", "--quiet", *args, **kwargs)

    def test_gemm_checks_every_element(self):
        answer = json.loads(self.guest("gemm", "--model", "none").stdout)
        self.assertEqual(answer["errors"], 0)

    def test_a_command_prints(self):
        self.assertNotEqual(self.guest("hello", "--model", "none").stdout, "")

    def test_a_conversation_remembers(self):
        model = harness.smollm2()
        first, second = "Count from one to five in English.", "Now in French."
        flags = ("--model", model, "--max-tokens", 24)
        chat = harness.run("chat", *flags, stdin=f"{first}\n{second}\n").stdout
        alone = harness.run("chat", *flags, stdin=f"{second}\n").stdout
        self.assertTrue(chat.startswith(harness.run("chat", *flags, stdin=f"{first}\n").stdout))
        self.assertFalse(chat.endswith(alone), "the second answer does not depend on the first turn")
        run = self.guest("chat", "--model", model, "--message", first, "--message", second,
                         "--actor-config", self.config("max_tokens=24\n")).stdout
        self.assertEqual(chat.replace("\n", ""), run.replace("\n", ""))

    def config(self, text):
        path = pathlib.Path(tempfile.mkdtemp()) / "config"
        path.write_text(text)
        self.addCleanup(lambda: (path.unlink(), path.parent.rmdir()))
        return path

    def test_the_same_seed_gives_the_same_answer(self):
        ask = lambda seed: harness.run("chat", "--model", harness.smollm2(), "--max-tokens", 24, "--temperature", 1.2,
                                       "--seed", seed, stdin="Tell me a story.\n").stdout
        self.assertEqual(ask(7), ask(7))
        self.assertNotEqual(ask(7), ask(8))

    def test_a_hostile_guest_ends_with_its_name_and_cause(self):
        wat = {
            "loop": ('(module (memory (export "memory") 1) (func (export "dw_on_start") (loop br 0)))', "deadline"),
            "trap": ('(module (memory (export "memory") 1) (func (export "dw_on_start") unreachable))', "unreachable"),
            "deep": ('(module (memory (export "memory") 1) (func $f (export "dw_on_start") call $f))', "stack"),
            "wild": ('(module (import "driftwood" "emit" (func $e (param i32 i32) (result i32)))'
                     '(memory (export "memory") 1) (func (export "dw_on_start") (drop (call $e (i32.const -8) (i32.const 64)))))',
                     "emit"),
        }
        for name, (text, word) in wat.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                path = pathlib.Path(scratch) / "g.wat"
                path.write_text(text)
                r = harness.run("run", path, "--name", f"bad-{name}", "--model", "none", "--deadline-ms", 200, check=False)
                self.assertGreater(r.returncode, 0)
                self.assertIn(f"bad-{name}", r.stderr)
                self.assertIn(word, r.stderr.lower())

    def run_wat(self, text, *args):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "g.wat"
            path.write_text(text)
            return harness.run("run", path, "--model", "none", *args, check=False)

    def test_timers_fire_before_the_program_ends(self):
        r = self.run_wat("""(module (import "driftwood" "timer_set" (func $t (param i64 i64) (result i32)))
            (import "driftwood" "emit" (func $e (param i32 i32) (result i32)))
            (memory (export "memory") 1) (data (i32.const 8) "ding")
            (func (export "dw_on_start") (drop (call $t (i64.const 50000000) (i64.const 1))))
            (func (export "dw_on_timer") (param i64) (drop (call $e (i32.const 8) (i32.const 4)))))""")
        self.assertEqual((r.returncode, r.stdout), (0, "ding"))

    def test_messages_arrive_as_they_are(self):
        r = self.run_wat("""(module (import "driftwood" "message_read" (func $r (param i32 i32) (result i32)))
            (import "driftwood" "emit" (func $e (param i32 i32) (result i32)))
            (memory (export "memory") 1)
            (func (export "dw_on_message") (param i64 i32) (drop (call $r (i32.const 0) (i32.const 1000)))
              (drop (call $e (i32.const 0) (local.get 1)))))""", "--message", "[1,2]", "--message", "a, b")
        self.assertEqual((r.returncode, r.stdout), (0, "[1,2]a, b"))

    def test_steps_that_compute_nothing_do_not_postpone_the_deadline(self):
        text = """(module (import "driftwood" "session_open" (func $o (param i32) (result i32)))
            (import "driftwood" "step" (func $s (param i32) (result i32))) (memory (export "memory") 1)
            (func (export "dw_on_start") (local $h i32) (local.set $h (call $o (i32.const 0)))
              (loop (drop (call $s (local.get $h))) (br 0))))"""
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "g.wat"
            path.write_text(text)
            r = harness.run("run", path, "--model", harness.smollm2(), "--deadline-ms", 300, check=False, timeout=60)
        self.assertIn("deadline", r.stderr)

    def test_an_answer_cut_inside_a_character_does_not_end_the_conversation(self):
        for limit in (9, 10, 11):
            r = harness.run("chat", "--model", harness.smollm2(), "--max-tokens", limit,
                            stdin="List five emojis.\nThanks.\nHello?\n")
            self.assertNotIn("error", r.stderr)

    def test_files_that_are_no_modules(self):
        with tempfile.TemporaryDirectory() as scratch:
            for content in (b"", b"\0asm", b"<html>", b"\0asm\1\0\0\0\xff"):
                path = pathlib.Path(scratch) / "x.wasm"
                path.write_bytes(content)
                r = harness.run("run", path, "--model", "none", check=False)
                self.assertGreater(r.returncode, 0, content)
                self.assertIn("x.wasm", r.stderr)


if __name__ == "__main__":
    unittest.main()
