#!/usr/bin/env python3
"""What rsockets do for programs of plain sockets: unmodified redis-server and redis-benchmark over TCP and over
rsockets (`weir run --rsockets`).

usage: bench/rsockets.py [--build build/release] [--repeat N] [--requests N]

The servers are pinned to CPU 0, redis-benchmark to CPU 1. Each row alternates between the two, --repeat times, and shows the
medians of requests a second and their ratio.
"""
import argparse
import csv
import io
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = [("1 connection", 0.5, ["-c", "1"]), ("50 connections", 2, ["-c", "50"]), ("500 connections", 2, ["-c", "500"]),
        ("50 connections, pipeline 16", 10, ["-c", "50", "-P", "16"]),
        ("4 connections, 1 MiB values", 0.02, ["-c", "4", "-d", "1048576"])]
READY = "Ready to accept connections"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, prefix, environment):
        self.prefix, self.environment, self.port = prefix, environment, free_port()
        self.process = subprocess.Popen(["taskset", "-c", "0", *prefix, "redis-server", "--port", str(self.port), "--bind",
                                         "127.0.0.1", "--save", ""], stdout=subprocess.PIPE, text=True, env=environment)
        for line in self.process.stdout:
            if READY in line:
                return
        sys.exit("redis-server ended before it was ready")

    def benchmark(self, options, requests):
        """Returns the requests a second of SET and of GET."""
        words = ["taskset", "-c", "1", *self.prefix, "redis-benchmark", "-p", str(self.port), "-t", "set,get", "--csv", "-n",
                 str(requests), *options]
        done = subprocess.run(words, capture_output=True, text=True, env=self.environment, check=True)
        rows = csv.DictReader(io.StringIO(done.stdout[re.search('^"test"', done.stdout, re.M).start():]))
        return {row["test"]: float(row["rps"]) for row in rows}

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200_000, help="of a row, more or less (default %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as runtime:
        environment = {**os.environ, "WEIR_RUNTIME_DIR": runtime}
        tcp = Server([], environment)
        rsockets = Server([str(arguments.build / "bin/weir"), "run", "--rsockets", "--"], environment)
        print("| redis-benchmark over | TCP requests/s | rsockets | ratio |\n|---|---|---|---|")
        for name, share, options in ROWS:
            measured = [(tcp.benchmark(options, int(arguments.requests * share)),
                         rsockets.benchmark(options, int(arguments.requests * share))) for _ in range(arguments.repeat)]
            for test in measured[0][0]:
                medians = [statistics.median(run[i][test] for run in measured) for i in (0, 1)]
                print(f"| {test}, {name} | {medians[0]:,.0f} | {medians[1]:,.0f} | {medians[1] / medians[0]:.1f}x |", flush=True)
        tcp.end()
        rsockets.end()


if __name__ == "__main__":
    main()
