#!/usr/bin/env python3
"""What `weir run --sockets --sockets-peers` does for programs on two hosts: unmodified redis-server with redis-benchmark, and
iperf3, over TCP and after the change to RDMA, between two network namespaces joined by a wire (veth).

usage: bench/sockets_between_hosts.py [--build build/release] [--repeat N] [--requests N] [--seconds N]

The servers are pinned to CPU 0, the clients to CPU 1. Each row alternates between the two, --repeat times, and shows the
lowest and the highest result of each and the ratio of the medians.
"""
import argparse
import csv
import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import two_namespaces  # noqa: E402

HOST = two_namespaces.ADDRESSES["ipv4"]["server"]
REDIS_PORT, IPERF_PORT = 7000, 7001
READY_S = 20


class Carrier:
    """One way to run programs: unmodified, or under Weir."""

    def __init__(self, namespaces, prefix, environment, shift):
        self.namespaces, self.prefix, self.environment, self.shift = namespaces, prefix, environment, shift
        self.servers = []

    def words(self, end, command):
        return [*self.namespaces.enter(end), "taskset", "-c", "0" if end == "server" else "1", *self.prefix, *command]

    def start(self, command, port):
        self.servers.append(subprocess.Popen(self.words("server", command), stdout=subprocess.DEVNULL, env=self.environment))
        deadline = time.monotonic() + READY_S
        asks = [*self.namespaces.enter("server"), "ss", "-Hltn", f"sport = :{port}"]
        while not subprocess.run(asks, capture_output=True, check=True).stdout.strip():
            if time.monotonic() > deadline:
                sys.exit(f"{command[0]} does not listen")
            time.sleep(0.02)

    def start_servers(self):
        self.start(["redis-server", "--port", str(REDIS_PORT + self.shift), "--bind", HOST, "--protected-mode", "no", "--save", ""],
                   REDIS_PORT + self.shift)
        self.start(["iperf3", "-s", "-p", str(IPERF_PORT + self.shift)], IPERF_PORT + self.shift)

    def client(self, command):
        return subprocess.run(self.words("client", command), capture_output=True, text=True, env=self.environment, check=True).stdout

    def redis(self, options, requests):
        """Returns the requests a second of GET."""
        text = self.client(["redis-benchmark", "-h", HOST, "-p", str(REDIS_PORT + self.shift), "-t", "get", "--csv", "-n", str(requests), *options])
        return float(next(csv.DictReader(io.StringIO(text[re.search('^"test"', text, re.M).start():])))["rps"])

    def stream(self, seconds):
        """Returns the bits a second of one stream."""
        text = self.client(["iperf3", "-c", HOST, "-p", str(IPERF_PORT + self.shift), "-t", str(seconds), "-J"])
        return json.loads(text)["end"]["sum_received"]["bits_per_second"]

    def end(self):
        for server in self.servers:
            server.terminate()
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=3)
    arguments = parser.parse_args()
    namespaces = two_namespaces.TwoNamespaces()
    try:
        with tempfile.TemporaryDirectory(prefix="weir-bench-", dir="/dev/shm") as runtime:
            environment = {**os.environ, "WEIR_RUNTIME_DIR": runtime}
            launcher = [str(arguments.build / "bin/weir"), "run", "--sockets", "--sockets-peers", "10.77.0.0/24", "--"]
            carriers = [Carrier(namespaces, [], environment, 0), Carrier(namespaces, launcher, environment, 10)]
            for carrier in carriers:
                carrier.start_servers()
            rows = [("redis-benchmark GET, 1 connection, requests/s", lambda it: it.redis(["-c", "1"], arguments.requests // 2)),
                    ("redis-benchmark GET, 50 connections, requests/s", lambda it: it.redis(["-c", "50"], arguments.requests)),
                    ("redis-benchmark GET, 50 connections, 16 at once, requests/s",
                     lambda it: it.redis(["-c", "50", "-P", "16"], 8 * arguments.requests)),
                    ("iperf3, one stream, Mbit/s", lambda it: it.stream(arguments.seconds) / 1e6)]
            print("| | TCP | `--sockets` | ratio |\n|---|---|---|---|")
            for name, measure in rows:
                measured = list(zip(*([measure(carrier) for carrier in carriers] for _ in range(arguments.repeat))))
                tcp, ours = (f"{min(some):,.0f} to {max(some):,.0f}" for some in measured)
                ratio = statistics.median(measured[1]) / statistics.median(measured[0])
                print(f"| {name} | {tcp} | {ours} | {ratio:.2f} |", flush=True)
            for carrier in carriers:
                carrier.end()
    finally:
        namespaces.end()


if __name__ == "__main__":
    main()
