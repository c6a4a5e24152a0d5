#!/usr/bin/env python3
"""weir-check on files that servers left: its exit status, its output, and that both servers start from what it repaired.

  weir_check_interop.py BINARIES
"""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BINARIES = pathlib.Path(sys.argv[1]).resolve()
SECONDS = 60


def check(*words, answer=""):
    done = subprocess.run([BINARIES / "weir-check", *map(str, words)], input=answer, capture_output=True, text=True, timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


class Server:
    """On a unix socket in `data`; killed at the end, so that it writes nothing more."""

    def __init__(self, data, words):
        self.socket = data / "s"
        self.process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=data)
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "eady to accept connections" in line:  # each has its own R
                return
        self.__exit__()
        raise AssertionError("it did not start: " + "".join(said))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        self.socket.unlink(missing_ok=True)

    def call(self, *lines):
        """Runs each line as a command; returns the replies, a line each."""
        done = subprocess.run([BINARIES / "weir-cli", "-s", self.socket], input="".join(f"{line}\n" for line in lines),
                              capture_output=True, text=True, timeout=SECONDS)
        return done.stdout.split()


def weir(data, *more):
    return Server(data, [BINARIES / "weir-server", "--port", "0", "--unixsocket", data / "s", "--dir", data, *more])


def redis(data, *more):
    return Server(data, ["redis-server", "--port", "0", "--unixsocket", data / "s", "--dir", data, "--save", "", *more])


KEEPING = ("--appendonly", "yes", "--appendfsync", "always", "--aof-load-truncated", "no")


def fill(server):
    script = "for i = 1, 5 do redis.call('SADD', 'set', i) end return 1"
    assert server.call(*(f"SET key{number} value" for number in range(20)), f'EVAL "{script}" 0') == [*["OK"] * 20, "1"]


class WeirCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-check-")
        self.addCleanup(self.folder.cleanup)
        self.data = pathlib.Path(self.folder.name)

    def increment(self):
        return self.data / "appendonlydir/appendonly.aof.1.incr.aof"

    def test_what_was_killed_in_the_middle_of_a_write_is_repaired_for_both_servers(self):
        for writer in (weir, redis):
            for cut in (1, 60):  # of the last transaction, which is cut off as a whole
                with self.subTest(writer=writer.__name__, cut=cut):
                    shutil.rmtree(self.data / "appendonlydir", ignore_errors=True)
                    with writer(self.data, *KEEPING) as server:
                        fill(server)
                    self.assertEqual(check(self.data)[0], 0)
                    whole = self.increment().read_bytes()
                    self.increment().write_bytes(whole[:-cut])
                    status, out, _ = check(self.data)
                    self.assertEqual(status, 1)
                    self.assertIn("truncated: it ends in the middle of a request or transaction", out)
                    self.assertIn(f"weir-check --fix {self.data}", out)
                    self.assertEqual(self.increment().read_bytes(), whole[:-cut])  # unchanged
                    self.repaired_starts_both()

    def repaired_starts_both(self):
        status, out, _ = check("--fix", self.data, answer="n\n")
        self.assertEqual(status, 1)
        self.assertIn("is as it was", out)
        before = self.increment().read_bytes()
        status, out, _ = check("--fix", "--yes", self.data)
        self.assertEqual(status, 0, out)
        after = self.increment().read_bytes()
        kept, = self.increment().parent.glob("*.cut-at-*")
        self.assertEqual(after + kept.read_bytes(), before)
        self.assertEqual(check(self.data)[0], 0)
        counts = []
        for reader in (weir, redis):
            copy = self.data / "copy"
            shutil.copytree(self.data / "appendonlydir", copy / "appendonlydir")
            with reader(copy, *KEEPING) as server:
                counts.append(server.call("DBSIZE", "SCARD set"))
            shutil.rmtree(copy)
        self.assertEqual(counts, [["20", "0"]] * 2)

    def test_agrees_with_rediss_own_programs(self):
        with redis(self.data, *KEEPING) as server:
            fill(server)
            server.call("SAVE")
        theirs = [["redis-check-rdb", self.data / "dump.rdb"],
                  ["redis-check-aof", self.data / "appendonlydir/appendonly.aof.manifest"]]
        for words in theirs:
            self.assertEqual(subprocess.run(words, capture_output=True).returncode, check(words[1])[0], words)
        for damaged in (self.data / "dump.rdb", self.increment()):
            damaged.write_bytes(damaged.read_bytes()[:-3])
        for words in theirs:
            self.assertEqual(subprocess.run(words, capture_output=True).returncode, 1, words)
            self.assertEqual(check(words[1])[0], 1, words)

    def test_a_log_that_a_server_has_open_is_not_cut(self):
        with weir(self.data, *KEEPING) as server:
            fill(server)
            with open(self.increment(), "ab") as log:
                log.write(b"*2\r\n$3\r\nDEL")
            status, _, said = check("--fix", "--yes", self.data)
            self.assertEqual(status, 1)
            self.assertIn("stop the server first", said)

    def test_says_what_it_found_as_json(self):
        with weir(self.data, *KEEPING) as server:
            fill(server)
            server.call("SAVE")
        self.increment().write_bytes(self.increment().read_bytes()[:-1])
        status, out, _ = check("--json", self.data)
        self.assertEqual(status, 1)
        found = json.loads(out)
        self.assertFalse(found["whole"])
        snapshot, log = (files["files"][-1] for files in found["sets"])
        self.assertEqual((snapshot["state"], snapshot["snapshot"]["keys"]), ("whole", 21))
        self.assertEqual((log["state"], log["log"]["can_be_cut"]), ("truncated", True))
        self.assertLess(log["log"]["whole_bytes"], log["size"])

    def test_what_cannot_be_repaired_is_left(self):
        (self.data / "dump.rdb").write_bytes(b"REDIS0010\xfa\x09redis")
        (self.data / "other").write_bytes(b"neither")
        for name, says in (("dump.rdb", "it ends too early"), ("other", "it begins neither as a snapshot")):
            status, out, _ = check("--fix", "--yes", self.data / name)
            self.assertEqual(status, 1)
            self.assertIn(says, out)
            self.assertIn("nothing of it can be cut", out)

    def test_wrong_usage_and_what_cannot_be_read_end_with_2(self):
        rows = [
            ([], "FILE|FOLDER is required"),
            (["--fxi", "a"], "unknown option --fxi; did you mean '--fix'?; see weir-check --help"),
            (["--yes", "a"], "--yes requires --fix"),
            (["--json", "--fix", "a"], "--fix excludes --json"),
            ([self.data / "none"], "No such file or directory"),
            ([self.data], "there is no snapshot, log or manifest in"),
            (["/dev/null"], "it is no file"),
        ]
        for words, says in rows:
            status, out, said = check(*words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertIn(says, said)
            self.assertTrue(said.startswith("weir-check: "), said)
        self.assertEqual(check("--help")[0], 0)
        self.assertRegex(check("--version")[1], r"^weir-check [0-9.]+\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
