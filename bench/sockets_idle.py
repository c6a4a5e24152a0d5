#!/usr/bin/env python3
"""What idle TCP connections cost under `weir run --sockets`: memory for each side, and how often the two processes wake.

usage: bench/sockets_idle.py [--build build/release] [--connections N] [--seconds S]

A server and a client, each with one thread, hold N connections on loopback, or as many as the limit of descriptors allows.
They do so three times: with plain TCP; under Weir without a byte; and under Weir after 60 requests and replies on each
connection, so that it changed. All connections get their first request before any gets its second, so that there is time to agree
between two requests on a connection. Prints how much more proportional memory (Pss) both processes use than with plain TCP, for
each connection and side; how many connections changed; and both processes' context switches in S seconds without traffic.
"""
import argparse
import os
import pathlib
import re
import resource
import select
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TURNS, BATCH, SPARE = 60, 64, 400
MESSAGE = b"an idle connection asks"


def serve():
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    events = select.epoll()
    events.register(listener, select.EPOLLIN)
    connections = {}
    while True:
        for fd, _ in events.poll():
            if fd == listener.fileno():
                connection = listener.accept()[0]
                connections[connection.fileno()] = connection
                events.register(connection, select.EPOLLIN)
            elif bytes_there := connections[fd].recv(4096):
                connections[fd].sendall(bytes_there)
            else:
                return


def call(port, count, turns):
    connections = []
    for _ in range(count):
        connections.append(socket.create_connection(("127.0.0.1", port)))
        connections[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(turns):
        for first in range(0, count, BATCH):
            for connection in connections[first:first + BATCH]:
                connection.sendall(MESSAGE)
            for connection in connections[first:first + BATCH]:
                assert connection.recv(4096) == MESSAGE
    print("idle", flush=True)
    sys.stdin.read()


def pss_kib(pid):
    return int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])


def switches(pid):
    return sum(int(number) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
               for number in re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text()))


def measure(prefix, count, turns, seconds, environment):
    """Returns the KiB of both, the number of ends that changed, and the context switches while idle."""
    program = [*prefix, sys.executable, __file__]
    server = subprocess.Popen([*program, "--serve"], stdout=subprocess.PIPE, env=environment, text=True)
    port = server.stdout.readline().strip()
    client = subprocess.Popen([*program, "--call", port, str(count), str(turns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=environment, text=True)
    if client.stdout.readline() != "idle\n":
        sys.exit("the client failed")
    time.sleep(3)  # until the ends have agreed
    changed = 0
    if prefix:
        listed = subprocess.run([prefix[0], "sockets", "--json"], capture_output=True, text=True, env=environment, check=True).stdout
        changed = listed.count('"sends_by_rdma": true') or listed.count('"sends_by_rdma":true')
    pids = [server.pid, client.pid]
    before = sum(map(switches, pids))
    time.sleep(seconds)
    woken = sum(map(switches, pids)) - before
    kib = sum(map(pss_kib, pids))
    client.communicate()
    server.kill()
    server.wait()
    return kib, changed, woken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(arguments.connections, hard - SPARE)
    with tempfile.TemporaryDirectory(prefix="weir-bench-", dir="/dev/shm") as runtime:
        environment = {**os.environ, "WEIR_RUNTIME_DIR": runtime, "WEIR_SOCKETS_SLEEPERS": "ring"}
        weir = [str(arguments.build / "bin/weir"), "run", "--sockets", "--"]
        print("| connections | ends that send by RDMA | KiB a side and connection, above TCP | context switches in "
              f"{arguments.seconds:g} s |\n|---|---|---|---|", flush=True)
        for what, prefix, turns in (("plain TCP", [], 0), ("without a byte", weir, 0), ("changed", weir, TURNS)):
            kib, changed, woken = measure(prefix, count, turns, arguments.seconds, environment)
            if not prefix:
                plain = kib
            print(f"| {count:,}, {what} | {changed:,} | {(kib - plain) / 2 / count:.1f} | {woken} |", flush=True)


if sys.argv[1:2] == ["--serve"]:
    serve()
elif sys.argv[1:2] == ["--call"]:
    call(*map(int, sys.argv[2:]))
else:
    main()
