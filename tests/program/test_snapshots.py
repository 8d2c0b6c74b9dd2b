"""Snapshots from the command line: an actor goes on where it was, whatever became of the process that saved it."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time
import unittest

import harness
from relabel import relabel
from scratch import CountingScratch, Scratch

QUESTION = "Tell me a long story about a river."
TOKENS = 24


def output(*args, **kwargs):
    """What the program writes to standard output, as bytes."""
    return harness.run(*args, stdin=b"", **kwargs).stdout


class Counting(CountingScratch):
    """What needs no model."""

    def test_a_snapshot_at_the_end_of_a_run(self):
        run = self.run_counter("--name", "ada", "--store", self.store, "--snapshot-every", "on-exit",
                               "--message", "a", "--message", "b")
        self.assertEqual(run.stdout, "12")
        self.assertEqual(self.snapshot("restore", "ada", "--message", "c").stdout, "3")
        self.assertEqual(self.snapshot("restore", "ada", "--message", "c").stdout, "3", "it is a value")

    def test_a_snapshot_after_every_turn_and_by_the_guest(self):
        self.run_counter("--store", self.store, "--snapshot-every", "turn", "--snapshot-name", "turns",
                         "--message", "a", "--message", "b")
        self.assertEqual(self.snapshot("restore", "cp", "--message", "c").stdout, "3")  # and moves the name
        self.assertEqual(self.snapshot("restore", "turns", "--message", "c").stdout, "3")
        entries = self.json("list")
        self.assertEqual(len({e["hash"] for e in entries}), len(entries))
        self.assertGreaterEqual(len(entries), 2)

    def test_the_guest_is_told_if_nobody_keeps_snapshots(self):
        text = """(module (import "driftwood" "checkpoint" (func $c (param i32 i32) (result i32)))
            (import "driftwood" "emit" (func $e (param i32 i32) (result i32))) (memory (export "memory") 1)
            (func (export "dw_on_start") (if (i32.lt_s (call $c (i32.const 0) (i32.const 0)) (i32.const 0))
              (then (i32.store8 (i32.const 0) (i32.const 110)) (drop (call $e (i32.const 0) (i32.const 1)))))))"""
        self.module.write_text(text)
        self.assertEqual(self.run_counter(env={"DRIFTWOOD_STORE": ""}).stdout, "n")
        self.assertEqual(self.run_counter(env={"DRIFTWOOD_STORE": str(self.store)}).stdout, "")
        self.assertEqual(len(self.json("list")), 1)

    def test_a_restored_run_keeps_snapshots_too(self):
        first = self.save("ada")
        r = self.json("restore", "ada", "--message", "b", "--snapshot-every", "turn")
        self.assertEqual(r["output"], "2")
        self.assertEqual(r["saved"][-1]["name"], "ada")
        self.assertEqual(self.snapshot("restore", "ada", "--message", "c").stdout, "3")
        parents = {e["hash"]: e["parent"] for e in self.json("list")}
        at, steps = r["saved"][-1]["hash"], 0
        while parents[at] and at != first["hash"]:
            at, steps = parents[at], steps + 1
        self.assertEqual(at, first["hash"])
        self.assertGreaterEqual(steps, 1)

    def test_failing_to_save_fails_the_run_and_not_the_actor(self):
        run = subprocess.Popen([harness.PROGRAM, "run", self.module, "--model", "none", "--store", self.store,
                                "--snapshot-every", "turn", "--stdin"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stdin.write(b"a\n")
        run.stdin.flush()
        self.assertEqual(run.stdout.read(1), b"1")
        deadline = time.monotonic() + 60
        while not (self.store / "names" / "actor").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        for part in ("packs", "snapshots"):
            shutil.rmtree(self.store / part, ignore_errors=True)
            (self.store / part).write_text("in the way")
        out, err = run.communicate(b"b\nc\n", timeout=60)
        self.assertEqual(out, b"23")
        self.assertGreater(run.returncode, 0)
        self.assertIn(b"snapshot not saved", err)

    def test_every_answer_is_json(self):
        saved = self.save("one")
        self.assertEqual(saved["output"], "1")
        forked = self.json("fork", "one", "--name", "two", "--stream", 5)
        self.assertEqual(forked["parent"], saved["hash"])
        file = self.folder / "one.snapshot"
        exported = self.json("export", "one", file)
        self.assertEqual(exported["bytes"], file.stat().st_size)
        other = self.folder / "other"
        self.assertEqual(self.json("import", file, "--name", "moved", store=other)["hash"], saved["hash"])
        self.assertEqual([e["names"] for e in self.json("list", store=other)], [["moved"]])
        for what in ((), ("one",), (file,)):
            self.assertTrue(self.json("verify", *what)["whole"])
        seen = self.json("inspect", "two")
        self.assertEqual([a["hash"] for a in seen["lineage"]["ancestors"]][:1], [saved["hash"]])
        self.assertEqual(seen["actor"]["name"], "two")
        self.assertEqual(seen["notes"]["fork_stream"], "5")
        self.assertEqual(self.json("inspect", file)["identity"]["abi"], "1")
        self.assertTrue(self.json("diff", "one", file)["equal"])
        self.assertEqual(self.json("restore", "two", "--message", "m")["output"], "2")
        self.assertEqual(self.json("remove", "one")["hash"], saved["hash"])
        self.assertTrue(self.json("gc", "--dry-run")["dry_run"])
        before = len(self.json("list"))
        gone = self.json("gc")["snapshots_removed"]
        self.assertGreaterEqual(gone, 1)
        self.assertEqual(len(self.json("list")), before - gone)
        self.assertEqual(self.json("restore", "two", "--message", "m")["output"], "2")

    def test_answers_for_people(self):
        hash = self.snapshot("save", self.module, "--model", "none", "--message", "m", "--name", "one").stdout.strip()
        self.assertRegex(hash, "^[0-9a-f]{64}$")
        self.snapshot("fork", "one", "--name", "two")
        self.snapshot("fork", hash[:8], "--name", "three", "--stream", 1)
        listed = self.snapshot("list").stdout
        self.assertIn(hash[:12] + " ", listed)
        self.assertNotIn(hash, listed)
        tree = self.snapshot("inspect", "one").stdout.split("lineage\n")[1]
        self.assertIn(f"* {hash[:12]}  one\n", tree)
        self.assertIn("    ", tree.split(hash[:12])[1])
        diff = self.snapshot("diff", "one", "three").stdout
        self.assertIn("actor name: one and three", diff)
        self.assertIn("whole", self.snapshot("verify").stdout)
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("inspect", harness.run("completion", shell).stdout)

    def test_diff_finds_the_bytes(self):
        self.save("one")
        self.save("three", messages=3)
        diff = self.json("diff", "one", "three")
        self.assertFalse(diff["equal"])
        self.assertEqual(diff["memory"]["ranges"], [{"begin": 0, "end": 1}])
        self.assertEqual([(g["a"]["bits"], g["b"]["bits"]) for g in diff["globals"]], [(49, 51)])
        self.assertIn("handlers_run", [a["key"] for a in diff["attributes"]])
        self.assertEqual(diff["identity"], [])
        self.assertIn("0x00000000 to 0x00000001, 1 bytes", self.snapshot("diff", "one", "three").stdout)

    def test_flag_beats_environment(self):
        self.save("here")
        here = len(self.json("list"))
        elsewhere = {"DRIFTWOOD_STORE": str(self.folder / "elsewhere")}
        self.assertEqual(len(self.json("list", env=elsewhere)), here)
        r = harness.run("snapshot", "--store", self.store, "list", "--json", env=elsewhere)
        self.assertEqual(len(json.loads(r.stdout)), here)
        r = harness.run("snapshot", "list", "--json", env={"DRIFTWOOD_STORE": str(self.store)})
        self.assertEqual(len(json.loads(r.stdout)), here)
        r = harness.run("snapshot", "list", check=False, env=elsewhere)
        self.assertEqual(r.returncode, 66)
        self.assertIn("elsewhere", r.stderr)
        config = self.folder / "c.toml"
        config.write_text(f'[snapshot]\nstore="{self.store}"\n')
        r = harness.run("--config", config, "snapshot", "list", "--json", env={"DRIFTWOOD_STORE": ""})
        self.assertEqual(len(json.loads(r.stdout)), here)

    def test_help_everywhere(self):
        for command in ("save", "restore", "fork", "list", "inspect", "verify", "diff", "export", "import", "remove", "gc"):
            self.assertIn("xample", harness.run("snapshot", command, "--help").stdout, command)
        self.assertIn("xample", harness.run("snapshot", "--help").stdout)


class Conversation(Scratch):
    """The chat actor with the real model, sampled: a draw out of place shows."""

    @classmethod
    def setUpClass(cls):
        cls.model = harness.smollm2()
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.shared = pathlib.Path(shared.name)
        cls.config = cls.shared / "config"
        cls.config.write_text(f"max_tokens={TOKENS}\ntemperature=1.2\nseed=7\n")
        cls.whole = output("run", *cls.chat(), "--message", QUESTION)
        cls.half_store = cls.shared / "store"
        saved = harness.run("snapshot", "save", *cls.chat(), "--message", QUESTION, "--tokens", 9, "--name", "half",
                            "--store", cls.half_store, stdin=b"")
        cls.begun, cls.half_hash = saved.stderr, saved.stdout.decode().strip()

    @classmethod
    def chat(cls):
        return (harness.GUESTS / "chat.wasm", "--model", cls.model, "--actor-config", cls.config, "--quiet")

    def restore(self, which, *args, store=None, **kwargs):
        return output("snapshot", "restore", which, "--model", self.model, "--store", store or self.half_store,
                      "--quiet", *args, **kwargs)

    def test_a_new_process_says_the_rest(self):
        self.assertTrue(0 < len(self.begun) < len(self.whole))
        self.assertEqual(self.begun + self.restore("half"), self.whole)
        self.assertEqual(self.begun + self.restore(self.half_hash[:10]), self.whole)

    def test_no_token_is_computed_twice(self):
        told = self.json("restore", "half", "--model", self.model, store=self.half_store)
        self.assertLessEqual(told["tokens_computed"], TOKENS - 9)
        self.assertEqual(told["tokens_generated"], TOKENS)
        self.assertEqual(self.begun + told["output"].encode(), self.whole)

    def test_any_rest_point(self):
        for flags in (("--handlers", 0), ("--handlers", 1), ("--tokens", 0), ("--tokens", 1), ("--tokens", TOKENS)):
            with self.subTest(flags):
                saved = self.snapshot("save", *self.chat(), "--message", QUESTION, *flags, "--name", "at", stdin=b"")
                begun = saved.stderr
                told = self.json("inspect", "at")
                rest = () if told["actor"]["tokens_appended"] else ("--message", QUESTION)
                self.assertEqual(begun + self.restore("at", *rest, store=self.store), self.whole)

    def test_the_next_turn_remembers(self):
        turns = ("--message", QUESTION, "--message", "And then?")
        both = output("run", *self.chat(), *turns)
        first = output("run", *self.chat(), *turns[:2], "--store", self.store, "--snapshot-every", "turn")
        self.assertEqual(first, self.whole)
        self.assertEqual(first + self.restore("actor", *turns[2:], store=self.store), both)

    def test_killed_at_any_moment(self):
        for _ in range(3):
            seen = random.randrange(1, len(self.whole))
            pause = random.random() * 0.02
            with self.subTest(seen=seen, pause=pause):
                store = self.folder / str(seen)
                run = subprocess.Popen([str(a) for a in (harness.PROGRAM, "run", *self.chat(), "--message", QUESTION,
                                                         "--store", store, "--snapshot-every", 1)],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                printed = b""
                while len(printed) < seen:
                    printed += os.read(run.stdout.fileno(), seen - len(printed))
                deadline = time.monotonic() + 60
                while not (store / "names" / "actor").exists() and time.monotonic() < deadline:
                    time.sleep(0.001)
                time.sleep(pause)
                run.kill()
                printed += run.stdout.read()
                run.stdout.close()
                run.wait()
                rest = self.restore("actor", store=store)
                self.assertTrue(self.whole.endswith(rest))
                begun = self.whole[:len(self.whole) - len(rest)]
                self.assertTrue(printed.startswith(begun), "what was saved had been shown")
                self.assertTrue(self.json("verify", store=store)["whole"])

    def test_forks(self):
        shutil.copytree(self.half_store, self.store)
        nowhere = {"DRIFTWOOD_MODEL": "no-such-model", "DRIFTWOOD_CACHE": str(self.folder / "none")}
        for stream in (0, 1, 2):
            self.snapshot("fork", "half", "--name", f"s{stream}", "--stream", stream, env=nowhere)
        same, one, two = (self.restore(f"s{stream}", store=self.store) for stream in (0, 1, 2))
        self.assertEqual(self.begun + same, self.whole)
        self.assertEqual(len({same, one, two}), 3, "each stream draws its own")
        self.assertEqual(self.restore("half", "--stream", 1, store=self.store), one)
        diff = self.json("diff", "half", "s1")
        self.assertIsNone(diff["memory"])
        self.assertEqual(diff["sessions"], [])
        self.assertIn("stream", [a["key"] for a in diff["attributes"]])

    def test_moved_to_another_store_and_folder(self):
        file = self.folder / "moved.snapshot"
        self.snapshot("export", "half", file, store=self.half_store)
        self.snapshot("import", file, "--name", "arrived")
        self.assertEqual(self.begun + self.restore("arrived", store=self.store), self.whole)
        self.assertEqual(self.begun + self.restore(file, store=self.folder / "fresh"), self.whole)

    def test_from_a_store_that_nobody_may_write(self):
        store = self.folder / "read-only"
        shutil.copytree(self.half_store, store)
        def state():
            return {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in store.rglob("*")}
        for path in sorted(store.rglob("*")) + [store]:
            path.chmod(0o500 if path.is_dir() else 0o400)
        try:
            self.snapshot("verify", store=store)  # the superuser, whom modes don't stop, takes note of the copies now
            before = state()
            self.assertEqual(self.begun + self.restore("half", store=store), self.whole)
            after = state()
            self.assertEqual([p for p in after if after[p] != before.get(p)], [])
        finally:
            for path in [store] + sorted(store.rglob("*")):
                path.chmod(0o700)

    def test_on_another_instruction_set(self):
        self.snapshot("save", *self.chat(), "--message", QUESTION, "--tokens", TOKENS - 2, "--name", "late")
        here = self.restore("late", store=self.store)
        self.assertTrue(self.whole.endswith(here) and here)
        for isa in harness.cpu_isas():
            self.assertEqual(self.restore("late", store=self.store, env={"DRIFTWOOD_CPU": isa}), here, isa)

    def test_inspect_shows_the_text_if_the_model_is_there(self):
        told = self.json("inspect", "half", "--model", self.model, store=self.half_store)
        session, = told["sessions"]
        self.assertTrue(session["text"].endswith(self.begun.decode(errors="replace").rstrip("\ufffd")), session)
        self.assertEqual(session["tokens"], told["actor"]["tokens_appended"] + 9)
        nowhere = {"DRIFTWOOD_CACHE": str(self.folder), "HF_HUB_CACHE": str(self.folder)}
        told = self.json("inspect", "half", "--model", "no-such-model", store=self.half_store, env=nowhere)
        self.assertIn("not at hand", told["sessions"][0]["text_unavailable"])
        self.assertIn("answer", self.snapshot("inspect", "half", store=self.half_store).stdout)

    def test_diff_finds_the_first_token(self):
        shutil.copytree(self.half_store, self.store)
        self.snapshot("save", *self.chat(), "--message", QUESTION, "--tokens", 15, "--name", "later")
        session, = self.json("diff", "half", "later")["sessions"]
        tokens = session["tokens"]
        self.assertEqual(tokens["count_b"] - tokens["count_a"], 6)
        self.assertEqual((tokens["first_position"], tokens["a"]), (tokens["count_a"], None))
        # The last appended token is computed with the next: it is the first that only the later one has in KV.
        self.assertEqual(session["kv"]["first_token"], tokens["count_a"] - 1)
        self.assertEqual(session["kv"]["blocks"][0]["layers"], list(range(30)))

    def test_another_identity_is_refused(self):
        self.fails(65, ["kv_format", "kv-f16", "kv-f32"], "restore", "half", "--model", self.model, "--kv", "f32",
                   store=self.half_store)
        self.fails(65, ["model"], "restore", "half", "--model", "none", store=self.half_store)
        self.fails(65, ["model_fingerprint"], "restore", "half", "--model", harness.fixture_model("llama3"),
                   store=self.half_store)

    def test_another_arithmetic_is_refused_unless_allowed(self):
        file = self.folder / "f"
        self.snapshot("export", "half", file, store=self.half_store)
        relabel(file, b'"numerics_id":"portable-1"', b'"numerics_id":"portable-0"')
        refused = self.snapshot("restore", file, "--model", self.model, check=False)
        self.assertEqual(refused.returncode, 65, refused.stderr)
        for word in ("numerics_id", "portable-0", "portable-1", "--allow-numerics-change"):
            self.assertIn(word, refused.stderr)
        rest = self.restore(file, "--allow-numerics-change", "--snapshot-every", "on-exit", "--snapshot-name", "after",
                            store=self.store)
        self.assertEqual(self.begun + rest, self.whole)  # only the label was another
        self.assertEqual(self.json("inspect", "after")["notes"]["numerics_changed"], "portable-0 to portable-1")


if __name__ == "__main__":
    unittest.main()
