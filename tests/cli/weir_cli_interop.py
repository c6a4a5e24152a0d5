#!/usr/bin/env python3
"""What weir-cli does where redis-cli is no measure: on weir-server, and on servers that answer oddly.

  weir_cli_interop.py WEIR_CLI
"""
import os
import socket
import subprocess
import sys
import threading
import unittest

PROGRAM = os.path.abspath(sys.argv[1])


def run(*arguments, text=""):
    return subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, text=True, timeout=30)


class OneAnswer:
    """A server that gives the same answer to whatever arrives on its one connection."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = str(self.listener.getsockname()[1])
        self.thread = threading.Thread(target=self.serve, args=(answer,))
        self.thread.start()

    def serve(self, answer):
        connection, _ = self.listener.accept()
        with connection:
            while connection.recv(4096):
                connection.sendall(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join()
        self.listener.close()


class Redirections(unittest.TestCase):
    def test_are_told_and_not_followed(self):
        for answer in (b"-MOVED 12182 127.0.0.1:7001\r\n", b"-ASK 12182 127.0.0.1:7001\r\n"):
            with OneAnswer(answer) as server:
                done = run("-p", server.port, "-c", "GET", "foo")
            self.assertEqual(done.stdout.strip(), answer[1:].decode().strip())
            self.assertIn("127.0.0.1:7001", done.stderr)

    def test_are_a_word_only_where_one_comes(self):
        for arguments, answer in ((["-c"], b"+OK\r\n"), (["-c"], b"-ERR no\r\n"), ([], b"-MOVED 1 h:1\r\n")):
            with OneAnswer(answer) as server:
                self.assertEqual(run("-p", server.port, *arguments, "GET", "foo").stderr, "")


class Options(unittest.TestCase):
    def test_that_contradict_each_other_are_refused(self):
        done = run("--rdma", "-s", "/nonexistent", "PING")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--rdma", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
