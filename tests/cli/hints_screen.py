#!/usr/bin/env python3
"""The hints of weir-cli on a real terminal (tmux): behind the cursor while a command is typed, and gone once it has been.

  hints_screen.py WEIR_CLI
"""
import os
import shutil
import sys
import unittest

from screen_of_a_terminal import Terminal

WEIR_CLI = os.path.abspath(sys.argv[1])


class Hints(unittest.TestCase):
    def typing(self, *keys, columns=100):
        terminal = Terminal(f"{WEIR_CLI} -p 1", columns, 12, {**os.environ, "HOME": "/nonexistent", "TERM": "xterm-256color"})
        self.addCleanup(terminal.close)
        terminal.expect(lambda screen: "not connected>" in screen, "prompt")
        terminal.keys(*keys)
        return terminal

    def last(self, terminal, line):
        terminal.expect(lambda screen: screen.rstrip().split("\n")[-1] == line, repr(line))

    def test_stand_behind_the_cursor(self):
        terminal = self.typing("set greeting ")
        line = terminal.expect(lambda screen: "set greeting value [NX|XX|" in screen, "hint").rstrip().split("\n")[-1]
        self.assertLessEqual(len(line), 99)

    def test_are_cut_where_the_line_ends(self):
        terminal = self.typing("set greeting ", columns=40)
        self.last(terminal, "not connected> set greeting value [NX|X")

    def test_go_with_the_line(self):
        terminal = self.typing("lrange l 0 -1")
        self.last(terminal, "not connected> lrange l 0 -1 stop")
        terminal.keys("Enter")
        screen = terminal.expect(lambda screen: "Could not connect" in screen, "answer")
        self.assertIn("> lrange l 0 -1\n", screen)
        self.assertNotIn("stop", screen)

    def test_leave_the_line_to_be_edited(self):
        terminal = self.typing("getx k", "Left", "Left", "BSpace", "End")
        self.last(terminal, "not connected> get k key")

    def test_are_switched_off_and_on(self):
        terminal = self.typing(":set nohints", "Enter", "get ")
        self.last(terminal, "not connected> get")
        terminal.keys("C-u", ":set hints", "Enter", "get ")
        self.last(terminal, "not connected> get key")
        terminal.keys("C-u", ":set colours", "Enter")
        terminal.expect(lambda screen: ":set wants hints or nohints" in screen, "refusal")


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        sys.exit("tmux is missing: apt install tmux")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
