"""Bad input: a message that names what is wrong, the documented exit code, nothing written."""
import pathlib
import tempfile
import unittest

import harness


class Errors(unittest.TestCase):
    def fails(self, *args, code=None, words=()):
        r = harness.run(*args, check=False)
        self.assertNotEqual(r.returncode, 0, args)
        self.assertGreater(r.returncode, 0, f"{args} died of a signal")
        if code is not None:
            self.assertEqual(r.returncode, code, r.stderr)
        for word in words:
            self.assertIn(word, r.stderr)

    def test_no_such_model(self):
        self.fails("logits", "--model", "no-such-model", "--ids", "1", "--out", "x", code=66, words=["no-such-model"])

    def test_unknown_flag_and_command(self):
        self.fails("logits", "--nonsense", code=64)
        self.fails("nonsense", code=64)
        self.fails(code=64)

    def test_sizes(self):
        for size in ("", "-1", "x", "5QB", "1.5GB", "9999999999999999999", "99999999999999999999", "10000000000GB", "MB"):
            with self.subTest(size):
                self.fails("bench", f"--weights-memory={size}", "--prompt", 1, "--generate", 0, code=64,
                           words=["--weights-memory", size])

    def test_lengths_that_no_session_holds(self):
        for flags in (("--depth", 8192, "--prompt", 0, "--generate", 1), ("--context", 100, "--prompt", 101),
                      ("--context", 100, "--depth", 60, "--prompt", 1, "--generate", 41)):
            with self.subTest(flags):
                self.fails("bench", "--model", harness.smollm2(), "--repeat", 1, *flags, code=64, words=["holds at most"])
        self.fails("bench", "--model", harness.smollm2(), "--prompt", 0, "--generate", 0, code=64, words=["nothing"])

    def test_damaged_packed_weights_are_told(self):
        with tempfile.TemporaryDirectory() as cache:
            logits = ("logits", "--model", harness.fixture_model("llama3"), "--ids", "1,2,3", "--verify-cache", "--out")
            env = {"DRIFTWOOD_CACHE": cache}
            harness.run(*logits, pathlib.Path(cache) / "before", env=env)
            packed, = pathlib.Path(cache, "packed").iterdir()
            damaged = bytearray(packed.read_bytes())
            damaged[200_000] ^= 255
            packed.write_bytes(damaged)
            told = harness.run(*logits, pathlib.Path(cache) / "after", env=env).stderr
            self.assertIn("packed weights: rewritten", told)
            self.assertIn("checksum", told)
            self.assertEqual((pathlib.Path(cache) / "before").read_bytes(), (pathlib.Path(cache) / "after").read_bytes())

    def test_files_that_are_not_what_they_claim(self):
        pretenders = {
            "page.gguf": b"<!DOCTYPE html><html><body>404</body></html>",
            "pointer.gguf": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n",
            "empty.gguf": b"",
            "pickle.gguf": b"\x80\x02}q\x00.",
            "short.gguf": b"GGUF\x03\x00\x00\x00",
            "zip.gguf": b"PK\x03\x04" + bytes(64),
        }
        with tempfile.TemporaryDirectory() as scratch:
            for name, content in pretenders.items():
                path = pathlib.Path(scratch) / name
                path.write_bytes(content)
                with self.subTest(name):
                    self.fails("logits", "--model", path, "--ids", "1", "--out", pathlib.Path(scratch) / "o", words=[name])
            self.assertFalse((pathlib.Path(scratch) / "o").exists())
            self.fails("logits", "--model", scratch, "--ids", "1", "--out", "x", words=[scratch])

    def test_truncated_model(self):
        whole = pathlib.Path(harness.smollm2()).read_bytes()
        with tempfile.TemporaryDirectory() as scratch:
            for size in (100, 5000, 1_900_000, 40_000_000, len(whole) - 1):
                path = pathlib.Path(scratch) / "t.gguf"
                path.write_bytes(whole[:size])
                self.fails("logits", "--model", path, "--ids", "1", "--out", "x", words=["t.gguf"])

    def test_unwritable_output(self):
        self.fails("logits", "--model", harness.smollm2(), "--ids", "1", "--out", "/no/such/folder/o", words=["/no/such/folder"])

    def test_unavailable_instruction_set(self):
        r = harness.run("logits", "--model", harness.smollm2(), "--ids", "1", "--out", "x",
                        env={"DRIFTWOOD_CPU": "sse9"}, check=False)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("sse9", r.stderr)

    def test_output_never_replaces_a_device(self):
        self.fails("logits", "--model", harness.smollm2(), "--ids", "1", "--out", "/dev/null", words=["/dev/null"])
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())

    def test_lost_output_is_an_error(self):
        import subprocess
        with open("/dev/full", "w") as full:
            r = subprocess.run([str(harness.PROGRAM), "models"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 74)

    def test_flag_beats_environment_beats_config_file(self):
        with tempfile.TemporaryDirectory() as scratch:
            config = pathlib.Path(scratch) / "c.toml"
            config.write_text('[logits]\nkv="f99"\n')
            out = pathlib.Path(scratch) / "o"
            rest = ("logits", "--model", harness.smollm2(), "--ids", "1,2,3,4", "--out", out)
            from_file = harness.run("--config", config, *rest, check=False)
            self.assertEqual(from_file.returncode, 64, "the file's value counts")
            harness.run("--config", config, *rest, env={"DRIFTWOOD_KV": "f16"})
            named = harness.run(*rest, env={"DRIFTWOOD_CONFIG": str(config)}, check=False)
            self.assertEqual(named.returncode, 64)
            harness.run(*rest)
            plain = out.read_bytes()
            harness.run(*rest, "--kv", "f16", env={"DRIFTWOOD_KV": "f32"})
            self.assertEqual(out.read_bytes(), plain)
            harness.run(*rest, env={"DRIFTWOOD_KV": "f32"})
            self.assertNotEqual(out.read_bytes(), plain)

    def test_typos_in_a_config_file_are_errors(self):
        with tempfile.TemporaryDirectory() as scratch:
            config = pathlib.Path(scratch) / "c.toml"
            config.write_text("[logits]\nthreds=1\n")
            self.fails("--config", config, "models", words=["threds"])

    def test_many_companions(self):
        with tempfile.TemporaryDirectory() as scratch:
            harness.run("logits", "--model", harness.fixture_model("llama3"), "--ids", ",".join(map(str, range(1, 60))),
                        "--beside", 8, "--out", pathlib.Path(scratch) / "o")

    def test_help_everywhere(self):
        for command in ("run", "chat", "proof", "logits", "tokenize", "bench", "models", "snapshot", "completion"):
            r = harness.run(command, "--help")
            self.assertIn("xample", r.stdout, command)


if __name__ == "__main__":
    unittest.main()
