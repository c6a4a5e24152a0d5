"""tests/interop/matrix.py: how it reports a case that passes, fails, fails once, or is skipped; its table and its rows."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import matrix  # noqa: E402

OUTCOMES = [  # name of the row, what the case does (given a file that is missing the first time), result
    ("passes", "echo fine", "passed"),
    ("fails", "echo broken; exit 1", "failed, again"),
    ("fails_once", "test -e $0.second || { touch $0.second; exit 1; }; echo fine", "passed, again"),
    ("is_skipped", "echo SKIPPED: no such device; exit 77", "skipped"),
    ("is_killed", "kill -9 $$", "failed, again"),
]


class Outcome(unittest.TestCase):
    pass


def outcome_test(script, result):
    def test(self):
        with tempfile.TemporaryDirectory(prefix="weir-frame-") as folder:
            case = pathlib.Path(folder) / "case.sh"
            case.write_text(script + "\n")
            row = matrix.run("program.case", [], ["sh", str(case)], pathlib.Path(folder) / "case.log")
            self.assertEqual(row.result, result)
    return test


for name, script, result in OUTCOMES:
    setattr(Outcome, f"test_{name}", outcome_test(script, result))


def row_of(name, outcome, commands=("weir run -- true",), last_line=""):
    return matrix.Row(name, list(commands), outcome, False, 1.0, last_line)


class Report(unittest.TestCase):
    def test_summary_counts_by_program(self):
        rows = [row_of("a.x", "passed"), row_of("a.y", "failed"), row_of("b.x", "skipped"), row_of("b.y", "passed")]
        table = [line.split() for line in matrix.summary(rows)]
        self.assertEqual(table, [["passed", "failed", "skipped"], ["a", "1", "1", "0"], ["b", "1", "0", "1"],
                                 ["all", "2", "1", "1"]])

    def test_rows_stand_below_their_program_with_commands_that_markdown_keeps_whole(self):
        rows = [row_of("a.x", "passed", ["server | tee", "client"]), row_of("b.x", "failed")]
        text = "\n".join(matrix.markdown(rows))
        self.assertIn("## a\n", text)
        self.assertIn("| a.x | `server \\| tee`<br>`client` | passed |", text)
        self.assertLess(text.index("## b"), text.index("| b.x |"))

    def test_a_suite_says_how_many_of_its_tests_passed(self):
        for suite in matrix.SUITES:
            text = "\n".join(matrix.markdown([row_of(suite, "passed", last_line="170 tests: 151 passed")]))
            self.assertIn("| passed: 170 tests: 151 passed |", text)

    def test_each_case_is_work_once_and_words_choose_among_them(self):
        names = [name for name, _, _ in matrix.work(pathlib.Path("build"), [])]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(set(matrix.SUITES), set(names))
        chosen = [name for name, _, _ in matrix.work(pathlib.Path("build"), ["ib_send", "xrc."])]
        self.assertTrue(chosen and all("ib_send" in name and "xrc." in name for name in chosen))


if __name__ == "__main__":
    unittest.main()
