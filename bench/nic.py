#!/usr/bin/env python3
"""perftest on the software NIC, compared with UCX's own shared-memory and TCP transports by ucx_perftest, in one run.

Each row runs our side and its peer alternately, REPEAT times, and shows the medians and their ratio; for latencies it shows
the best, with the medians in brackets.
Prints Markdown or JSON. Nothing here passes or fails. Requires perftest and ucx-utils.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def listens(port):
    wanted = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(name).read_text().splitlines()[1:]:
            words = line.split()
            if words[1].endswith(wanted) and words[3] == "0A":
                return True
    return False


class Bench:
    def __init__(self, build, cores, folder):
        self.weir = [str(build / "bin/weir"), "run"]
        self.cores = cores
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": folder, "UCX_WARN_UNUSED_ENV_VARS": "n"}

    def pair(self, server, client, port, cores=None, environment=None):
        """Returns the client's output. Each side has its own core unless told otherwise."""
        of_server, of_client = cores or self.cores
        env = {**self.environment, **(environment or {})}
        with tempfile.TemporaryFile("w+") as words:
            running = subprocess.Popen(["taskset", "-c", str(of_server), *server], stdout=words, stderr=words, env=env)
            try:
                while not listens(port):
                    if running.poll() is not None:
                        words.seek(0)
                        raise RuntimeError(f"{' '.join(server)}: {words.read()}")
                    time.sleep(0.01)
                done = subprocess.run(["taskset", "-c", str(of_client), *client], capture_output=True, text=True, env=env, timeout=120)
                if done.returncode != 0:
                    raise RuntimeError(f"{' '.join(client)}: {done.stdout}{done.stderr}")
                running.wait(timeout=30)
                return done.stdout
            finally:
                running.kill()
                running.wait()

    def perftest(self, options, words, column, cores=None):
        """Returns one figure of perftest's last line."""
        port = free_port()
        command = [*self.weir, *options, "--", *words, "-p", str(port)]
        for line in reversed(self.pair(command, [*command, "127.0.0.1"], port, cores).splitlines()):
            fields = line.split()
            if len(fields) > column and fields[0].isdigit() and fields[1].isdigit():
                return float(fields[column])
        raise RuntimeError(f"{' '.join(command)}: no result")

    def ucx(self, words, column, environment=None):
        """Returns one figure of ucx_perftest's last line."""
        port = free_port()
        server = ["ucx_perftest", "-p", str(port)]
        for line in self.pair(server, [*server, "127.0.0.1", *words], port, environment=environment).splitlines():
            fields = line.split()
            if fields and fields[0] == "Final:":
                return float(fields[column])
        raise RuntimeError(f"ucx_perftest {' '.join(words)}: no result")


SHARED = ["--share-memory"]
# perftest's columns, counted from 0, of its `lat` and `bw` programs; ucx_perftest's behind "Final:".
LATENCY_US, BANDWIDTH_MIB, RATE_MILLIONS = 4, 3, 4
UCX_LATENCY_US, UCX_BANDWIDTH_MB = 2, 5


def uct(transport, test, how, size, count, device="memory"):
    return ["-x", transport, "-d", device, "-t", test, "-D", how, "-s", str(size), "-n", str(count), "-w", "1000"]


