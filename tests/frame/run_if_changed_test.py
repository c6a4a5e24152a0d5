"""tools/run-if-changed.py: a test that has passed is run again after a change of its inputs, and only then."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE = {"docs/page.md": "text\n", "docs/deep/page.md": "text\n", "rdma/face.hpp": "int a;\n", "rdma/room/part.hpp": "int b;\n",
        "tools/packages.txt": "g++\n"}
CHANGES = [  # name of the row, inputs, the file that changes, whether the test runs again
    ("nothing", ["docs"], None, False),
    ("file_of_a_folder", ["docs"], "docs/page.md", True),
    ("file_deep_in_a_folder", ["docs"], "docs/deep/page.md", True),
    ("file_named", ["docs/page.md"], "docs/page.md", True),
    ("file_of_a_pattern", ["rdma/*.hpp"], "rdma/face.hpp", True),
    ("file_below_a_pattern", ["rdma/*.hpp"], "rdma/room/part.hpp", False),
    ("file_of_nobody", ["docs"], "rdma/face.hpp", False),
    ("file_added", ["docs"], "docs/new.md", True),
    ("packages", ["docs"], "tools/packages.txt", True),
]


class Tree:
    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "tree"
        for name, text in TREE.items():
            self.write(name, text)
        for name in ("run-if-changed.py", "remembered.py", "tree_files.py"):
            self.write(f"tools/{name}", (ROOT / "tools" / name).read_text())
        self.environment = {**os.environ, "WEIR_CACHE": str(pathlib.Path(folder) / "cache"), "GIT_CEILING_DIRECTORIES": folder}
        self.environment.pop("WEIR_TEST_ALL", None)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def run(self, inputs, *command, **environment):
        return subprocess.run([sys.executable, "-B", str(self.root / "tools/run-if-changed.py"), *inputs, "--", *command],
                              env={**self.environment, **environment}, capture_output=True).returncode


class RunIfChanged(unittest.TestCase):
    def tree(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-frame-")
        self.addCleanup(folder.cleanup)
        return Tree(folder.name)

    def test_each_change(self):
        for name, inputs, changed, again in CHANGES:
            with self.subTest(name):
                tree = self.tree()
                self.assertEqual(tree.run(inputs, "true"), 0)
                if changed:
                    tree.write(changed, "changed\n")
                self.assertEqual(tree.run(inputs, "true"), 0 if again else 77)

    def test_failure_is_not_remembered(self):
        tree = self.tree()
        self.assertEqual(tree.run(["docs"], "false"), 1)
        self.assertEqual(tree.run(["docs"], "false"), 1)

    def test_another_command_runs(self):
        tree = self.tree()
        self.assertEqual(tree.run(["docs"], "true"), 0)
        self.assertEqual(tree.run(["docs"], "true", "again"), 0)

    def test_everything_runs_when_asked_for(self):
        tree = self.tree()
        self.assertEqual(tree.run(["docs"], "true"), 0)
        self.assertEqual(tree.run(["docs"], "true", WEIR_TEST_ALL="1"), 0)

    def test_input_that_names_no_file_is_an_error(self):
        self.assertEqual(self.tree().run(["no_such_folder"], "true"), 1)


if __name__ == "__main__":
    unittest.main()
