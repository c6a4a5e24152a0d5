#!/usr/bin/env python3
"""What WEIR_SOCKETS makes programs under `weir run --sockets` say of themselves.

  environment_test.py WEIR
"""
import os
import subprocess
import sys
import unittest

WEIR = sys.argv[1]
CONNECTS = """import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).sendall(b"x")
server.accept()[0].recv(1)
"""


def said(value, *program):
    done = subprocess.run([WEIR, "run", "--sockets", "--", *program], env={**os.environ, "WEIR_SOCKETS": value}, capture_output=True,
                          text=True, timeout=60, check=True)
    return done.stderr


class Environment(unittest.TestCase):
    def test_a_word_that_means_nothing_is_named(self):
        self.assertEqual(said("foo", "true"), "weir sockets: WEIR_SOCKETS=foo is none of trace, report and off: ignored\n")
        for value in ("", "off", "trace", "report"):
            self.assertEqual(said(value, "true"), "", value)

    def test_only_programs_with_connections_report(self):
        report = said("report", "sh", "-c", 'true; true; /usr/bin/python3 -c "$0"', CONNECTS)
        self.assertEqual(len(report.splitlines()), 5, report)
        self.assertRegex(report, r"python3\S*: \d+ connections?, ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
