#!/usr/bin/env python3
"""No link in a Markdown file of this tree leads nowhere: files and folders exist, and so do the headings behind a '#'.

  links_test.py SOURCE
"""
import pathlib
import re
import sys
import unittest
import urllib.parse

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "tools"))
import tree_files  # noqa: E402

LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")


def prose(text):
    """Without what is shown as code, in which brackets are no links and '#' is no heading."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"(?<=\n\n)(?:    .*\n|\n)+", "", text)
    return re.sub(r"`[^`]*`", lambda code: re.sub(r"[\[\]()]", "", code[0]), text)


def anchors(text):
    """As GitHub names them: what is no letter, digit, space or hyphen goes, and the second of two equal ones gets -1."""
    found = {}
    for heading in re.findall(r"^#+ +(.*?) *$", prose(text), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = found.get(name, 0)
        found[name] = count + 1
        if count:
            found[f"{name}-{count}"] = 1
    return set(found)


def complaints(root, names):
    for name in names:
        text = (root / name).read_text(encoding="utf-8")
        for target in LINK.findall(prose(text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            there = (root / name).parent / path if path else root / name
            if not there.exists() or not there.resolve().is_relative_to(root):
                yield f"{name}: {target} leads nowhere"
            elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text(encoding="utf-8")):
                yield f"{name}: {target}: no such heading"


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        names = [name for name in tree_files.tree_files(SOURCE) if name.endswith(".md")]
        self.assertGreater(len(names), 50)
        self.assertEqual(list(complaints(SOURCE, names)), [])

    def test_wrong_links_are_found(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.md").write_text("# One, two\n\n[a](b.md) [b](#one-two) [c](#two) [d](x/y.md) [e](a.md#one)\n\n    [f](no.md)\n"
                                       "\n`[g](no.md)` [`h`](b.md) [i](https://example.org/no)\n")
            (root / "b.md").write_text("x\n")
            self.assertEqual([line.split()[1].rstrip(":") for line in complaints(root, ["a.md"])], ["#two", "x/y.md", "a.md#one"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
