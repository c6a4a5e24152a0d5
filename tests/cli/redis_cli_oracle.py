#!/usr/bin/env python3
"""weir-cli prints what redis-cli prints, and exits as it does.

Both run the same commands in the same order, each against a fresh server of the same kind; standard output and exit
status have to be equal, byte for byte. Servers listen on unix sockets in a temporary directory, so no port is needed.

  redis_cli_oracle.py WEIR_CLI [SERVER ARG...]     SERVER: redis-server unless told
"""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

# Replies of every type, shape and depth. {types} cases need DEBUG PROTOCOL, which only redis-server has.
COMMANDS = [
    ["PING"], ["PING", "hello world"], ["ECHO", "a\"b\\c\n\r\t\a\b\x01\x7f"], ["ECHO", "h\u00e9 \u4f60"],
    ["SET", "k", "v"], ["GET", "k"], ["GET", "none"], ["INCR", "n"], ["INCR", "k"], ["STRLEN", "k"],
    ["NOSUCH", "x"], ["GET"], ["SET", "k"],
    ["RPUSH", "l", *[str(i) for i in range(12)]], ["LRANGE", "l", "0", "-1"], ["LRANGE", "l", "0", "8"],
    ["LRANGE", "none", "0", "-1"], ["LPOP", "l", "2"],
    ["HSET", "h", *[x for i in range(11) for x in (f"field{i}", f"value {i}")]], ["HGETALL", "h"], ["HGETALL", "none"],
    ["HSET", "h9", *[x for i in range(9) for x in (f"f{i}", f"v{i}")]], ["HGETALL", "h9"],
    ["HMGET", "h", "field1", "nope"],
    ["SADD", "s", "one"], ["SMEMBERS", "s"], ["SMEMBERS", "none"],
    ["ZADD", "z", "1.5", "a", "2", "b", "inf", "c"], ["ZRANGE", "z", "0", "-1", "WITHSCORES"], ["ZSCORE", "z", "a"],
    ["ZINCRBY", "z", "1e20", "b"],
    ["TYPE", "z"], ["EXISTS", "k", "none"], ["TTL", "k"], ["SCAN", "0", "MATCH", "k", "COUNT", "100"],
    ["CONFIG", "GET", "maxmemory"], ["CLIENT", "GETNAME"], ["COMMAND", "COUNT", "extra"],
    ["INFO", "nosuch"], ["INFO", "keyspace"], ["CLIENT", "LIST", "TYPE", "nosuch"], ["CLIENT", "LIST", "TYPE", "replica"],
    ["OBJECT", "ENCODING", "k"], ["MGET", "k", "none", "l"], ["COMMAND", "INFO", "get", "nosuch"], ["COMMAND", "DOCS", "set", "append"],
]
REDIS_ONLY = [["DEBUG", "PROTOCOL", kind] for kind in
              ("string", "integer", "double", "null", "array", "set", "map", "verbatim", "true", "false")]
WAYS = [[], ["--no-raw"], ["--raw"], ["--csv"], ["--json"], ["--quoted-json"], ["-3"], ["-3", "--no-raw"],
        ["-3", "--csv"], ["-2", "--json"], ["-e"], ["--no-raw", "-r", "2"], ["-d", "|"], ["-D", "#"]]

