#!/usr/bin/env python3
"""The pages that `weir plan` and `weir sim` write, looked at in a real browser: light and dark, wide and narrow. No words
are printed over others or cut off, nothing is wider than the screen, everything can be read against its ground, and
each drawing says what its axes show.

  pages_test.py WEIR SOURCES
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
SOURCES = pathlib.Path(sys.argv[2]).resolve()
LOOK = (pathlib.Path(__file__).parent / "look.js").read_text(encoding="utf-8")
WIDE, NARROW = 1280, 400


def browser():
    for name in ("chromium-headless-shell", "chromium"):
        if found := shutil.which(name):
            return found
    return None


def seen(page, width, dark):
    """What look.js reports of the page on a screen of that width."""
    with tempfile.TemporaryDirectory(prefix="weir-page-") as folder:
        looked_at = pathlib.Path(folder) / "page.html"
        text = page.read_text(encoding="utf-8")
        looked_at.write_text(text.replace("</body>", f"<script>{LOOK}</script></body>"), encoding="utf-8")
        dom = subprocess.run(
            [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--window-size={width},900", "--dump-dom",
             looked_at.as_uri()], capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="seen">({.*?)</pre>', dom, re.S)
    if found is None:
        raise AssertionError(f"the page's script did not run: {dom[-500:]}")
    return json.loads(html.unescape(found.group(1)))


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-pages-")
        cls.addClassCleanup(cls.folder.cleanup)

    def made(self, name, *words):
        """The page that a command writes; exit status 1 only means that the network can lose packets, which is fine here."""
        done = subprocess.run([WEIR, *words], cwd=self.folder.name, capture_output=True, text=True, timeout=200)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        page = pathlib.Path(self.folder.name) / name
        self.assertTrue(page.is_file(), done.stderr)
        return page

    def look_at(self, page):
        found = None
        for width in (WIDE, NARROW):
            for dark in (False, True):
                with self.subTest(page=page.name, width=width, dark=dark):
                    found = seen(page, width, dark)
                    self.assertEqual((found["dark"], found["width"]), (dark, width), "the browser does as it is told")
                    self.assertGreater(found["drawings"], 0)
                    self.assertEqual(found["complaints"], [])
        return found

    def test_the_look_finds_what_is_wrong(self):
        page = pathlib.Path(self.folder.name) / "wrong.html"
        page.write_text("""<!doctype html><html><head><meta name="viewport" content="width=device-width"></head><body>
            <svg width="300" height="60"><text x="10" y="30">one label</text><text x="20" y="32">another</text>
              <text x="290" y="55">cut at the edge</text></svg>
            <svg width="30" viewBox="0 0 300 60"><text x="10" y="30">shrunk</text></svg>
            <p style="color: #bbb">hardly there</p><div style="width: 3000px">wide</div></body></html>""", encoding="utf-8")
        complaints = "\n".join(seen(page, WIDE, False)["complaints"])
        for wanted in ('overprinted: "one label" and "another"', 'cut off: "cut at the edge"', "wider than the screen", 'too small: "shrunk"',
                       '"hardly there"'):
            self.assertIn(wanted, complaints)

    def test_a_plan(self):
        for network in ("ring.toml", "reference-rig.toml"):
            if (path := SOURCES / "fabric/networks" / network).exists():
                self.look_at(self.made(network + ".html", "plan", str(path), "--format", "html", "-o", network + ".html"))

    def test_a_simulation(self):
        page = self.made("incast/report.html", "sim", str(SOURCES / "fabric/scenarios/incast.toml"), "-q", "-o", "incast")
        texts = " ".join(self.look_at(page)["texts"])
        self.assertRegex(texts, r"\b(ms|us|s)\b")
        self.assertRegex(texts, r"\b[GM]?b(it)?/s\b|Gbit")

    def test_a_sweep(self):
        page = self.made("swept/sweep.html", "sim", str(SOURCES / "fabric/scenarios/incast.toml"), "-q", "--sweep",
                         "alpha=0.0625,0.5,4", "-o", "swept")
        self.look_at(page)


if __name__ == "__main__":
    if browser() is None:
        print("SKIPPED: no browser (apt install chromium-headless-shell)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
