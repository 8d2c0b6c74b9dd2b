"""What `make bench-peers` makes of figures (shares of the machine's peaks, ratios, settings of a model) and that
`driftwood bench --json` states what the shares are computed from. Speeds are not judged."""
import json
import pathlib
import sys
import tempfile
import types
import unittest

import harness

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import bench_peers  # noqa: E402
import bench_table  # noqa: E402


def result(**changes):
    figures = {"prompt_spread": 0.0, "generate_spread": 0.0, "size": 500_000_000}
    return {"model": "/models/small.gguf", "threads": 2, "prompt_tokens": 512, "generate_tokens": 64,
            "bytes_per_token": 400_000_000, "macs_per_token": {"int8": 90_000_000, "f32": 10_000_000},
            "peaks": {"read_gb_per_s": 20.0, "int8_gmac_per_s": 300.0, "f32_gmac_per_s": 100.0},
            "llama.cpp": {"prompt": 500.0, "generate": 10.0, **figures},
            "driftwood": {"prompt": 1000.0, "generate": 25.0, **figures}, **changes}


class Tables(unittest.TestCase):
    def test_shares(self):
        r = result()
        self.assertAlmostEqual(bench_table.read_gb_per_s(r, "driftwood"), 10.0)
        self.assertAlmostEqual(bench_table.read_share(r, "driftwood"), 0.5)
        self.assertAlmostEqual(bench_table.gmac_per_s(r, "driftwood"), 100.0)
        # 90 GMAC at 300 a second and 10 at 100 take 0.4 of a second.
        self.assertAlmostEqual(bench_table.mac_share(r, "driftwood"), 0.4)

    def test_summary_has_a_line_for_each_result(self):
        lines = bench_table.summary([result(), result(threads=1)]).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines[2], "| small | 2 | 512 | 500.0 / 1000.0 | 2.00 | 20 % / 40 % | 64 | 10.0 / 25.0 | 2.50 | "
                                   "20 % / 50 % |")
        self.assertEqual({line.count("|") for line in lines}, {11})

    def test_what_is_not_known_is_a_dash(self):
        alone = result(macs_per_token=None, peaks=None)
        del alone["driftwood"]
        self.assertEqual(bench_table.summary([alone]).splitlines()[2],
                         "| small | 2 | 512 | 500.0 | - | - | 64 | 10.0 | - | - |")
        self.assertNotIn("ratio", bench_table.model_table([alone], 1, 1))


class Bench(unittest.TestCase):
    def test_states_the_work_of_a_token(self):
        out = harness.run("bench", "--model", harness.smollm2(), "--prompt", "1", "--generate", "1", "--repeat", "1",
                          "--json").stdout
        row = json.loads(out)
        # 30 layers of width 576: q and o 576 rows, k and v 192, gate, up and down 1,536. The head is the embedding.
        self.assertEqual(row["macs_per_token"], {"int8": 30 * 576 * (2 * 576 + 2 * 192 + 3 * 1536), "f32": 0})
        self.assertEqual(row["bytes_per_token"], row["weights_bytes"])


class Cases(unittest.TestCase):
    def case(self, settings):
        options = types.SimpleNamespace(prompt=512, generate=128, threads=None)
        with tempfile.NamedTemporaryFile(suffix=",odd=name.gguf") as file:
            return bench_peers.Case(file.name + settings, options)

    def test_settings_of_a_model(self):
        case = self.case(",threads=1,threads=4,generate=64")
        self.assertEqual((case.threads, case.prompt, case.generate), ([1, 4], 512, 64))
        self.assertEqual(self.case("").threads, [2])

    def test_bad_settings_are_named(self):
        for settings in (",thread=2", ",threads=0", ",threads=two", ",prompt="):
            with self.assertRaisesRegex(SystemExit, settings.lstrip(",")):
                self.case(settings)


if __name__ == "__main__":
    unittest.main()