# Whole runs: options, arguments, standard input.
RUNS = [
    ("lines of standard input", ["--no-raw"], "SET a 1\n\nGET a\nINCR a\nbad \"quote\nLRANGE none 0 -1\n"),
    ("a transaction", ["--no-raw"], "MULTI\nSET t 1\nINCR t\nEXEC\nMULTI\nDISCARD\nMULTI\nNOSUCH\nEXEC\n"),
    ("quotes and escapes", [], "SET q \"a\\x41\\n\\\"\"\nGET q\nSET r 'it\\'s'\nGET r\n"),
    ("quoted output", ["--no-raw"], "SET q \"a\\x00\\xff\\n\\\"\"\nGET q\n"),
    ("repeat by number", [], "3 PING\n"),
    ("a local command first", [], "clear\nPING\n"),
    ("last argument from standard input", ["-x", "SET", "x"], "from a file\n"),
    ("tagged argument from standard input", ["-X", "TAG", "SET", "TAG", "1"], "some key"),
    ("a tag that no argument is", ["-X", "TAG", "SET", "untagged", "1"], "some key"),
    ("two uses of standard input", ["-x", "-X", "TAG", "SET", "TAG"], "some key"),
    ("what they stored", ["MGET", "x", "some key"], ""),
    ("quoted arguments", ["--quoted-input", "ECHO", "\"\\x41b\""], ""),
    ("a quote that is not closed", ["--quoted-input", "SET", "\"open"], ""),
    ("a quoted argument of two words", ["--quoted-input", "SET", "\"a\" \"b\""], ""),
    ("another database", ["-n", "3", "SET", "in3", "1"], ""),
    ("keys there", ["-n", "3", "KEYS", "*"], ""),
    ("database that is not", ["-n", "99", "PING"], ""),
    ("repeat with an error", ["-e", "-r", "3", "NOSUCH"], ""),
    ("pipe", ["--pipe"], "SET p 1\r\n*3\r\n$3\r\nSET\r\n$1\r\np\r\n$1\r\n2\r\nNOSUCH\r\n"),
    ("pipe without errors", ["--pipe"], "PING\r\nPING\r\n"),
    ("scan", ["-n", "3", "--scan"], ""),
    ("scan with a pattern", ["-n", "3", "--scan", "--pattern", "in*"], ""),
    ("scan with a quoted pattern", ["-n", "3", "--scan", "--quoted-pattern", "\"i\\x6e*\""], ""),
    ("scan with an open quote", ["--scan", "--quoted-pattern", "\"i"], ""),
    ("scan with a refused login", ["--no-auth-warning", "-a", "word", "--scan"], ""),
    ("biggest keys with a refused login", ["-a", "word", "--bigkeys"], ""),
    ("an option without its value", ["-X"], ""),
    ("scan quoted", ["-n", "3", "--no-raw", "--scan"], ""),
    ("a script in a file", ["--eval", "{script}", "k1", "k2", ",", "a1", "a b"], ""),
    ("a script without arguments", ["--no-raw", "--eval", "{script}", "k1"], ""),
    ("a script that fails", ["--eval", "{failing}"], ""),
    ("a script that is not there", ["--eval", "/nonexistent/script.lua"], ""),
    ("a verbose command", ["--verbose", "PING"], ""),
    ("a password nobody asked for", ["--no-auth-warning", "-a", "word", "PING"], ""),
]
SCRIPTS = {"{script}": "return {KEYS[1], KEYS[2] or 'none', #KEYS, #ARGV, ARGV[2] or 'none'}\n",
           "{failing}": "return redis.call('nosuch')"}
NOBODY_THERE = [["PING"], ["-r", "2", "PING"], ["--scan"]]


class Server:
    def __init__(self, command, directory):
        self.socket = os.path.join(directory, "s")
        os.makedirs(directory, exist_ok=True)
        self.log = open(os.path.join(directory, "log"), "w+")
        self.process = subprocess.Popen([*command, "--port", "0", "--unixsocket", self.socket], cwd=directory,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while subprocess.run(["redis-cli", "-s", self.socket, "PING"], capture_output=True).stdout != b"PONG\n":
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                sys.exit(f"{command} did not start:\n{self.log.read()}")
            time.sleep(0.02)  # polls for readiness, with a limit

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run(program, server, arguments, text="", **variables):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **variables}
    done = subprocess.run([program, "-s", server, *arguments], input=text.encode(), capture_output=True, timeout=30,
                          env=environment)
    return done.stdout, done.returncode


