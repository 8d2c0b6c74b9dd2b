"""`driftwood logits` against goldens that other software computed, within the tolerances of the fixtures' README."""
import math
import pathlib
import tempfile
import unittest

import harness


def rows(tensor):
    (t, v), values = tensor
    return [values[i * v:(i + 1) * v] for i in range(t)]


def best(row):
    return max(range(len(row)), key=row.__getitem__)


def log_softmax(row):
    top = max(row)
    norm = top + math.log(math.fsum(math.exp(x - top) for x in row))
    return [x - norm for x in row]


def kl(golden, ours):
    p, q = log_softmax(golden), log_softmax(ours)
    return math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q))


class Logits(unittest.TestCase):
    def compute(self, model, source, *flags, env=None):
        with tempfile.TemporaryDirectory() as scratch:
            out = pathlib.Path(scratch) / "o.safetensors"
            harness.run("logits", "--model", model, "--ids-file", source, "--out", out, *flags, env=env)
            return harness.read_safetensors(out)

    def check_close(self, name, kv, tolerance, margin, env=None):
        folder = harness.fixture_model(name)
        golden = harness.read_safetensors(folder / "golden.safetensors")
        count = golden["greedy"][0][0]
        ours = self.compute(folder, f"{folder / 'golden.safetensors'}:input_ids", "--kv", kv, "--greedy", count, env=env)
        worst = 0.0
        for a, b in zip(rows(golden["logits"]), rows(ours["logits"])):
            scale = max(map(abs, a))
            error = max(abs(x - y) for x, y in zip(a, b)) / scale
            worst = max(worst, error)
            self.assertLessEqual(error, tolerance)
            top, second = sorted(a)[-1], sorted(a)[-2]
            if top - second > margin * scale:
                self.assertEqual(best(a), best(b))
        for i, (x, y) in enumerate(zip(golden["greedy"][1], ours["greedy"][1])):
            if golden["greedy_margin"][1][i] <= margin:
                break  # from here on the continuation may part
            self.assertEqual(x, y, f"greedy token {i}")
        return worst

    def test_unquantised_models_with_f32_kv(self):
        for name in ("llama3", "llama_bias", "llama_linear"):
            with self.subTest(name):
                print(name, "f32", self.check_close(name, "f32", 1e-4, 0.0))

    def test_unquantised_models_with_f16_kv(self):
        for name in ("llama3", "llama_bias", "llama_linear"):
            with self.subTest(name):
                print(name, "f16", self.check_close(name, "f16", 6e-3, 6e-2))

    def test_mlx_with_f32_activations(self):
        env = {"DRIFTWOOD_CPU": "ref", "DRIFTWOOD_ACTIVATIONS": "f32"}
        print("llama3_mlx4", self.check_close("llama3_mlx4", "f32", 1e-4, 0.0, env))

    def test_mlx_with_int8_activations(self):
        folder = harness.fixture_model("llama3_mlx4")
        golden = harness.read_safetensors(folder / "golden.safetensors")
        ours = self.compute(folder, f"{folder / 'golden.safetensors'}:input_ids", "--kv", "f32")
        values = [kl(a, b) for a, b in zip(rows(golden["logits"]), rows(ours["logits"]))]
        self.assertLessEqual(sum(values) / len(values), 2e-2)

    def test_the_default_model(self):
        source = harness.fixtures() / "smollm2.logits.safetensors"
        golden = harness.read_safetensors(source)
        model = harness.smollm2()
        values = []
        for name in ("chat", "prose", "code"):
            ours = self.compute(model, f"{source}:{name}.ids", "--greedy", 32)
            mine = rows(ours["logits"])
            theirs = rows(golden[f"{name}.logits"])
            values += [kl(a, b) for a, b in zip(theirs, mine[-len(theirs):])]
            ids = golden[f"{name}.ids"][1]
            nll = [-log_softmax(mine[t])[ids[t + 1]] for t in range(len(ids) - 1)]
            mean, want = sum(nll) / len(nll), sum(golden[f"{name}.nll"][1]) / len(nll)
            self.assertLessEqual(abs(mean - want) / want, 0.015, name)
            for i, (x, y) in enumerate(zip(golden[f"{name}.greedy"][1], ours["greedy"][1])):
                if golden[f"{name}.margin"][1][i] <= 1.0:
                    break
                self.assertEqual(x, y, f"{name} greedy {i}")
        print("smollm2 KL mean", sum(values) / len(values), "max", max(values))
        self.assertLessEqual(sum(values) / len(values), 5e-3)
        self.assertLessEqual(max(values), 3e-2)

    def test_bad_requests_are_named(self):
        model = harness.smollm2()
        for ids, word in (("1,x", "x"), ("1,-2", "-2"), ("999999", "999999"), ("", "--ids")):
            r = harness.run("logits", "--model", model, "--ids", ids, "--out", "/dev/null/x", check=False)
            self.assertNotEqual(r.returncode, 0)
            self.assertIn(word, r.stderr)


if __name__ == "__main__":
    unittest.main()
