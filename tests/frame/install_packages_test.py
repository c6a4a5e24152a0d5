"""tools/install-packages.sh reads the groups of a list, and the Makefile and the pages name groups that there are."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIST = "# A comment of the file: no group\n# build\ng++\n\n# demo: runs these\n# and this is no group\ngnuplot\n\n# site: the pages\nmkdocs\n"
ROWS = [  # name of the row, groups, exit status, what is printed
    ("all", None, 0, "g++\ngnuplot\nmkdocs\n"),
    ("without_a_reason", "build", 0, "g++\n"),
    ("with_a_reason", "site", 0, "mkdocs\n"),
    ("below_a_comment_of_its_own", "demo", 0, "gnuplot\n"),
    ("two", "site build", 0, "g++\nmkdocs\n"),
    ("unknown", "sites", 1, "install: there is no group sites; there are: build demo site\n"),
    ("unknown_beside_one_that_exists", "build and", 1, "install: there is no group and; there are: build demo site\n"),
]


def listed(*words):
    done = subprocess.run([ROOT / "tools/install-packages.sh", "--list", *words], capture_output=True, text=True)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


class InstallPackages(unittest.TestCase):
    def test_lists_the_packages_of_groups(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(LIST)
            file.flush()
            for name, groups, status, printed in ROWS:
                with self.subTest(name):
                    self.assertEqual(listed(*(["--groups", groups] if groups else []), file.name), (status, printed))

    def test_knows_every_group_that_is_asked_for(self):
        asked = {}
        for place in ("Makefile", "README.md", "CONTRIBUTING.md", "docs/*.md", "tools/*.py"):
            for path in ROOT.glob(place):
                for quoted, bare in re.findall(r'--groups (?:"([a-z][^"]*)"|([a-z-]+))', path.read_text(encoding="utf-8")):
                    asked[quoted or bare] = path.name
        self.assertIn("site", asked)
        self.assertEqual({groups: place for groups, place in asked.items() if listed("--groups", groups)[0] != 0}, {})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
