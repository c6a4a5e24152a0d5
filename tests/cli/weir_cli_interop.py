#!/usr/bin/env python3
"""What weir-cli does where redis-cli is no reference: on weir-server, and on servers that answer oddly.

  weir_cli_interop.py WEIR_CLI WEIR_SERVER
"""
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

PROGRAM, SERVER = (os.path.abspath(name) for name in sys.argv[1:3])


def run(*arguments, text=""):
    return subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, text=True, timeout=30)


class OneAnswer:
    """A server that gives the same answer to everything on its one connection."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
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


def eventually(true, what, limit_s=20):
    deadline = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)  # polls, with a limit


class Terminal:
    """weir-cli on a pseudo terminal."""

    def __init__(self, *arguments):
        self.seen = b""
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ.update(TERM="dumb", COLUMNS="200", WEIRCLI_HISTFILE="/dev/null")
            os.execv(PROGRAM, [PROGRAM, *arguments])

    def until(self, text):
        """Reads up to `text` and forgets what was read."""
        deadline = time.monotonic() + 20
        while text not in self.seen:
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no {text!r} after {self.seen!r}")
            try:
                self.seen += os.read(self.terminal, 4096)
            except OSError:
                raise EOFError(f"weir-cli ended after {self.seen!r}") from None
        before, self.seen = self.seen.split(text, 1)
        return before

    def at_prompt(self):
        """Waits for a prompt and its editor: input typed before the editor has the terminal is lost."""
        self.until(b"> ")
        eventually(lambda: not termios.tcgetattr(self.terminal)[3] & termios.ICANON, "the line is not edited")

    def type(self, line):
        self.at_prompt()
        os.write(self.terminal, line.encode() + b"\r")

    def interrupt(self):
        """Presses Ctrl-C while a command runs, which is when the editor does not have the terminal."""
        eventually(lambda: termios.tcgetattr(self.terminal)[3] & termios.ICANON, "no command runs")
        self.seen = b""
        os.write(self.terminal, b"\x03")

    def status(self):
        """Returns the exit status after Ctrl-D at a prompt."""
        self.at_prompt()
        os.write(self.terminal, b"\x04")
        try:
            while os.read(self.terminal, 4096):
                pass
        except OSError:
            pass  # the terminal closes with its last user
        _, status = os.waitpid(self.child, 0)
        self.child = 0
        return os.waitstatus_to_exitcode(status)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        os.close(self.terminal)


class Interrupts(unittest.TestCase):
    """Ctrl-C while the server keeps the user waiting."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="weir-cli-")
        cls.socket = os.path.join(cls.directory, "s")
        cls.server = subprocess.Popen([SERVER, "--port", "0", "--unixsocket", cls.socket], cwd=cls.directory,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: run("-s", cls.socket, "PING").stdout == "PONG\n", "weir-server did not start")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        shutil.rmtree(cls.directory)

    def ask(self, *command):
        return run("-s", self.socket, *command).stdout.strip()

    def blocked(self):
        return "blocked_clients:1" in self.ask("INFO", "clients")

    def goes_on(self, terminal):
        """After a Ctrl-C: the shell is still there, connected, and exits normally."""
        terminal.type("ECHO still-here")
        terminal.until(b'"still-here"')
        self.assertEqual(terminal.status(), 0)

    def test_of_monitor_lead_to_the_prompt(self):
        with Terminal("-s", self.socket) as terminal:
            terminal.type("MONITOR")
            terminal.until(b"OK")
            self.ask("SET", "watched", "1")
            terminal.until(b'"watched"')
            terminal.interrupt()
            self.goes_on(terminal)

    def test_of_subscribe_lead_to_the_prompt_and_end_the_subscription(self):
        with Terminal("-s", self.socket) as terminal:
            terminal.type("SUBSCRIBE news")
            terminal.until(b"Reading messages")
            terminal.interrupt()
            self.goes_on(terminal)
        eventually(lambda: self.ask("PUBSUB", "NUMSUB", "news").endswith("0"), "still subscribed")

    def test_of_a_blocking_command_take_it_back(self):
        with Terminal("-s", self.socket) as terminal:
            terminal.type("BLPOP queue 0")
            eventually(self.blocked, "BLPOP does not block")
            terminal.interrupt()
            terminal.type("RPUSH queue kept")
            terminal.until(b"(integer) 1")
            self.goes_on(terminal)
        self.assertEqual(self.ask("LRANGE", "queue", "0", "-1"), "kept")

    def test_of_a_repeated_command_end_the_repetition(self):
        with Terminal("-s", self.socket) as terminal:
            terminal.type("1000000000 INCR rounds")
            terminal.until(b"(integer) 3")
            terminal.interrupt()
            self.goes_on(terminal)

    def test_at_the_prompt_leave(self):
        with Terminal("-s", self.socket) as terminal:
            terminal.at_prompt()
            os.write(terminal.terminal, b"\x03")
            with self.assertRaises(EOFError):
                terminal.until(b"nothing prints this")


