"""`driftwood tokenize` against answers made by another implementation."""
import json
import unittest

import harness


class Tokenize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = json.loads((harness.fixtures() / "smollm2.text.json").read_text())["tokenize"]
        cls.model = harness.smollm2()

    def lines(self, objects, *flags):
        text = "".join(json.dumps(o) + "\n" for o in objects)
        out = harness.run("tokenize", "--model", self.model, "--jsonl", *flags, stdin=text).stdout
        return [json.loads(line) for line in out.splitlines()]

    def test_every_tokenisation_is_equal(self):
        asked = [{k: c[k] for k in ("text", "parse_special", "add_special")} for c in self.cases]
        answers = self.lines(asked)
        self.assertEqual(len(answers), 488)
        for case, answer in zip(self.cases, answers):
            self.assertEqual(answer["ids"], case["ids"], case["text"])

    def test_detokenize_gives_the_text_back(self):
        answers = self.lines([{"ids": c["ids"]} for c in self.cases], "--detokenize")
        for case, answer in zip(self.cases, answers):
            self.assertEqual(answer["text"], case["text"])

    def test_bad_lines_are_named(self):
        for line, word in (("{", "line 1"), ('{"txt":1}', "text"), ("[1]", "line 1"),
                           ('{"text":"a","parse_special":1}', "parse_special")):
            r = harness.run("tokenize", "--model", self.model, "--jsonl", stdin=line + "\n", check=False)
            self.assertEqual(r.returncode, 64)
            self.assertIn(word, r.stderr)


if __name__ == "__main__":
    unittest.main()
