#!/usr/bin/env python3
"""Prints numbers that README and docs/ show anew, beside those that the pages have.

usage: page_numbers.py [--check] [BUILD]        build/release unless told

Each row is a number as its page writes it, and what measures it. The ratios of a busy machine are not those of an idle one: look at
the spread that docs/performance.md gives before a number is exchanged. What takes a whole benchmark is listed with its command and
not run. --check: only that each page still has its number.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PERFORMANCE = "docs/performance.md"
# page, the number in it, unit, program and its options, a regular expression for the number in its last line of figures
ROWS = [
    ("README.md", "5585.18", "MB/s", "", "ib_write_bw -n 20000", r"^ *65536 +20000 +[\d.]+ +([\d.]+)"),
    (PERFORMANCE, "1.30 us", "us", "", "ib_write_lat -s 64", r"^ *64 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)"),
    (PERFORMANCE, "0.09 us", "us", "--share-memory", "ib_write_lat -s 64", r"^ *64 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)"),
    (PERFORMANCE, "0.56 us", "us", "", "ib_send_lat -s 64", r"^ *64 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)"),
    (PERFORMANCE, "0.30 us", "us", "--share-memory", "ib_send_lat -s 64", r"^ *64 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)"),
    (PERFORMANCE, "14,113 MiB/s", "MiB/s", "", "ib_write_bw -s 1048576", r"^ *1048576 +\d+ +[\d.]+ +([\d.]+)"),
    (PERFORMANCE, "59,655 MiB/s", "MiB/s", "--share-memory", "ib_write_bw -s 1048576", r"^ *1048576 +\d+ +[\d.]+ +([\d.]+)"),
]
# page, a number of the table, the benchmark that prints the table
TABLES = [
    (PERFORMANCE, "1,722,260", "weir-benchmark --pin 1 ... --compare tcp,unix,tls,rdma,rdma+tls (on the page)"),
    (PERFORMANCE, "113,636", "bench/servers.py"),
    (PERFORMANCE, "| 86 |", "bench/bytes_a_key.py redis-server valkey-server build/release/bin/weir-server"),
    (PERFORMANCE, "63,942/s", "bench/gateway.py"),
    (PERFORMANCE, "429,185", "bench/rsockets.py"),
    (PERFORMANCE, "24,482 MB/s", "bench/nic.py"),
    (PERFORMANCE, "9,535/s", "bench/between_hosts.py"),
    (PERFORMANCE, "3,486,104", "bench/rpc_compare.py"),
    (PERFORMANCE, "11.8 million events/s", "bench/sim.py"),
    ("docs/nccl.md", "bench/nccl.py", "bench/nccl.py"),
    ("docs/sockets.md", "bench/sockets_one_host.py", "bench/sockets_one_host.py"),
    ("docs/tensors.md", "bench/tensor.py", "bench/tensor.py"),
]


def missing():
    return [f"{page} has no {number!r} any more" for page, number, *_ in ROWS + TABLES
            if number not in (ROOT / page).read_text(encoding="utf-8")]


def measured(build, options, command, figure):
    run = [build / "bin/weir", "run", *options.split(), "--", *command.split()]
    environment = {**os.environ, "LC_ALL": "C"}
    server = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        for _ in range(100):  # until the server listens
            client = subprocess.run([*run, "127.0.0.1"], capture_output=True, text=True, env=environment, timeout=120)
            if client.returncode == 0:
                break
            time.sleep(0.1)
    finally:
        server.kill()
        server.wait()
    found = re.findall(figure, client.stdout, re.M)
    return found[-1] if found else "failed: " + client.stderr.strip()[-60:]


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    if gone := missing():
        sys.exit("\n".join(gone))
    if "--check" in sys.argv:
        return
    build = pathlib.Path(arguments[0] if arguments else ROOT / "build/release").resolve()
    print(f"{'page':20} {'there':>14} {'now':>10}  what")
    for page, number, unit, options, command, figure in ROWS:
        now = measured(build, options, command, figure)
        print(f"{page:20} {number:>14} {now:>10}  {unit}: weir run {options}{' ' if options else ''}-- {command}", flush=True)
    for page, number, command in TABLES:
        print(f"{page:20} {number:>14} {'':10}  not run: {command}")


if __name__ == "__main__":
    main()