def while_subscribed(program, server, options):
    """Returns what SUBSCRIBE prints while two messages are published."""
    child = subprocess.Popen([program, "-s", server, *options, "SUBSCRIBE", "one", "two"], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while b"1" not in run("redis-cli", server, ["PUBSUB", "NUMSUB", "two"])[0]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{program} did not subscribe")
        time.sleep(0.02)  # polls for readiness, with a limit
    for message in ("hello \"you\"", "last-message"):
        run("redis-cli", server, ["PUBLISH", "one", message])
    seen = b""
    while b"last-message" not in seen and select.select([child.stdout], [], [], 10)[0]:
        seen += os.read(child.stdout.fileno(), 4096)
    child.terminate()
    child.wait()
    return seen + child.stdout.read()


PROMPT = re.compile(rb"(^|\n)[^\r\n]*> $")  # fresh: a redrawn one follows a carriage return


def on_terminal(program, server, keys):
    """Returns what a terminal shows after typing `keys`, a list of lines, and Ctrl-D."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", COLUMNS="200", HOME="/nonexistent", WEIRCLI_HISTFILE="/dev/null",
                          REDISCLI_HISTFILE="/dev/null")
        os.execvp(program, [program, "-s", server])
    seen = b""
    deadline = time.monotonic() + 30

    def read_more():
        nonlocal seen
        if not select.select([terminal], [], [], deadline - time.monotonic())[0]:
            os.kill(child, signal.SIGKILL)
            raise TimeoutError(f"{program} on a terminal stopped after {seen!r}")
        try:
            block = os.read(terminal, 4096)
        except OSError:
            block = b""  # the terminal closes with its last user
        seen += block
        return block

    for line in [*keys, None]:
        start = len(seen)
        while not PROMPT.search(seen[start:]):
            if not read_more():
                break
        # libedit prints the prompt before it takes the terminal over, and a Ctrl-D typed between is lost.
        # (redis-cli leaves a dumb terminal as it is.)
        edits = os.path.basename(program) == "weir-cli"
        while edits and termios.tcgetattr(terminal)[3] & termios.ICANON and time.monotonic() < deadline:
            time.sleep(0.005)
        os.write(terminal, b"\x04" if line is None else line.encode() + b"\r")
    while read_more():
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    return seen


def replies_of(screen, prompt_end):
    """Returns the lines that are neither prompts nor input typed at them."""
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r", b"", screen)
    return [line for line in text.split(b"\n") if line and prompt_end not in line]


def main():
    weir_cli = os.path.abspath(sys.argv[1])
    server_command = sys.argv[2:] or ["redis-server", "--save", "", "--enable-debug-command", "yes"]
    is_redis = os.path.basename(server_command[0]) == "redis-server"
    failures = compared = 0
    directory = tempfile.mkdtemp(prefix="weir-oracle-")
    servers = [Server(server_command, os.path.join(directory, name)) for name in ("redis-cli", "weir-cli")]
    programs = ["redis-cli", weir_cli]

    def compare(what, arguments, text="", **variables):
        nonlocal failures, compared
        compared += 1
        expected, actual = (run(p, s.socket, arguments, text, **variables) for p, s in zip(programs, servers))
        if expected == actual:
            return
        failures += 1
        print(f"DIFFERS: {what}: {arguments}\n  redis-cli {expected[1]}: {expected[0]!r}\n  "
              f"weir-cli  {actual[1]}: {actual[0]!r}")

    for name, text in SCRIPTS.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    try:
        for way in WAYS:
            for command in COMMANDS + (REDIS_ONLY if is_redis else []):
                compare(" ".join(way) or "plain", [*way, *command])
        for what, arguments, text in RUNS:
            arguments = [os.path.join(directory, word) if word in SCRIPTS else word for word in arguments]
            compare(what, arguments, text)
            compare(what + ", with FAKETTY", arguments, text, FAKETTY="")
        for command in COMMANDS:
            compare("with FAKETTY", command, FAKETTY="1")
        dialogue = ["SET a 1", "SELECT 2", "MULTI", "INCR a", "EXEC", "LRANGE nothing 0 -1", "HELLO 3", "HGETALL nothing",
                    "AUTH bad", "nosuch", "SELECT 0"]
        screens = [replies_of(on_terminal(p, s.socket, dialogue), b"> ") for p, s in zip(programs, servers)]
        compared += 1
        if screens[0] != screens[1]:
            failures += 1
            print(f"DIFFERS: dialogue on a terminal\n  redis-cli: {screens[0]!r}\n  weir-cli:  {screens[1]!r}")
        for options in ([], ["--no-raw"], ["--csv"], ["-3", "--no-raw"], ["-3", "--json"]):
            compared += 1
            streams = [while_subscribed(p, s.socket, options) for p, s in zip(programs, servers)]
            if streams[0] != streams[1]:
                failures += 1
                print(f"DIFFERS: SUBSCRIBE {options}\n  redis-cli: {streams[0]!r}\n  weir-cli:  {streams[1]!r}")
        for server in servers:
            server.stop()
        for arguments in NOBODY_THERE:
            compare("nobody listens", arguments)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{compared} comparisons, {failures} differences")
    return 1 if failures or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
