#!/usr/bin/env python3
"""Echo over rpc/, gRPC and coro_rpc, alternating, for each combination of bytes, calls in flight and connections.

Every combination runs --repeat times, with the systems alternating, so that a slow phase of the machine affects all alike.
Shows the run with the median rate; of two runs, the slower one. Server on CPU 0, client on CPU 1. Nothing here passes or fails.

--coro PROGRAM, --coro-ibverbs PROGRAM: coro_rpc's side over TCP and over its ibverbs transport, which Weir does not include.
`PROGRAM PORT BYTES IN_FLIGHT one|each SECONDS` prints the same row as rpc_echo_bench (bench/echo_row.hpp); a missing value
shows as a dash. The ibverbs program runs on the software NIC (`weir run`), as does our rdma://.

--short-replies: the requests carry the bytes, and the replies are a number. The table then also has ib_write_bw, which moves
bytes one way, too, always with 128 writes in flight.

A whole matrix takes long: run parts with --json, then --merge PIECE... prints all, and --chart draws 128 B.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile

import nic

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = [128, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20]
IN_FLIGHT = [1, 4, 16, 64, 256]
OURS = {  # name: address, options
    "tcp": ("tcp://127.0.0.1:0", []),
    "tcp attachments": ("tcp://127.0.0.1:0", ["--attachments"]),
    "unix": ("unix://{folder}/echo", []),
    "rdma": ("rdma://127.0.0.1:0", []),
    "rdma attachments": ("rdma://127.0.0.1:0", ["--attachments"]),
    "rdma given": ("rdma://127.0.0.1:0", ["--attachments", "--given"]),
}
OTHERS = {"grpc": "grpc_echo_bench", "sockets": "socket_echo_bench"}  # with the options of ours
WRITE_BANDWIDTH = {"ib_write_bw": [], "ib_write_bw shared": ["--share-memory"]}  # name: options of weir run
PEERS = ["sockets", "coro_rpc", "coro_rpc ibverbs", "grpc", *WRITE_BANDWIDTH]  # ours have a ratio to each of them
SYSTEMS = [*OURS, *PEERS]
NUMBERS = {
    "qps": r"([\d.]+) qps",
    "gbps": r"([\d.]+) Gb/s",
    "p50": r"p50 +([\d.]+)",
    "p90": r"p90 +([\d.]+)",
    "p99": r"p99 +([\d.]+)",
    "core": r"([\d.]+) a server core",
}


def size_name(size):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def read_row(line):
    found = {name: re.search(pattern, line) for name, pattern in NUMBERS.items()}
    row = {name: float(match[1]) for name, match in found.items() if match}
    if "qps" not in row:
        raise RuntimeError(f"not a row: {line}")
    failed = re.search(r"(\d+) FAILED", line)
    row["failed"] = int(failed[1]) if failed else 0
    return row


def command(system, arguments, size, mode, in_flight, folder):
    words = [str(free_port()), str(size), str(in_flight), mode, str(arguments.seconds)]
    if system == "coro_rpc":
        return [arguments.coro, *words]
    if system == "coro_rpc ibverbs":
        return [arguments.build / "bin/weir", "run", "--", arguments.coro_ibverbs, *words]
    shared = ["--bytes", str(size), "--in-flight", str(in_flight), "--connections", mode, "--seconds", str(arguments.seconds)]
    if system in ("grpc", "sockets"):
        return [arguments.build / f"bin/{OTHERS[system]}", *shared]
    address, options = OURS[system]
    if arguments.short_replies:
        options = [*options, "--short-replies"]
    return [arguments.build / "bin/rpc_echo_bench", "--address", address.format(folder=folder), *options, *shared]


def run_write_bandwidth(system, arguments, size):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        gbps = nic.Bench(arguments.build, (0, 1), folder).perftest(
            WRITE_BANDWIDTH[system], ["ib_write_bw", "--report_gbits", "-s", str(size), "-D", str(max(1, round(arguments.seconds))), "-F"], 3)
    return {"qps": gbps * 1e9 / 8 / size, "gbps": gbps, "failed": 0}


def run_cell(system, arguments, size, mode, in_flight):
    if system in WRITE_BANDWIDTH:
        return run_write_bandwidth(system, arguments, size)
    # Each run has its own folder, because the software NIC and the socket of unix:// leave files behind.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        done = subprocess.run(command(system, arguments, size, mode, in_flight, folder), capture_output=True, text=True,
                              env={**os.environ, "WEIR_RUNTIME_DIR": folder + "/nic"}, timeout=120)
    rows = [line for line in done.stdout.splitlines() if " qps" in line]
    if done.returncode != 0 or len(rows) != 1:
        raise RuntimeError(f"{system}, {size_name(size)}, {in_flight} in flight, {mode}: {done.stdout}{done.stderr}")
    return read_row(rows[0])


def measure(arguments):
    cells = []
    for size in arguments.bytes:
        for mode in arguments.connections:
            for in_flight in arguments.in_flight:
                if size * in_flight > arguments.most_bytes:
                    continue
                runs = {system: [] for system in arguments.systems}
                for _ in range(arguments.repeat):
                    for system in arguments.systems:
                        try:
                            runs[system].append(run_cell(system, arguments, size, mode, in_flight))
                        except (RuntimeError, subprocess.TimeoutExpired) as error:
                            print(error, file=sys.stderr)
                for system, rows in runs.items():
                    if not rows:
                        continue
                    middle = statistics.median_low(row["qps"] for row in rows)
                    row = next(row for row in rows if row["qps"] == middle)
                    row["least"], row["most"] = min(r["qps"] for r in rows), max(r["qps"] for r in rows)
                    cells.append({"system": system, "bytes": size, "connections": mode, "in_flight": in_flight, **row})
    return cells


def shown(cell, name, digits=0):
    return f"{cell[name]:,.{digits}f}" if name in cell else "-"


def print_table(cells):
    """Prints a table for every size and mode; our cells have the ratio to each measured peer."""
    measured = {cell["system"] for cell in cells}
    peers = [peer for peer in PEERS if peer in measured]
    for size in sorted({cell["bytes"] for cell in cells}):
        for mode in ("each", "one"):
            here = [cell for cell in cells if cell["bytes"] == size and cell["connections"] == mode]
            if not here:
                continue
            print(f"\n{size_name(size)}, {'a connection for each call in flight' if mode == 'each' else 'one connection'}\n")
            print("".join(["| in flight | | qps ", *(f"| to {peer} " for peer in peers), "| Gb/s | p90 us | p99 us | qps a server core |"]))
            print("|---" * (7 + len(peers)) + "|")
            for in_flight in sorted({cell["in_flight"] for cell in here}):
                row = {cell["system"]: cell for cell in here if cell["in_flight"] == in_flight}
                for system in (name for name in SYSTEMS if name in row):
                    cell = row[system]
                    ratios = "".join(f" {cell['qps'] / row[peer]['qps']:.2f}x |" if peer in row and system in OURS else " |"
                                     for peer in peers)
                    failed = f", {cell['failed']} failed" if cell["failed"] else ""
                    print(f"| {in_flight} | {system}{failed} | {shown(cell, 'qps')} |{ratios} "
                          f"{shown(cell, 'gbps', 2)} | {shown(cell, 'p90', 1)} | {shown(cell, 'p99', 1)} | {shown(cell, 'core')} |")


def draw(cells, out):
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("each", "one"):
            lines = []
            for in_flight in IN_FLIGHT:
                rates = {cell["system"]: cell["qps"] for cell in cells
                         if cell["bytes"] == 128 and cell["connections"] == mode and cell["in_flight"] == in_flight}
                shown_rates = [rates.get(system, "?") for system in ("tcp", "unix", "rdma", "coro_rpc", "grpc")]
                lines.append(" ".join(str(value) for value in [in_flight, *shown_rates]))
            pathlib.Path(folder, mode).write_text("\n".join(lines) + "\n")
        subprocess.run(["gnuplot", "-e", f"folder='{folder}'; out='{out}'", ROOT / "bench/rpc_compare.gnuplot"], check=True)


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--coro", help="coro_rpc's program over TCP")
    parser.add_argument("--coro-ibverbs", help="coro_rpc's program over ibverbs; run by weir run")
    parser.add_argument("--short-replies", action="store_true")
    parser.add_argument("--systems", type=lambda text: text.split(","), help="of " + ", ".join(SYSTEMS))
    parser.add_argument("--bytes", type=numbers, default=SIZES)
    parser.add_argument("--in-flight", type=numbers, default=IN_FLIGHT)
    parser.add_argument("--connections", type=lambda text: text.split(","), default=["each", "one"])
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--most-bytes", type=int, default=1 << 30, help="in flight; cells beyond are left out")
    parser.add_argument("--json", type=pathlib.Path, help="writes the cells there")
    parser.add_argument("--merge", type=pathlib.Path, nargs="+", help="measures nothing: what --json wrote; later files win")
    parser.add_argument("--chart", help="an SVG of 128 B; wants gnuplot")
    arguments = parser.parse_args()
    if arguments.merge:
        merged = {}
        for piece in arguments.merge:
            for cell in json.loads(piece.read_text()):
                merged[cell["system"], cell["bytes"], cell["connections"], cell["in_flight"]] = cell
        cells = list(merged.values())
    else:
        if arguments.systems is None:
            there = {
                "coro_rpc": arguments.coro and not arguments.short_replies,
                "coro_rpc ibverbs": arguments.coro_ibverbs and not arguments.short_replies,
                "grpc": (arguments.build / "bin/grpc_echo_bench").exists() and not arguments.short_replies,
                **dict.fromkeys(WRITE_BANDWIDTH, arguments.short_replies),
            }
            arguments.systems = [system for system in SYSTEMS if there.get(system, True)]
        cells = measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(cells, indent=1) + "\n")
    print_table(cells)
    if arguments.chart:
        draw(cells, arguments.chart)


if __name__ == "__main__":
    main()
