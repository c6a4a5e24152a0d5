#!/usr/bin/env python3
"""What `weir run --sockets` does for unmodified programs on one host: Redis, memcached, nginx, haproxy, PostgreSQL, Node.js and
Java, each over TCP, with both ends under Weir, and with the server alone under it.

usage: bench/sockets_one_host.py [--build build/release] [--rounds N] [--seconds N] [--only WORD]

The servers are pinned to CPU 0, the clients to CPU 1. Each row takes the three ways in turn, --rounds times, and shows the
medians and the ratios to TCP, with the lowest and highest ratio of a round. Programs that are not installed are left out.
As root, all programs run as nobody, because PostgreSQL refuses root.
"""
import argparse
import csv
import io
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/interop/programs"
POSTGRES = "/usr/lib/postgresql/15/bin"
HOST = "127.0.0.1"
READY_S = 40
NOBODY = 65534
NODE = 'require("http").createServer((_, answer) => answer.end("x".repeat(1024))).listen(+process.argv[1], process.argv[2])'
JAVA = """import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
public class Serve {
  public static void main(String[] words) throws Exception {
    byte[] body = new byte[1024];
    HttpServer server = HttpServer.create(new InetSocketAddress(words[1], Integer.parseInt(words[0])), 0);
    server.createContext("/", exchange -> {
      exchange.getRequestBody().readAllBytes();
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
  }
}
"""


def free_port():
    with socket.create_server((HOST, 0)) as taken:
        return taken.getsockname()[1]


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"no {pattern} in:\n{text}")
    return float(found[1])


# ---- what a client's report says: more is better


def redis_requests(text):
    return float(next(csv.DictReader(io.StringIO(text[re.search('^"test"', text, re.M).start():])))["rps"])


def wrk_requests(text):
    if "Non-2xx" in text or "Socket errors" in text:
        sys.exit(f"wrk met errors:\n{text}")
    return number(r"Requests/sec:\s+([\d.]+)", text)


class Kind:
    """A program that serves, and its rows: a name, the client's words, and how to read its report."""

    def __init__(self, name, server, rows, needs, prepare=None):
        self.name, self.server, self.rows, self.needs, self.prepare = name, server, rows, needs, prepare

    def missing(self):
        return [word for word in self.needs if not shutil.which(word)]


def redis(options, requests):
    return (lambda port, seconds: ["redis-benchmark", "-h", HOST, "-p", str(port), "-t", "get", "--csv", "-n",
                                   str(int(requests * seconds)), *options], redis_requests)


def wrk(path, connections):
    return (lambda port, seconds: ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", f"http://{HOST}:{port}/{path}"],
            wrk_requests)


def files(name):
    return lambda port, scratch: ["sh", str(PROGRAMS / "served_files.sh"), name, str(scratch), HOST, str(port)]


def java(port, scratch):
    (scratch / "Serve.java").write_text(JAVA)
    return ["java", str(scratch / "Serve.java"), str(port), HOST]


