#!/usr/bin/env python3
"""The website that `make site` makes: every page is in its menu, its links and their headings exist, and the search knows the words.

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

    def test_every_page_is_in_the_menu(self):
        menu = re.search(r'<nav class="md-nav md-nav--primary".*?<div class="md-content"', self.text("index.html"), re.S)[0]
        listed = {(self.site / html.unescape(target)).resolve() for target in re.findall(r'<a href="([^"#]+)"', menu)}
        pages = {page for page in self.site.rglob("*.html") if page.name != "404.html"}
        self.assertEqual(sorted(str(page.relative_to(self.site)) for page in pages - listed - {self.site / "index.html"}), [])

    def test_commands_are_highlighted_and_manuals_are_rendered(self):
        for page, has in (("docs/verbs.html", '<code>build/release/bin/weir<span class="w">'), ("docs/rpc.html", '<span class="k">co_await'),
                          ("docs/man/weir-run.1.html", "<b>weir run</b>"), ("docs/man/weir-run.1.html", 'id="DESCRIPTION"'),
                          ("docs/server.html", 'href="man/weir-server.1.html"')):
            self.assertTrue(has in self.text(page), f"{page} has no {has}")

    def test_is_light_or_dark_as_the_reader_wants_and_fetches_nothing(self):
        start = self.text("index.html")
        self.assertIn("(prefers-color-scheme: dark)", start)
        self.assertEqual(re.findall(r'<(?:link|script)[^>]+(?:href|src)="https?:[^"]*"', start), [])

    def text(self, page):
        return (self.site / page).read_text(encoding="utf-8")

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
    for program in ("mkdocs", "mandoc"):
        if shutil.which(program) is None:
            print(f"SKIPPED: {program} is not installed")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
