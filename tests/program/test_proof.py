"""`driftwood proof`: the claims that do not depend on how busy the machine is. Timings are for the benches."""
import json
import unittest

import harness


class Proof(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.proof = json.loads(harness.run("proof", "--model", harness.smollm2(), "--json").stdout)

    def test_one_memory_for_guest_and_device(self):
        self.assertIs(self.proof["region_equals_wasm"], True)
        self.assertIs(self.proof["region_equals_device"], True)

    def test_working_in_place_costs_no_memory_and_a_copy_does(self):
        self.assertLessEqual(self.proof["rss_zero_copy_mb"], 0.03)
        self.assertGreater(self.proof["rss_copy_mb"], 16.5)
        self.assertLess(self.proof["rss_copy_mb"], 17.2)

    def test_the_device_computes_exactly(self):
        self.assertEqual(self.proof["gemm_elements"], 16384)
        self.assertEqual(self.proof["gemm_errors"], 0)

    def test_a_guest_gets_the_tokens_of_native_code(self):
        self.assertIs(self.proof["same_tokens"], True)

    def test_every_promised_key_is_there(self):
        for key in ("gemm_us", "gemm_copy_us", "host_call_ns", "model_load_ms", "prefill_5_ms", "per_token_ms",
                    "per_token_native_ms"):
            self.assertGreater(self.proof[key], 0, key)
        self.assertEqual(self.proof["numerics_id"], "portable-1")

    def test_the_null_device_says_what_it_is(self):
        r = harness.run("proof", "--device", "null", "--model", "none", check=False)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("null", r.stderr)


if __name__ == "__main__":
    unittest.main()
