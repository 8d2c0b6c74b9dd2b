"""`driftwood verify continuity` on the real model, a short run; the whole one has 64 boundaries a round."""
import json
import unittest

import harness


class Continuity(unittest.TestCase):
    def test_five_ways_are_equal_and_nothing_is_computed_twice(self):
        r = harness.run("verify", "continuity", "--model", harness.smollm2(), "--boundaries", 4, "--beside", 2,
                        "--prompt-tokens", 35, "--json")
        proof = json.loads(r.stdout)
        self.assertIs(proof["equal"], True, proof["first_difference"])
        self.assertEqual(proof["first_difference"], "")
        self.assertEqual(proof["tokens_recomputed"], 0)
        self.assertEqual(proof["boundaries"], 16)
        self.assertEqual(proof["ways"], ["warm", "cold", "forked", "restored", "moved"])
        # Two chains a round, one process to start each and one for every boundary.
        self.assertEqual(proof["processes_killed"], 4 * 2 * (1 + 4))
        # cold, cold prefill, forked, restored, moved at every boundary, and both chains' starts
        self.assertEqual(proof["comparisons"], 4 * (4 * 5 + 2))


if __name__ == "__main__":
    unittest.main()