def rows():
    """(name, unit, goal, ours, peer's name, peer); a ratio above 1 means ours is slower, or for bandwidth faster."""
    def lat(program, size=64, options=(), **kept):
        return lambda bench: bench.perftest(options, [program, "-s", str(size), "-n", "20000", "-F"], LATENCY_US, **kept)

    def bw(program, size, options=(), count=None):
        return lambda bench: bench.perftest(options, [program, "-s", str(size), "-n", str(count or max(1000, (2 << 30) // size)), "-F"],
                                            BANDWIDTH_MIB) * 1.048576

    def ucx(*words, column, environment=None):
        return lambda bench: bench.ucx(list(words), column, environment)

    def ucx_lat(*words, **kept):
        return ucx(*words, column=UCX_LATENCY_US, **kept)

    def ucx_bw(*words, **kept):  # ucx_perftest's MB are 2^20 bytes
        return lambda bench: ucx(*words, column=UCX_BANDWIDTH_MB, **kept)(bench) * 1.048576

    yield ("SEND 64 B, latency", "us", "<= 1.5", lat("ib_send_lat"), "UCX posix", ucx_lat(*uct("posix", "am_lat", "short", 64, 200000)))
    yield ("WRITE 64 B, private memory, latency", "us", "<= 1.2", lat("ib_write_lat"), "UCX cma",
           ucx_lat(*uct("cma", "put_lat", "zcopy", 64, 50000)))
    yield ("READ 64 B, private memory, latency", "us", "<= 1.2", lat("ib_read_lat"), "UCX cma",
           ucx_lat(*uct("cma", "get", "zcopy", 64, 50000)))
    yield ("WRITE 64 B, shared memory, latency", "us", "<= 1.5", lat("ib_write_lat", options=SHARED), "UCX posix",
           ucx_lat(*uct("posix", "put_lat", "short", 64, 200000)))
    for size, text in ((65536, "64 KiB"), (1 << 20, "1 MiB")):
        count = max(2000, (4 << 30) // size // 4)
        yield (f"WRITE {text}, private memory", "MB/s", ">= 0.9", bw("ib_write_bw", size), "UCX cma",
               ucx_bw(*uct("cma", "put_bw", "zcopy", size, count)))
        yield (f"READ {text}, private memory", "MB/s", ">= 0.9", bw("ib_read_bw", size), "UCX cma",
               ucx_bw(*uct("cma", "get", "zcopy", size, count)))
        yield (f"WRITE {text}, shared memory", "MB/s", ">= 0.9", bw("ib_write_bw", size, SHARED), "UCX posix",
               ucx_bw(*uct("posix", "put_bw", "short", size, count)))
        yield (f"SEND {text}", "MB/s", ">= 0.9", bw("ib_send_bw", size), "UCX posix, tags",
               ucx_bw("-t", "tag_bw", "-s", str(size), "-n", str(count), environment={"UCX_TLS": "posix,self"}))
    yield ("SEND 64 B against TCP, latency", "us", "<= 1/8", lat("ib_send_lat"), "UCX tcp on lo",
           ucx_lat(*uct("tcp", "am_lat", "short", 64, 20000, device="lo")))
    yield ("SEND 64 KiB against TCP", "MB/s", ">= 3", bw("ib_send_bw", 65536), "UCX tcp, tags",
           ucx_bw("-t", "tag_bw", "-s", "65536", "-n", "20000", environment={"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}))


def lone_rows(core):
    """(name, unit, goal, ours): rows without a peer."""
    def rate(queue_pairs, count):
        return lambda bench: bench.perftest(SHARED, ["ib_write_bw", "-s", "8", "-l", "64", "-Q", "64", "-q", str(queue_pairs), "-n", str(count), "-F",
                                                     "-N"],  # without its peak, whose search is quadratic
                                            RATE_MILLIONS)

    def together(program, options=()):
        return lambda bench: bench.perftest(options, [program, "-s", "64", "-n", "5000", "-F"], LATENCY_US, cores=(core, core))

    yield ("WRITE 8 B in chains of 64, one signalled, 1 queue pair", "million/s", ">= 5", rate(1, 4000000))
    yield ("the same, 16 queue pairs", "million/s", "", rate(16, 400000))
    yield ("the same, 1000 queue pairs", "million/s", "as with 16", rate(1000, 6400))
    yield ("SEND 64 B, both ends on one core, a turn", "us", "<= 5", together("ib_send_lat"))
    yield ("WRITE 64 B in shared memory, both ends on one core, a turn", "us", "<= 5", together("ib_write_lat", SHARED))


def figure(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--cores", default="0,1", help="server's and client's core (0,1)")
    parser.add_argument("--only", default="", help="rows whose name has this word")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cores = tuple(int(core) for core in arguments.cores.split(","))
    results = []

    def measure(name, unit, goal, ours, peer_name="", peer=None):
        if arguments.only not in name:
            return
        print(f"{name} ...", file=sys.stderr, flush=True)
        mine, theirs = [], []
        for _ in range(arguments.repeat):
            mine.append(ours(bench))
            if peer:
                theirs.append(peer(bench))
        # A cache line alone takes one of two times between virtual cores, from start to start (docs/measurements), and
        # so does every latency of a few lines: the shortest can be compared, and the medians of many starts.
        row = {"what": name, "unit": unit, "goal": goal, "peer": peer_name, "runs": mine, "runs_of_peer": theirs}
        for key, of in (("", statistics.median), ("best_", min)):
            if not key or unit == "us":
                row[key + "weir"] = of(mine)
                if peer:
                    row.update({key + "of_peer": of(theirs), key + "ratio": of(mine) / of(theirs)})
        results.append(row)

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.build.resolve(), cores, folder)
        for row in rows():
            measure(*row)
        for row in lone_rows(cores[0]):
            measure(*row)
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    print("| what | Weir | peer | ratio | goal |\n|---|---|---|---|---|")
    for row in results:
        def shown(key, form, unit=""):
            if "best_" + key in row:
                return f"{form(row['best_' + key])}{unit} ({form(row[key])})"
            return form(row[key]) + unit if key in row else ""

        unit = " " + row["unit"]
        peer = f"{shown('of_peer', figure, unit)}, {row['peer']}" if row["peer"] else ""
        print(f"| {row['what']} | {shown('weir', figure, unit)} | {peer} | {shown('ratio', '{:.2f}'.format)} | {row['goal']} |")


if __name__ == "__main__":
    main()
