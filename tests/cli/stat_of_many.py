#!/usr/bin/env python3
"""`weir stat` shows every program, however few files its shell lets it open, and still does at the second look, and on a
terminal that has no room for all columns shows what is wrong.

  stat_of_many.py WEIR
"""
import fcntl
import json
import os
import pty
import re
import resource
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

import programs_with_a_nic

WEIR = os.path.abspath(sys.argv[1])
PROGRAMS = 14
FILES = 30  # enough for `weir stat` itself and a few of them


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class StatOfMany(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-stat-")
        self.addCleanup(folder.cleanup)
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": folder.name + "/runtime"}
        self.programs = []
        for _ in range(PROGRAMS):
            program = programs_with_a_nic.start(WEIR, self.environment)
            self.addCleanup(program.communicate)  # ends it by closing its input
            self.programs.append(program)
        for program in self.programs:
            self.assertEqual(program.stdout.readline(), "open\n")

    def looks(self, *options):
        told = subprocess.run([WEIR, "stat", "--json", *options], env=self.environment, preexec_fn=few_files,
                              capture_output=True, text=True, timeout=120, check=True).stdout
        return json.loads(told)

    def test_each_is_shown(self):
        for options in (["--once"], ["--interval", "0.05", "--count", "1"]):
            seen = self.looks(*options)
            self.assertEqual(seen["silent"], 0, options)
            self.assertEqual(sorted(process["pid"] for process in seen["processes"]),
                             sorted(program.pid for program in self.programs), options)

    def test_a_terminal_of_80_columns_shows_errors(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        stat = subprocess.Popen([WEIR, "stat"], env=self.environment, stdin=theirs, stdout=theirs)
        os.close(theirs)
        screen = b""
        while b"sorted by" not in screen:
            screen += os.read(ours, 4096)
        os.write(ours, b"q")
        self.assertEqual(stat.wait(timeout=60), 0)
        lines = re.sub(rb"\x1b\[[0-9?]*[A-Za-z]", b"", screen).decode().split("\r\n")
        self.assertEqual(lines[0].split()[0], str(PROGRAMS))
        self.assertRegex(lines[1], r"PID .* RETRY ERROR$")
        self.assertLessEqual(max(map(len, lines)), 80)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
