#!/usr/bin/env python3
"""How long a key-value server blocks all clients while it removes a lot, grows a table, or reaches a memory limit.

usage: bench/stalls.py [--build build/release] [--repeat N]

Runs weir-server and Debian's redis-server alternately over TCP, each pinned to CPU 0 and restarted for each repetition, and
prints a table with the medians.
"""
import argparse
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMBERS = 2_000_000
EXPIRING = 300_000
GROWTH = 3_000_000
FRAGMENTS = 1_000_000


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.replies = self.socket.makefile("rb")

    @staticmethod
    def encode(*words):
        texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)

    def pipeline(self, requests):
        """Sends requests whose replies are one line each, and returns the last line."""
        self.socket.sendall(b"".join(self.encode(*words) for words in requests))
        line = b""
        for _ in requests:
            line = self.replies.readline()
        if line.startswith(b"-"):
            sys.exit("the server refuses: " + line.decode().strip())
        return line.strip()

    def call(self, *words):
        return self.pipeline([words])

    def timed_ms(self, *words):
        begin = time.perf_counter()
        self.call(*words)
        return (time.perf_counter() - begin) * 1000


def batches(count, size):
    return (range(first, min(first + size, count)) for first in range(0, count, size))


def make_set(client, key):
    for batch in batches(MEMBERS, 1000):
        client.call("SADD", key, *(b"member:%d" % i for i in batch))


def removal(client, *words):
    make_set(client, "s")
    return client.timed_ms(*words)


def expiry(client):
    at_ms = int(time.time() * 1000) + 4000
    for batch in batches(EXPIRING, 1000):
        client.pipeline([("SET", b"e:%d" % i, "x", "PXAT", at_ms) for i in batch])
    while time.time() * 1000 < at_ms:
        time.sleep(0.01)
    begin = time.perf_counter()
    while client.call("DBSIZE") != b":0":
        time.sleep(0.01)
    return (time.perf_counter() - begin) * 1000


def growth(client):
    """Returns the longest time of 100 SETs, after two large sets of small blocks were freed."""
    for key in ("s", "t"):
        make_set(client, key)
    client.call("FLUSHALL", "SYNC")
    worst = 0.0
    for batch in batches(GROWTH, 100):
        begin = time.perf_counter()
        client.pipeline([("SET", b"g:%d" % i, "x") for i in batch])
        worst = max(worst, time.perf_counter() - begin)
    return worst * 1000


def limit(client):
    """Returns microseconds for each SET, 100 in a pipeline, with maxmemory set and every second of a million keys deleted."""
    for batch in batches(FRAGMENTS, 1000):
        client.pipeline([("SET", b"f:%d" % i, b"x" * 60) for i in batch])
    for batch in batches(FRAGMENTS, 1000):
        client.pipeline([("DEL", b"f:%d" % i) for i in batch if i % 2])
    client.call("CONFIG", "SET", "maxmemory", "100gb")
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < 1:
        client.pipeline([("SET", b"n:%d" % i, "x") for i in range(100)])
        count += 100
    return (time.perf_counter() - begin) * 1e6 / count


ROWS = [
    ("DEL of a set of 2,000,000, ms", lambda client: removal(client, "DEL", "s")),
    ("UNLINK of it, ms", lambda client: removal(client, "UNLINK", "s")),
    ("FLUSHALL ASYNC, ms", lambda client: removal(client, "FLUSHALL", "ASYNC")),
    ("SET over it, ms", lambda client: removal(client, "SET", "s", "x")),
    ("300,000 keys that expire together are gone after, ms", expiry),
    ("the slowest 100 SETs of 3,000,000, ms", growth),
    ("a SET under maxmemory beside 500,000 holes, us", limit),
]


def measure(command, row):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        server = subprocess.Popen(["taskset", "-c", "0", *command, "--port", "0", "--unixsocket", path, "--save", ""],
                                  stdout=subprocess.DEVNULL)
        try:
            while True:
                try:
                    client = Client(path)
                    break
                except OSError:
                    if server.poll() is not None:
                        sys.exit(command[0] + " ended")
                    time.sleep(0.01)
            return row(client)
        finally:
            server.kill()
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", nargs="*", default=[str(ROOT / "build/release")],
                        help="build directories of weir-server; several are measured in turn")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    servers = {}
    if shutil.which("redis-server"):
        servers["redis-server"] = ["redis-server"]
    for build in options.build:
        name = "weir-server" if len(options.build) == 1 else "weir-server of " + build
        servers[name] = [os.path.join(build, "bin/weir-server")]
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    print("| | " + " | ".join(servers) + " |")
    print("|---" * (len(servers) + 1) + "|")
    for title, row in ROWS:
        times = {name: [] for name in servers}
        for _ in range(options.repeat):
            for name, command in servers.items():
                times[name].append(measure(command, row))
        print("| " + title + " | " + " | ".join(f"{statistics.median(each):.3g}" for each in times.values()) + " |",
              flush=True)


if __name__ == "__main__":
    main()
