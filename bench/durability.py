#!/usr/bin/env python3
"""What it costs to keep data: the append-only file, loading, and a snapshot beside clients, weir-server and redis-server in turn.

  bench/durability.py [--bin build/release/bin] [--mb 1000] [--runs 3] [--duration 1] [--folder FOLDER]

Prints three tables: SETs a second by fsync policy; seconds to load one snapshot file (redis-server's, read by both) and one log
of commands; and how long GETs at a steady rate wait while a snapshot of all data is written. FOLDER is where the files lie:
what an fsync costs depends on it. The servers run on CPU 0, the load on the last CPU.
"""
import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

POLICIES = [("no log", ["--appendonly", "no"]), ("no", ["--appendonly", "yes", "--appendfsync", "no"]),
            ("everysec", ["--appendonly", "yes", "--appendfsync", "everysec"]),
            ("always", ["--appendonly", "yes", "--appendfsync", "always"])]
LOADS = [(1, 1), (50, 1), (50, 16)]  # connections, pipeline
VALUE = 100  # bytes, in the tables of loading and snapshots


class Server:
    """A server in FOLDER, ready for clients; `loading_s` is how long that took."""

    def __init__(self, program, folder, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["taskset", "-c", "0", program, "--port", self.port, "--bind", "127.0.0.1", "--dir", folder, "--save", "",
                 "--enable-debug-command", "local", *options]
        began = time.monotonic()
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
        while self.ask("PING") != "PONG":
            if self.process.poll() is not None:
                raise SystemExit(f"{program} ended at its start")
            time.sleep(0.02)
        self.loading_s = time.monotonic() - began

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *map(str, words)], capture_output=True, text=True)
        return done.stdout.strip()

    def wait_for(self, section, fact):
        while fact not in self.ask("INFO", section):
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def loaded(arguments, server, *options):
    """What weir-benchmark says of one load, as a dictionary."""
    done = subprocess.run(["taskset", "-c", str(os.cpu_count() - 1), arguments.bin / "weir-benchmark", "-p", str(server.port),
                           "--json", "-", *map(str, options)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]


def in_turn(arguments, measure):
    """Calls measure(program) for each server, as often as there are runs; returns the medians by the server's name."""
    results = {name: [] for name in arguments.programs}
    for _ in range(arguments.runs):
        for name, program in arguments.programs.items():
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                results[name].append(measure(program, folder))
    return {name: statistics.median(each) for name, each in results.items()}


def rates_by_policy(arguments):
    print("| SET 16 B/s | " + " | ".join(f"{name} of {', '.join(f'{c} x {p}' for c, p in LOADS)}" for name in arguments.programs) + " |")
    print("|---" * (1 + len(arguments.programs)) + "|")
    for policy, options in POLICIES:
        cells = {name: [] for name in arguments.programs}
        for connections, pipeline in LOADS:
            def rate(program, folder):
                with Server(program, folder, *options) as server:
                    return loaded(arguments, server, "-t", "set", "-d", 16, "-r", 100000, "-c", connections, "-P", pipeline,
                                  "--duration", arguments.duration)["ops_per_s"]
            for name, median in in_turn(arguments, rate).items():
                cells[name].append(f"{median:,.0f}")
        print(f"| {policy} | " + " | ".join(", ".join(each) for each in cells.values()) + " |", flush=True)


def loading(arguments):
    """Loads copies of one snapshot, and of one log of SETs without a snapshot before it."""
    keys = arguments.mb * 1_000_000 // VALUE
    print(f"\n| seconds to load {keys:,} strings of {VALUE} bytes | " + " | ".join(arguments.programs) + " |")
    print("|---" * (1 + len(arguments.programs)) + "|")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as kept:
        with Server("redis-server", kept) as writer:
            writer.ask("DEBUG", "POPULATE", keys, "key", VALUE)
            writer.ask("SAVE")
        log = pathlib.Path(kept, "appendonlydir")
        log.mkdir()
        log.joinpath("appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
        with log.joinpath("appendonly.aof.1.incr.aof").open("wb") as commands:
            commands.write(b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n")
            for i in range(keys):
                key = b"key:%d" % i
                commands.write(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, VALUE, b"x" * VALUE))

        def load(file, *options):
            def measure(program, folder):
                source = pathlib.Path(kept, file)
                target = pathlib.Path(folder, file)
                shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
                with Server(program, folder, *options) as server:
                    found = server.ask("DBSIZE")
                    if found != str(keys):
                        raise SystemExit(f"{program} loaded {found} keys of {keys}")
                    return server.loading_s
            return in_turn(arguments, measure)
        for title, seconds in [("snapshot", load("dump.rdb")), ("log", load("appendonlydir", "--appendonly", "yes"))]:
            print(f"| {title} | " + " | ".join(f"{each:.2f}" for each in seconds.values()) + " |", flush=True)


def snapshot(arguments):
    keys = arguments.mb * 1_000_000 // VALUE
    print(f"\n| the longest wait of GETs at 2,000/s, ms; {keys:,} strings | " + " | ".join(arguments.programs) + " |")
    print("|---" * (1 + len(arguments.programs)) + "|")
    for title, command in [("while nothing is saved", None), ("BGSAVE", "BGSAVE")]:
        def wait(program, folder):
            with Server(program, folder) as server:
                server.ask("DEBUG", "POPULATE", keys, "key", VALUE)
                if command:
                    server.ask(command)
                longest = loaded(arguments, server, "-t", "get", "--rate", 2000, "--duration", 5, "-c", 4)["max_us"] / 1000
                server.wait_for("persistence", "rdb_bgsave_in_progress:0")
                if command and "rdb_last_bgsave_status:ok" not in server.ask("INFO", "persistence"):
                    raise SystemExit(f"{program} saved nothing")
                return longest
        print(f"| {title} | " + " | ".join(f"{each:.2f}" for each in in_turn(arguments, wait).values()) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--mb", type=int, default=1000, help="values in the tables of loading and snapshots")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--duration", type=float, default=1)
    parser.add_argument("--tables", default="rates,loading,snapshot", help="of these (default: all)")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    arguments = parser.parse_args()
    arguments.bin = arguments.bin.resolve()
    arguments.programs = {"redis-server": "redis-server", "weir-server": arguments.bin / "weir-server"}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; medians of {arguments.runs}\n")
    tables = {"rates": rates_by_policy, "loading": loading, "snapshot": snapshot}
    for name in arguments.tables.split(","):
        tables[name](arguments)
    print(f"\nload average at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
