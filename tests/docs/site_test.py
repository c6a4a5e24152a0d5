#!/usr/bin/env python3
"""The website that `make site` makes: it has every page, its links and their headings exist, and the search knows the words.

  site_test.py SOURCE
"""
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

SOURCE = pathlib.Path(sys.argv[1]).resolve()


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="weir-site-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.site = pathlib.Path(folder.name).resolve() / "site"
        done = subprocess.run([sys.executable, "-B", SOURCE / "tools/make-site.py", cls.site], capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_has_the_guides_and_the_readmes_of_folders(self):
        for page in ("index.html", "docs/verbs.html", "docs/man/index.html", "rdma/index.html", "docs/images/demo.svg"):
            self.assertTrue((self.site / page).is_file(), page)

    def test_links_lead_to_pages_and_headings(self):
        texts = {page: page.read_text(encoding="utf-8") for page in self.site.rglob("*.html") if page.name != "404.html"}
        wrong = []
        for page, text in texts.items():
            for target in map(html.unescape, re.findall(r'href="([^"]+)"', text)):
                path, _, heading = urllib.parse.unquote(target).partition("#")
                if re.match(r"[a-z]+:|/", path):
                    continue
                there = (page.parent / path).resolve() if path else page
                there = there / "index.html" if there.is_dir() else there
                if not there.is_file() or (heading and there in texts and f'id="{heading}"' not in texts[there]):
                    wrong.append((str(page.relative_to(self.site)), target))
        self.assertEqual(wrong, [])

    def test_the_search_finds_words_of_every_guide(self):
        index = json.loads((self.site / "search/search_index.json").read_text(encoding="utf-8"))
        texts = {entry["location"].partition("#")[0]: "" for entry in index["docs"]}
        for entry in index["docs"]:
            texts[entry["location"].partition("#")[0]] += entry["text"]
        self.assertIn("RoCEv2", texts["docs/verbs.html"])
        self.assertIn("headroom", texts["docs/lossless.html"])


if __name__ == "__main__":
    if shutil.which("mkdocs") is None:
        print("SKIPPED: mkdocs is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
