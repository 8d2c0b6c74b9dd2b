"""The same bytes from every instruction set, thread count, prompt cut and company, on the real model."""
import hashlib
import json
import pathlib
import tempfile
import unittest

import harness


class Invariance(unittest.TestCase):
    def digest(self, model, source, *flags, env=None):
        with tempfile.TemporaryDirectory() as scratch:
            out = pathlib.Path(scratch) / "o.safetensors"
            harness.run("logits", "--model", model, "--ids-file", source, "--out", out, "--greedy", 4, *flags, env=env)
            return hashlib.sha256(out.read_bytes()).hexdigest()

    def variants(self):
        fast = harness.cpu_isas()[-1]
        yield fast, (), "reference run"
        for isa in harness.cpu_isas():
            for threads in (1, 2):
                yield isa, ("--threads", threads), f"{isa}, {threads} threads"
        for chunk in (1, 7, 32):
            yield fast, ("--chunk", chunk), f"prompt in pieces of {chunk}"
        yield fast, ("--beside", 3), "beside three sessions"
        yield fast, ("--beside", 3, "--chunk", 7, "--threads", 1), "beside three, pieces of 7, one thread"
        for memory in ("1kB", "60MB"):
            yield fast, ("--weights-memory", memory), f"{memory} of weights in memory"

    def check(self, model, ids):
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch) / "ids.safetensors"
            harness.write_ids(source, ids)
            want = None
            for isa, flags, what in self.variants():
                got = self.digest(model, f"{source}:ids", *flags, env={"DRIFTWOOD_CPU": isa})
                want = want or got
                self.assertEqual(got, want, what)

    def test_the_real_model(self):
        text = "Once upon a time a small boat drifted down the river, and nobody knew where it would land. " * 2
        out = harness.run("tokenize", "--model", harness.smollm2(), "--jsonl", stdin=json.dumps({"text": text}) + "\n")
        self.check(harness.smollm2(), json.loads(out.stdout)["ids"])

    def test_fixtures_with_long_prompts(self):
        for name in ("llama3", "llama_bias", "llama3_mlx4"):
            with self.subTest(name):
                self.check(harness.fixture_model(name), [(7 * i * i + 3) % 320 for i in range(300)])


if __name__ == "__main__":
    unittest.main()
