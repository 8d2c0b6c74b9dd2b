"""Snapshots from the command line: what is refused or damaged is told by name, and nothing is lost."""
import os
import subprocess
import unittest

import harness
from relabel import relabel
from scratch import CountingScratch


class Refusals(CountingScratch):
    def names(self):
        return [e["names"] for e in self.json("list")]

    def test_errors_name_what_is_wrong(self):
        self.fails(66, ["no store"], "list")
        self.save("one")
        self.fails(66, ["nobody"], "restore", "nobody")
        self.fails(66, ["nobody"], "inspect", "nobody")
        self.fails(64, ["--name", "a/b"], "import", "x", "--name", "a/b")
        self.fails(73, ["one"], "fork", "one", "--name", "one")
        r = self.snapshot("restore", "./no-such-file", check=False)
        self.assertEqual(r.returncode, 66)
        self.assertIn("no-such-file", r.stderr)
        self.fails(65, ["module_hash"], "restore", "one", "--module", harness.GUESTS / "gemm.wasm")
        self.fails(64, ["--snapshot-every", "often"], "restore", "one", "--snapshot-every", "often")
        command = self.folder / "command.wat"
        command.write_text('(module (memory (export "memory") 1) (func (export "_start")))')
        self.fails(65, ["_start"], "save", command, "--model", "none")
        r = harness.run("run", command, "--model", "none", "--store", self.store, "--snapshot-every", "on-exit", check=False)
        self.assertEqual(r.returncode, 65, r.stderr)

    def test_damage_is_found_before_anything_runs(self):
        self.save("one")
        file = self.folder / "f"
        self.snapshot("export", "one", file)
        whole = file.read_bytes()
        for at in (0, 200, 70_000, len(whole) - 1):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            for command in ("verify", "restore", "import", "inspect"):
                r = self.snapshot(command, file, check=False)
                self.assertIn(r.returncode, (64, 65, 74), f"{command}, byte {at}: {r.stderr}")
                self.assertIn(str(file), r.stderr)
                self.assertEqual(r.stdout, "")
        for pack in (self.store / "packs").iterdir():
            damaged = bytearray(pack.read_bytes())
            damaged[-1 - len(damaged) // 4] ^= 1
            pack.chmod(0o600)
            pack.write_bytes(damaged)
        self.fails(74, [], "verify")
        self.fails(74, [], "verify", "one")
        self.fails(74, [], "restore", "one", "--message", "m")
        self.fails(74, [], "restore", "one", "--message", "m", "--verify", "full")

    def test_a_file_that_is_whole_and_means_nothing_is_refused(self):
        self.save("one")
        for old, new, told in ((b'timers\\":\\"\\"', b'timers\\":\\"junk\\"', "timers"),
                               (b'generates\\":\\"\\"', b'generates\\":\\"1,2,3 4\\"', "generates"),
                               (b'tokens_appended\\":\\"0', b'tokens_appended\\":\\"x', "tokens_appended")):
            file = self.folder / told
            self.snapshot("export", "one", file)
            relabel(file, old, new)
            self.fails(64, [told, str(file)], "import", file, "--name", "bad")
            inspected = self.snapshot("inspect", file)
            if told != "tokens_appended":
                self.assertIn("damaged", inspected.stdout)
            self.fails(64, [told, str(file)], "restore", file)
        self.assertEqual(sorted(self.names()), [["cp"], ["one"]], "what is refused leaves nothing")
        pack = next((self.store / "packs").iterdir())
        self.fails(64, ["no actor", str(pack)], "import", pack, "--name", "bad")
        self.assertEqual(sorted(self.names()), [["cp"], ["one"]])

    def test_export_replaces_nothing_unless_told(self):
        self.save("one")
        victim, link = self.folder / "victim", self.folder / "link"
        victim.write_text("mine")
        link.symlink_to(victim)
        for file in (victim, link):
            self.fails(73, ["--force"], "export", "one", file)
        self.assertEqual(victim.read_text(), "mine")
        self.snapshot("export", "one", victim, "--force")
        self.snapshot("import", victim)

    def test_a_file_size_limit_is_an_error_of_saving(self):
        command = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", str(harness.PROGRAM), "run", str(self.module), "--model",
                   "none", "--quiet", "--store", str(self.store), "--snapshot-every", "turn", "--message", "a", "--message", "b"]
        r = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stdout), (69, "12"), r.stderr)

    def test_a_damaged_name_shows_in_the_list(self):
        self.save("one")
        (self.store / "names" / "torn").write_text("hello")
        (self.store / "names" / "dangling").write_text("0" * 64 + "\n")
        told = {name: e.get("error", "") for e in self.json("list") for name in e["names"]}
        self.assertEqual(told["one"], "")
        self.assertIn("torn", told["torn"])
        self.assertIn("dangling", told["dangling"])

    def test_a_name_means_one_snapshot(self):
        for name in ("x y", "a/b", ".k", "-k", "n" * 201, "0" * 64):
            r = self.run_counter(f"--name={name}", "--store", self.store, "--snapshot-every", "turn", "--message", "a",
                                 check=False)
            self.assertEqual((r.returncode, r.stdout), (64, ""), r.stderr)
            self.assertIn("--snapshot-name", r.stderr)
        self.run_counter("--name", "x y", "--store", self.store, "--snapshot-every", "turn", "--snapshot-name", "xy",
                         "--message", "a")
        self.save("one")
        file = self.folder / "file"
        self.snapshot("export", "one", file)
        self.fails(73, ["xy"], "import", file, "--name", "xy")
        self.snapshot("import", file, "--name", "one")
        self.snapshot("import", file, "--name", "xy", "--force")
        prefix = self.json("inspect", "one")["hash"][:8]
        self.fails(66, [prefix], "remove", prefix)
        self.snapshot("fork", "one", "--name", prefix)

    def test_numbers_are_what_was_typed(self):
        self.save("one")
        for bad in ("-1", "99999999999999999999", "1.5", "0x10"):
            for command in (("fork", "one", "--name", "two", f"--stream={bad}"), ("restore", "one", f"--stream={bad}"),
                            ("save", self.module, f"--seed={bad}"), ("save", self.module, f"--tokens={bad}"),
                            ("restore", "one", f"--context={bad}")):
                self.fails(64, [f"'{bad}'", command[-1].split("=")[0]], *command)
        self.fails(64, ["--snapshot-every"], "restore", "one", "--snapshot-every", "")
        self.fails(73, [], "export", "one", self.module)
        self.fails(64, ["too long"], "export", "one", self.folder / ("n" * 300))

    def test_something_else_in_place_of_a_file_of_the_store_is_damage(self):
        self.save("one")
        hash = self.json("inspect", "one")["hash"]
        aside = self.folder / "aside"
        for part in (f"snapshots/{hash}", "names/one", "format", "lock", "packs/" + os.listdir(self.store / "packs")[0]):
            place = self.store / part
            place.rename(aside)
            place.symlink_to(aside)
            r = self.fails(74, [part], "restore", "one")
            self.assertRegex(r.stderr, "is a symbolic link|is not a regular file")
            place.unlink()
            place.mkdir()
            self.fails(74, [part], "restore", "one")
            place.rmdir()
            aside.rename(place)
        self.assertEqual(self.snapshot("restore", "one", "--message", "m").stdout, "2")
        text = (self.store / "names" / "one").read_text()
        (self.store / "names" / "one").write_text("0" + text[1:] if text[0] != "0" else "1" + text[1:])
        self.fails(74, ["'one'"], "restore", "one")
        (self.store / "names" / "one").write_text("0" * 5000)
        self.fails(74, ["names/one", "too large"], "restore", "one")
        (self.store / "names" / "one").write_text("hello")
        self.snapshot("remove", "one")
        self.assertNotIn(["one"], self.names())
        (self.store / "format").write_text("driftwood store 0")
        self.fails(74, ["damaged"], "list")

    def test_verify_tells_all_that_is_damaged(self):
        self.save("one")
        self.save("two", messages=2)
        damaged = [e["hash"] for e in self.json("list")]
        for hash in damaged:
            (self.store / "snapshots" / hash).chmod(0o600)
            (self.store / "snapshots" / hash).write_bytes(b"")
        (self.store / "names" / "torn").write_text("hello")
        self.fails(74, [*damaged, "torn"], "verify")

    def test_the_store_of_an_empty_flag_is_that_of_none(self):
        self.run_counter("--store", "", "--snapshot-every", "turn", "--message", "a", env={"DRIFTWOOD_STORE": str(self.store)})
        self.assertIn(["actor"], self.names())
        r = harness.run("snapshot", "list", env={"DRIFTWOOD_STORE": "", "HOME": "", "XDG_DATA_HOME": ""}, check=False)
        self.assertEqual(r.returncode, 65)
        self.assertIn("--store", r.stderr)

    def test_a_missing_pack_is_damage(self):
        self.save("one")
        for pack in (self.store / "packs").iterdir():
            pack.unlink()
        self.fails(74, ["packs"], "verify", "one")
        self.fails(74, ["packs"], "restore", "one")

    def test_a_command_cannot_be_kept(self):
        module = self.folder / "command.wat"
        module.write_text('(module (func (export "_start")))')
        r = harness.run("run", module, "--model", "none", "--require-snapshot", check=False)
        self.assertEqual(r.returncode, 65)
        self.assertIn("_start", r.stderr)


if __name__ == "__main__":
    unittest.main()