class FullDisk(unittest.TestCase):
    """A program that would print forever reports that nothing arrives, and exits."""

    def test_ends_what_has_no_end(self):
        answers = {b"+OK\r\n": ["MONITOR"], b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n": ["SUBSCRIBE", "a"],
                   b"+PONG\r\n": ["-r", "-1", "PING"], b"$0\r\n\r\n": ["--stat"]}
        for answer, arguments in answers.items():
            with self.subTest(arguments), OneAnswer(answer) as server, open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, "-p", server.port, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, text=True, timeout=30)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr, "weir-cli: cannot write to standard output: No space left on device\n")


class KeySearch(unittest.TestCase):
    """--bigkeys, --memkeys, --hotkeys: the summaries. What is found on the way depends on SCAN's order."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="weir-cli-")
        cls.socket = os.path.join(cls.directory, "s")
        cls.server = subprocess.Popen([SERVER, "--port", "0", "--unixsocket", cls.socket], cwd=cls.directory,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: run("-s", cls.socket, "PING").stdout == "PONG\n", "weir-server did not start")
        many = [f"SET key{i} v" for i in range(100)]
        cls.ask("".join(line + "\n" for line in [
            # Each use counts, and none decays.
            "CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0", *many, "SET 'long one' " + "x" * 5000, "RPUSH list a b c",
            "HSET wide f " + "y" * 9000, "HSET many a 1 b 2", "SADD set a", *(["GET key7"] * 50), *(["GET key8"] * 10)]))

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        shutil.rmtree(cls.directory)

    @classmethod
    def ask(cls, lines):
        return run("-s", cls.socket, text=lines)

    def summary(self, *options):
        done = run("-s", self.socket, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = done.stdout.split("-------- summary -------")[1]
        self.assertIn("Sampled 105 keys in the keyspace!", found)
        return found

    def test_by_elements(self):
        found = self.summary("--bigkeys")
        self.assertIn("""Biggest string found '"long one"' has 5000 bytes\n""", found)
        self.assertIn("""Biggest   hash found '"many"' has 2 fields\n""", found)
        self.assertIn("101 strings with 5100 bytes (96.19% of keys, avg size 50.50)\n", found)
        self.assertIn("0 zsets with 0 members (0.00% of keys, avg size 0.00)\n", found)

    def test_by_memory(self):
        for options in (["--memkeys"], ["--memkeys-samples", "0"], ["--count", "1000", "--memkeys"]):
            found = self.summary(*options)
            self.assertRegex(found, """Biggest string found '"long one"' has 5[0-9]{3} bytes\n""")
            self.assertRegex(found, """Biggest   hash found '"wide"' has (9|10)[0-9]{3} bytes\n""")

    def test_by_use(self):
        found = self.summary("--hotkeys").splitlines()
        hot = [line for line in found if line.startswith("hot key found")]
        self.assertEqual(len(hot), 16)
        self.assertRegex(hot[0], "^hot key found with counter: [0-9]+\tkeyname: \"key7\"$")
        self.assertTrue(hot[1].endswith("keyname: \"key8\""), hot[1])
        counters = [int(line.split()[5]) for line in hot]
        self.assertEqual(counters, sorted(counters, reverse=True))

    def test_by_use_says_that_nobody_counts_it(self):
        self.ask("CONFIG SET maxmemory-policy noeviction\n")
        done = run("-s", self.socket, "--hotkeys")
        self.ask("CONFIG SET maxmemory-policy allkeys-lfu\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Error: ERR An LFU maxmemory policy is not selected", done.stderr)


class OnAServer(unittest.TestCase):
    """A server on a unix socket in a directory of its own."""
    command = [SERVER]

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="weir-cli-")
        cls.socket = os.path.join(cls.directory, "s")
        cls.server = subprocess.Popen([*cls.command, "--port", "0", "--unixsocket", cls.socket], cwd=cls.directory,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: cls.ask("PING") == "PONG", f"{cls.command[0]} did not start")

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.server.wait()
        shutil.rmtree(cls.directory)

    @classmethod
    def ask(cls, *command, text=""):
        return run("-s", cls.socket, *command, text=text).stdout.strip()

    def path(self, name, text=None):
        path = os.path.join(self.directory, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path


class ServerAsPrimary(OnAServer):
    def keys_in(self, folder):
        """What a new server finds in the snapshot there."""
        socket_path = os.path.join(folder, "s")
        with subprocess.Popen([SERVER, "--port", "0", "--unixsocket", socket_path, "--dir", folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            eventually(lambda: run("-s", socket_path, "PING").stdout == "PONG\n", "no server of the snapshot")
            found = (run("-s", socket_path, "--raw", "KEYS", "*").stdout.split(),
                     run("-s", socket_path, "--raw", "FUNCTION", "LIST").stdout.split()[1:2])
            server.kill()
        return found

    def test_writes_its_snapshot_to_a_file(self):
        self.ask("FLUSHALL")
        self.ask("MSET", "a", "1", "b", "2")
        self.ask("-x", "FUNCTION", "LOAD", "REPLACE", text="#!lua name=lib\nredis.register_function('f', function() return 1 end)")
        for options, keys in ((["--rdb"], ["a", "b"]), (["--functions-rdb"], [])):
            folder = tempfile.mkdtemp(dir=self.directory)
            done = run("-s", self.socket, *options, os.path.join(folder, "dump.rdb"))
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            found, libraries = self.keys_in(folder)
            self.assertEqual((sorted(found), libraries), (keys, ["lib"]), options)

    def test_writes_its_snapshot_to_standard_output(self):
        done = subprocess.run([PROGRAM, "-s", self.socket, "--rdb", "-"], capture_output=True, timeout=30, check=True)
        self.assertEqual((done.stdout[:5], done.stdout[-9:-8]), (b"REDIS", b"\xff"))

    def test_leaves_a_file_alone_if_the_server_refuses(self):
        kept = self.path("kept", "precious")
        self.ask("ACL", "SETUSER", "weak", "on", ">pw", "+ping", "+auth")
        done = run("-s", self.socket, "--user", "weak", "-a", "pw", "--rdb", kept)
        self.assertEqual(done.returncode, 1)
        with open(kept, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")

    def test_shows_what_it_sends_its_replicas(self):
        with subprocess.Popen([PROGRAM, "-s", self.socket, "--replica"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            eventually(lambda: "state=online" in self.ask("INFO", "replication"), "it does not follow")
            self.ask("SET", "c", "\"3\"")
            seen = b""
            while b"SET" not in seen.replace(b"SELECT", b""):
                seen += child.stdout.readline()
            child.kill()
        self.assertIn(b'"SET","c","\\"3\\""\n', seen)


class Debugger(OnAServer):
    """Of redis-server: weir-server has none."""
    command = ["redis-server", "--save", ""]

    def debug(self, *options, lines):
        script = self.path("script.lua", "local a = redis.call('incr', KEYS[1])\nreturn a + ARGV[1]\n")
        return run("-s", self.socket, *options, "--eval", script, "n", ",", "10", text="\n".join(lines) + "\n")

    def test_goes_through_a_script_and_undoes_it(self):
        done = self.debug("--ldb", lines=["step", "print a", "eval return 6 * 7", "continue"])
        for part in ("Lua debugging session started", "Stopped at 1", "Stopped at 2", "<value> 1", "<retval> 42", "rolled back", "11"):
            self.assertIn(part, done.stdout)
        self.assertEqual((done.returncode, self.ask("GET", "n")), (0, ""))

    def test_keeps_changes_in_sync_mode(self):
        self.assertIn("11", self.debug("--ldb-sync-mode", lines=["continue"]).stdout)
        self.assertEqual(self.ask("GET", "n"), "1")
        self.ask("DEL", "n")

    def test_begins_anew_and_can_be_left(self):
        done = self.debug("--ldb", lines=["restart", "quit"])
        self.assertEqual((done.returncode, done.stdout.count("Stopped at 1")), (0, 2))

    def test_is_reported_where_there_is_none(self):
        directory = tempfile.mkdtemp(dir=self.directory)
        path = os.path.join(directory, "s")
        with subprocess.Popen([SERVER, "--port", "0", "--unixsocket", path], cwd=directory, stdout=subprocess.DEVNULL) as server:
            eventually(lambda: run("-s", path, "PING").stdout == "PONG\n", "weir-server did not start")
            done = run("-s", path, "--ldb", "--eval", self.path("one.lua", "return 1"))
            server.kill()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertNotEqual(done.stderr, "")


class Latencies(OnAServer):
    def test_of_the_server_are_printed_again_and_again(self):
        for options, pattern in ((["--latency-history", "-i", "0.05", "--raw"], rb"^[\d.]+ [\d.]+ [\d.]+ \d+\n$"),
                                 (["--latency-dist", "-i", "0.05"], rb"\x1b\[48;5;\d+m\?\x1b\[0m\n$"),
                                 (["--lru-test", "1000"], rb"^\d+ Gets/sec \| Hits: \d+ \([\d.]+%\) \| Misses: \d+ \([\d.]+%\)\n$")):
            with subprocess.Popen([PROGRAM, "-s", self.socket, *options], stdout=subprocess.PIPE) as child:
                line = b""
                for _ in range(20):
                    line = child.stdout.readline()
                    if re.search(pattern, line):
                        break
                child.kill()
            self.assertRegex(line, pattern, options)

    def test_of_the_machine_ask_no_server(self):
        done = run("-p", "1", "--intrinsic-latency", "0.1")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"Max latency so far: \d+ microseconds\.\n(.*\n)*\n\d+ total runs \(avg latency: [\d.]+ micro")


class Redirections(unittest.TestCase):
    # weir_cli_cluster_interop.py tests those that are followed.
    def test_are_shown_and_not_followed_unless_asked(self):
        for answer in (b"-MOVED 12182 127.0.0.1:1\r\n", b"-ASK 12182 127.0.0.1:1\r\n"):
            with OneAnswer(answer) as server:
                done = run("-p", server.port, "GET", "foo")
            self.assertEqual(done.stdout.strip(), answer[1:].decode().strip())
            self.assertEqual(done.stderr, "")

    def test_to_a_node_that_is_not_there_are_an_error(self):
        for answer in (b"-MOVED 12182 127.0.0.1:1\r\n", b"-ASK 12182 127.0.0.1:1\r\n"):
            with OneAnswer(answer) as server:
                done = run("-p", server.port, "-c", "GET", "foo")
            self.assertEqual(done.returncode, 1)
            self.assertIn("127.0.0.1:1", done.stderr)

    def test_are_a_word_only_where_one_comes(self):
        for arguments, answer in ((["-c"], b"+OK\r\n"), (["-c"], b"-ERR no\r\n"), ([], b"-MOVED 1 h:1\r\n")):
            with OneAnswer(answer) as server:
                self.assertEqual(run("-p", server.port, *arguments, "GET", "foo").stderr, "")


class Options(unittest.TestCase):
    def test_that_contradict_each_other_are_refused(self):
        for option in ("--rdma", "--tls"):
            done = run(option, "-s", "/nonexistent", "PING")
            self.assertEqual(done.returncode, 1)
            self.assertIn(option + " and a unix socket", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