KINDS = [
    Kind("redis-server", lambda port, scratch: ["redis-server", "--port", str(port), "--bind", HOST, "--save", "", "--dir", str(scratch)],
         [("GET, 1 connection", *redis(["-c", "1"], 15_000)), ("GET, 50 connections", *redis(["-c", "50"], 80_000)),
          ("GET, 500 connections", *redis(["-c", "500"], 70_000)),
          ("GET, 50 connections, pipeline 16", *redis(["-c", "50", "-P", "16"], 800_000)),
          ("GET, connect, request, close", *redis(["-c", "50", "-k", "0"], 10_000))], ["redis-server", "redis-benchmark"]),
    Kind("memcached", lambda port, scratch: ["memcached", "-l", HOST, "-p", str(port), "-t", "1"],
         [("memcslap get, 8 connections",
           lambda port, seconds: ["memcslap", f"--servers={HOST}:{port}", "--concurrency=8", f"--execute-number={int(5000 * seconds)}", "--test=get"],
           lambda text: number(r"Time to get +(\d+) keys", text) / number(r"Time to get .* threads: +([\d.]+)", text))], ["memcached", "memcslap"]),
    Kind("nginx", files("nginx"), [("1 KiB kept alive, 16 connections", *wrk("small", 16)),
                                   ("1 MiB by sendfile, 4 connections", *wrk("large", 4))], ["nginx", "wrk"]),
    Kind("haproxy", files("haproxy"), [("1 KiB kept alive, 16 connections", *wrk("small", 16))], ["haproxy", "nginx", "wrk"]),
    Kind("PostgreSQL", lambda port, scratch: ["sh", str(PROGRAMS / "postgres.sh"), POSTGRES, str(scratch), HOST, str(port)],
         [("pgbench -S, 4 connections",
           lambda port, seconds: ["pgbench", "-h", HOST, "-p", str(port), "-U", "weir", "-S", "-n", "-c", "4", "-T", str(seconds), "postgres"],
           lambda text: number(r"tps = ([\d.]+)", text))], [f"{POSTGRES}/postgres", "pgbench"],
         prepare=lambda port: ["pgbench", "-h", HOST, "-p", str(port), "-U", "weir", "-i", "-q", "postgres"]),
    Kind("Node.js http", lambda port, scratch: ["node", "-e", NODE, str(port), HOST], [("1 KiB kept alive, 16 connections", *wrk("", 16))],
         ["node", "wrk"]),
    Kind("Java HttpServer", java, [("1 KiB kept alive, 16 connections", *wrk("", 16))], ["java", "wrk"]),
]


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.started = arguments, folder, []
        self.weir = [str(arguments.build / "bin/weir"), "run", "--sockets", "--"]
        runtime = folder / "runtime"
        self.own(runtime)
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": str(runtime), "HOME": str(folder)}

    def own(self, folder):
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)

    def options(self):
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        return {"env": self.environment, "cwd": self.folder / "runtime", **nobody}

    def start(self, kind, prefix, which):
        port, scratch = free_port(), self.folder / f"{kind.name.split()[0]}.{which}"
        self.own(scratch)
        words = ["taskset", "-c", "0", *prefix, *kind.server(port, scratch)]
        self.started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                             **self.options()))
        deadline = time.monotonic() + READY_S
        while True:
            try:
                socket.create_connection((HOST, port)).close()
                return port
            except OSError:
                if self.started[-1].poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{kind.name} does not listen")
                time.sleep(0.05)

    def client(self, words, prefix):
        done = subprocess.run(["taskset", "-c", "1", *prefix, *words], capture_output=True, text=True, **self.options())
        if done.returncode:
            sys.exit(f"{words[0]} ended with {done.returncode}: {done.stderr}")
        return done.stdout + done.stderr

    def end(self):
        for server in self.started:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
        self.started.clear()

    def measure(self, kind):
        plain, under = self.start(kind, [], "tcp"), self.start(kind, self.weir, "weir")
        if kind.prepare:
            time.sleep(1)
            for port in (plain, under):
                self.client(kind.prepare(port), [])
        ways = [(plain, []), (under, self.weir), (under, [])]
        for name, words, read in kind.rows:
            rounds = [[read(self.client(words(port, self.arguments.seconds), prefix)) for port, prefix in ways]
                      for _ in range(self.arguments.rounds)]
            medians = [statistics.median(run[i] for run in rounds) for i in range(3)]
            spread = [[run[i] / run[0] for run in rounds] for i in (1, 2)]
            cells = [f"{m:,.0f} | {m / medians[0]:.2f} ({min(s):.2f} to {max(s):.2f})" for m, s in zip(medians[1:], spread)]
            print(f"| {kind.name}, {name} | {medians[0]:,.0f} | {' | '.join(cells)} |", flush=True)
        self.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2, help="of one measurement, more or less (default %(default)s)")
    parser.add_argument("--only", default="", help="the programs with this word in their name")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    print(f"load average before: {os.getloadavg()[0]:.1f}")
    print("| requests/s | TCP | both ends | ratio (rounds) | server alone | ratio (rounds) |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="weir-bench-", dir="/dev/shm") as folder:
        os.chmod(folder, 0o755)
        bench = Bench(arguments, pathlib.Path(folder))
        try:
            for kind in KINDS:
                if arguments.only.lower() not in kind.name.lower():
                    continue
                if kind.missing():
                    print(f"| {kind.name}: not installed: {', '.join(kind.missing())} |")
                else:
                    bench.measure(kind)
        finally:
            bench.end()


if __name__ == "__main__":
    main()
