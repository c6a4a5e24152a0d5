#!/usr/bin/env python3
"""Memory per key (used_memory), for several kinds of small values, in servers that speak Redis's protocol.

    bytes_a_key.py SERVER... [--keys N]

Each SERVER is a program (redis-server, bin/weir-server). For each kind of value the script starts it anew on a Unix
socket in its own folder, because a server may free the previous keys lazily. It makes N keys and prints a table with
a column for each server.
"""
import argparse
import os
import re
import socket
import subprocess
import tempfile
import time

SHAPES = {
    "string of 10": lambda key: [["SET", key, "0123456789"]],
    "hash of 5 fields": lambda key: [["HSET", key] + [w for i in range(5) for w in (f"field{i}", f"value{i}")]],
    "zset of 10": lambda key: [["ZADD", key] + [w for i in range(10) for w in (str(i), f"member{i}")]],
    "list of 10": lambda key: [["RPUSH", key] + [f"element{i}" for i in range(10)]],
    "set of 10 integers": lambda key: [["SADD", key] + [str(1000 + i) for i in range(10)]],
}


def request(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)


def used_memory(stream, replies):
    stream.sendall(request(["INFO", "memory"]))
    size = int(replies.readline()[1:])
    return int(re.search(rb"used_memory:(\d+)", replies.read(size + 2))[1])


def connected(path, server):
    stream = socket.socket(socket.AF_UNIX)
    for _ in range(200):
        try:
            stream.connect(path)
            return stream
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.05)
    raise SystemExit(f"{server.args[0]} does not serve {path}")


def measure(program, commands, keys):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        server = subprocess.Popen([program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            stream = connected(path, server)
            replies = stream.makefile("rb")
            before = used_memory(stream, replies)
            batch = 500
            for first in range(0, keys, batch):
                requests = [c for i in range(first, min(first + batch, keys)) for c in commands(f"key:{i:08}")]
                stream.sendall(b"".join(map(request, requests)))
                for _ in requests:
                    answer = replies.readline()
                    if answer.startswith(b"-"):
                        raise SystemExit(f"{program}: {answer.decode()}")
            return (used_memory(stream, replies) - before) / keys
        finally:
            server.terminate()
            server.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("servers", nargs="+", metavar="SERVER")
    arguments.add_argument("--keys", type=int, default=100_000)
    chosen = arguments.parse_args()
    print("| bytes a key | " + " | ".join(chosen.servers) + " |")
    print("|---|" + "---|" * len(chosen.servers))
    for shape, commands in SHAPES.items():
        figures = [measure(server, commands, chosen.keys) for server in chosen.servers]
        print(f"| {shape} | " + " | ".join(f"{figure:.0f}" for figure in figures) + " |", flush=True)


if __name__ == "__main__":
    main()
