#!/usr/bin/env python3
"""`weir stat` on a real terminal (tmux): what a person sees, which keys do what, and that the terminal is as before.

  stat_screen.py WEIR
"""
import os
import re
import shutil
import sys
import tempfile
import unittest

import programs_with_a_nic
from screen_of_a_terminal import Terminal

WEIR = os.path.abspath(sys.argv[1])
PROGRAMS = 12


class StatScreen(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-stat-")
        self.addCleanup(folder.cleanup)
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": folder.name + "/runtime", "LANG": "C.UTF-8", "LC_ALL": "",
                            "TERM": "xterm-256color", "NO_COLOR": ""}
        for _ in range(PROGRAMS):
            program = programs_with_a_nic.start(WEIR, self.environment)
            self.addCleanup(program.communicate)  # ends it by closing its input
            self.assertEqual(program.stdout.readline(), "open\n")

    def stat(self, columns, lines, *options):
        terminal = Terminal(" ".join([WEIR, "stat", "--interval", "0.2", "--sort", "pid", *options]), columns, lines,
                            self.environment)
        self.addCleanup(terminal.close)
        terminal.expect(lambda screen: "q quit" in screen, "table")
        return terminal

    def shown_pids(self, screen):
        return [int(pid) for pid in re.findall(r"^ *(\d+) \S+ +\d+ QP", screen, re.M)]

    def test_the_columns_of_trouble_are_there_however_narrow_it_is(self):
        for columns in (60, 80, 132):
            screen = self.stat(columns, 24).screen()
            titles = next(line for line in screen.splitlines() if "PID" in line)
            with self.subTest(columns=columns):
                self.assertTrue(titles.rstrip().endswith("ERROR"), titles)
                self.assertTrue(all(len(line) <= columns for line in screen.splitlines()), screen)

    def test_what_does_not_fit_is_scrolled_to(self):
        terminal = self.stat(80, 12)
        first = terminal.expect(lambda screen: "more lines)" in screen and "operations/s" in screen, "hidden lines")
        everybody = set(self.shown_pids(first))
        terminal.keys("j")
        moved = terminal.expect(lambda screen: "(lines: 1 above" in screen, "line scrolled past")
        self.assertEqual(self.shown_pids(moved)[0], self.shown_pids(first)[1])
        terminal.keys("Down")
        terminal.expect(lambda screen: "(lines: 2 above" in screen, "second line scrolled past")
        terminal.keys("G")
        last = terminal.expect(lambda screen: ", 0 below)" in screen, "end")
        everybody |= set(self.shown_pids(last))
        terminal.keys("PageUp")
        everybody |= set(self.shown_pids(terminal.expect(lambda screen: ", 0 below)" not in screen, "page up")))
        terminal.keys("g")
        back = terminal.expect(lambda screen: "more lines)" in screen, "beginning")
        self.assertEqual(self.shown_pids(back), self.shown_pids(first))
        self.assertGreater(len(everybody), len(self.shown_pids(first)))

    def test_a_screen_for_all_has_nothing_to_scroll(self):
        terminal = self.stat(80, 40)
        terminal.keys("G", "j", "j")
        screen = terminal.expect(lambda screen: len(self.shown_pids(screen)) == PROGRAMS, "all programs")
        self.assertNotIn("(lines:", screen)

    def test_help_explains_each_column_and_goes_again(self):
        terminal = self.stat(80, 24)
        terminal.keys("h")
        screen = terminal.expect(lambda screen: "what each column means" in screen, "help")
        for title in "OPS SEND WRITE READ ATOM RECV SERVE BELL COMPL WAKE RNR RETRY ERROR".split():
            self.assertRegex(screen, rf"(?m)^  {title} ")
        self.assertIn("the column to sort by", screen)
        terminal.keys("?")
        terminal.expect(lambda screen: "q quit" in screen, "table")

    def test_the_last_looks_are_a_line_of_bars(self):
        screen = self.stat(80, 24).expect(lambda screen: "operations/s" in screen, "history")
        line = next(line for line in screen.splitlines() if "operations/s" in line)
        self.assertRegex(line, r"now 0, highest 0")

    def test_the_terminal_is_as_before_at_the_end(self):
        for end in (["q"], ["C-c"]):
            terminal = self.stat(80, 24)
            terminal.keys(*end)
            screen = terminal.expect(lambda screen: screen.rstrip().endswith("$"), "shell")
            self.assertNotIn("q quit", screen)
            terminal.keys("echo typed", "Enter")
            terminal.expect(lambda screen: screen.count("typed") == 2, "echo of what is typed")


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        sys.exit("tmux is missing: apt install tmux")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
