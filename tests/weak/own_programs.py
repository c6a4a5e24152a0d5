#!/usr/bin/env python3
"""Weir's own programs on a NIC that does whatever it may, and under the checker: they check their results, and ask for nothing wrong.

  own_programs.py DIRECTORY_WITH_PROGRAMS DROP_IN_LIBRARIES

docs/check.md says with how many seeds they were run; here there are few, for the time of a test run. This file is also what `weir seeds`
runs where a program has two ends: own_programs.py DIRECTORY_WITH_PROGRAMS end NAME.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = os.path.abspath(sys.argv[1])
SEEDS = os.environ.get("WEIR_OWN_PROGRAMS_SEEDS", "2")
LIMIT_S = 60


def program(name):
    return os.path.join(PROGRAMS, name)


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"{words[0]} ended with {done.returncode}")


def stop(server):
    server.send_signal(signal.SIGTERM)
    said, _ = server.communicate(timeout=LIMIT_S)
    if server.returncode != 0:
        print(said)
        sys.exit(f"the server ended with {server.returncode}")


def weir_server(directory):
    """weir-server and weir-benchmark over RDMA."""
    server = subprocess.Popen(
        [program("weir-server"), "--port", "-1", "--rdma-port", "-1", "--bind", "127.0.0.1", "--rdma-bind", "127.0.0.1", "--save", "",
         "--dir", directory], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in server.stdout:
        if found := re.search(r"listening on rdma \S*:(\d+)", line):
            port = found[1]
            break
    else:
        sys.exit("weir-server has no RDMA port")
    run(program("weir-benchmark"), "--rdma", "-p", port, "-q", "-n", "300", "-c", "8", "-d", "5000", "-t", "set,get,lrange_100")
    stop(server)


ENDS = {"weir_server": weir_server}
# Name, options of `weir run`, command.
ROWS = [
    ("weir_server", [], [sys.executable, "-B", __file__, PROGRAMS, "end", "weir_server"]),
    ("stream", [], [program("rdma_echo")]),
    ("channel", [], [program("rdma_messages")]),
    ("rpc", [], [program("rpc_echo"), "rdma://127.0.0.1:0"]),
    ("rpc_streams", [], [program("rpc_streaming"), "rdma://127.0.0.1:0"]),
    ("rpc_attachments", [], [program("rpc_attachments"), "rdma://127.0.0.1:0"]),
    ("tensors", [], [program("tensor_publish_and_fetch")]),
]


class OwnPrograms(unittest.TestCase):
    def test_pass_every_seed_and_do_nothing_wrong(self):
        for name, options, command in ROWS:
            with self.subTest(name), tempfile.TemporaryDirectory() as runtime:
                began = time.monotonic()
                done = subprocess.run(
                    [program("weir"), "seeds", SEEDS, "--lib-dir", LIBRARIES, "--check", "--timeout", str(LIMIT_S), *options, "--", *command],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "WEIR_RUNTIME_DIR": runtime})
                print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertIn(f"{SEEDS} of {SEEDS} seeds passed", done.stdout)


if __name__ == "__main__":
    if sys.argv[2] == "end":
        with tempfile.TemporaryDirectory() as scratch:
            ENDS[sys.argv[3]](scratch)
    else:
        LIBRARIES = os.path.abspath(sys.argv[2])
        unittest.main(argv=sys.argv[:1])
