#!/usr/bin/env python3
"""Requests a second of servers that speak Redis's protocol, over TCP, measured in turn.

    servers.py redis-server valkey-server build/release/bin/weir-server

Each SERVER is a program. They all run at once on one CPU, idle but for the one that is measured; weir-benchmark runs on
another. For each test and pipeline length, the script measures one server after the other, ROUNDS times, and prints the
medians: requests a second, and the server's processor time for a request (which says more where the client is the limit), each
with its ratio between the others and the last server, above 1 where the last is better. The data is emptied before each
measurement; what takes elements away first gets a test that puts them there.
"""
import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time

TESTS = ("ping_inline,ping_mbulk,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,lrange_300,"
         "lrange_500,lrange_600,mset,xadd,evalsha")
FILLS = {"lpop": "lpush", "rpop": "rpush", "spop": "sadd", "zpopmin": "zadd"}  # lists for LRANGE are filled with LPUSH


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


class Server:
    def __init__(self, program, folder, cpu):
        self.name, self.port = os.path.basename(program), free_port()
        os.mkdir(folder)
        self.process = subprocess.Popen(["taskset", "-c", str(cpu), program, "--port", str(self.port), "--save", "", "--dir", folder],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise SystemExit(f"{program} does not serve port {self.port}")

    def processor_s(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def empty(self):
        with socket.create_connection(("127.0.0.1", self.port)) as stream:
            stream.sendall(b"FLUSHALL SYNC\r\n")
            stream.recv(100)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def measured(client, server, test, pipeline, chosen):
    """The test's whole name, requests a second, and microseconds of the server's processor time a request."""
    server.empty()
    is_range = test.startswith("lrange_")
    runs = [["-t", FILLS.get(test, "lpush")]] if is_range or test in FILLS else []
    runs.append(["LRANGE", "mylist", "0", str(int(test[7:]) - 1)] if is_range else ["-t", test])
    for run in runs:
        words = [client, "--pin", str(chosen.client_cpu), "-p", str(server.port), "-P", str(pipeline), "-c", str(chosen.connections),
                 "--duration", str(chosen.duration), "-r", str(chosen.keys), "--json", "-", *run]
        before = server.processor_s()
        row = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)[-1]
        used = server.processor_s() - before
    return row["test"], row["ops_per_s"], used / row["requests"] * 1e6


def ratios(values, better):
    """Between the last and each of the others."""
    return " ".join(f"{better(values[-1], one):.2f}" for one in values[:-1])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("servers", nargs="+", metavar="SERVER")
    arguments.add_argument("--tests", default=TESTS, help="of weir-benchmark -t, separated by commas")
    arguments.add_argument("--pipeline", default="1,16", help="requests in flight on a connection (default 1,16)")
    arguments.add_argument("--connections", type=int, default=50)
    arguments.add_argument("--keys", type=int, default=10_000, help="random keys below this number")
    arguments.add_argument("--duration", type=float, default=0.7, help="seconds of one measurement")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--client", default="build/release/bin/weir-benchmark")
    arguments.add_argument("--server-cpu", type=int, default=0)
    arguments.add_argument("--client-cpu", type=int, default=1)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        servers = [Server(program, os.path.join(folder, str(i)), chosen.server_cpu) for i, program in enumerate(chosen.servers)]
        try:
            print(f"load average before: {os.getloadavg()[0]:.1f}")
            names = "".join(f" {s.name} |" for s in servers)
            print(f"| requests/s, then us of processor time a request | P |{names} ratios |{names} ratios |")
            print("|---|---|" + "---|" * (2 * len(servers) + 2))
            for pipeline in map(int, chosen.pipeline.split(",")):
                for test in chosen.tests.split(","):
                    rates, costs = [[] for _ in servers], [[] for _ in servers]
                    for _ in range(chosen.rounds):
                        for i, server in enumerate(servers):
                            name, rate, cost = measured(chosen.client, server, test, pipeline, chosen)
                            rates[i].append(rate)
                            costs[i].append(cost)
                    rate, cost = [[statistics.median(each) for each in some] for some in (rates, costs)]
                    print(f"| {name} | {pipeline} |" + "".join(f" {one:,.0f} |" for one in rate) +
                          f" {ratios(rate, lambda ours, its: ours / its)} |" + "".join(f" {one:.2f} |" for one in cost) +
                          f" {ratios(cost, lambda ours, its: its / ours)} |", flush=True)
        finally:
            for server in servers:
                server.end()


if __name__ == "__main__":
    main()
