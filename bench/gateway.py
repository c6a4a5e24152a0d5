#!/usr/bin/env python3
"""The cost of weir-server --cluster-gateway: GET through it and directly from the node behind it, alternating.

  bench/gateway.py [--bin build/release/bin] [--duration 1] [--runs 5] [--pin node,gateway,client]

The cluster is one redis-server, so a plain client can go to it directly. Shows the medians of the runs. By default nothing
is pinned: the kernel distributes the three programs over the cores.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

LOADS = [(1, 1), (50, 1), (50, 16)]  # connections, pipeline


def free_ports(count):
    taken = [socket.socket() for _ in range(count)]
    for each in taken:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


def pinned(core, *words):
    return (["taskset", "-c", core] if core else []) + [str(word) for word in words]


def ask(port, *words):
    return subprocess.run(["redis-cli", "-p", str(port), *map(str, words)], capture_output=True, text=True).stdout.strip()


def awaited(what, reached):
    deadline = time.monotonic() + 20
    while not reached():
        if time.monotonic() > deadline:
            raise SystemExit(f"does not come to it: {what}")
        time.sleep(0.05)


def cpu_s(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(arguments, core, port, connections, pipeline, test):
    done = subprocess.run(pinned(core, arguments.bin / "weir-benchmark", "-p", port, "-t", test, "-d", 16, "-c", connections,
                                 "-P", pipeline, "--duration", arguments.duration, "--json", "-"),
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--duration", type=float, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pin", default=",,", help="CPUs of node, gateway and client")
    arguments = parser.parse_args()
    cores = arguments.pin.split(",")
    program = arguments.bin.resolve() / "weir-server"  # the gateway has a working folder of its own
    direct, through, bus = free_ports(3)
    with tempfile.TemporaryDirectory() as folder:
        node = subprocess.Popen(pinned(cores[0], "redis-server", "--port", direct, "--cluster-enabled", "yes", "--cluster-port",
                                       bus, "--save", "", "--bind", "127.0.0.1"), cwd=folder, stdout=subprocess.DEVNULL)
        gateway = None
        try:
            awaited("redis-server answers", lambda: ask(direct, "PING") == "PONG")
            ask(direct, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            awaited("the cluster is well", lambda: "cluster_state:ok" in ask(direct, "CLUSTER", "INFO"))
            gateway = subprocess.Popen(pinned(cores[1], program, "--port", through, "--bind", "127.0.0.1",
                                              "--cluster-gateway", f"127.0.0.1:{direct}"), cwd=folder, stdout=subprocess.DEVNULL)
            awaited("the gateway answers", lambda: ask(through, "SET", "key:000000000000", "x" * 16) == "OK")
            print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; medians of {arguments.runs}\n")
            print("| GET 16 B | direct | gateway | ratio | added p50 | processor time a request: node / gateway |\n|---|---|---|---|---|---|")
            for connections, pipeline in LOADS:
                rows = {direct: [], through: []}
                node_s = gateway_s = requests = 0
                for _ in range(arguments.runs):
                    for port, results in rows.items():
                        before = cpu_s(node), cpu_s(gateway)
                        results.append(measure(arguments, cores[2], port, connections, pipeline, "get"))
                        if port == through:
                            node_s += cpu_s(node) - before[0]
                            gateway_s += cpu_s(gateway) - before[1]
                            requests += results[-1]["requests"]
                rates, medians = ([statistics.median(run[figure] for run in rows[port]) for port in (direct, through)]
                                  for figure in ("ops_per_s", "p50_us"))
                print(f"| {connections} connections, pipeline {pipeline} | {rates[0]:,.0f}/s ({medians[0]:.1f} us) "
                      f"| {rates[1]:,.0f}/s ({medians[1]:.1f} us) | {rates[1] / rates[0]:.2f} "
                      f"| {medians[1] - medians[0]:.1f} us | {1e6 * node_s / requests:.2f} us / {1e6 * gateway_s / requests:.2f} us |",
                      flush=True)
            print(f"\nload average at the end {os.getloadavg()[0]:.1f}")
        finally:
            for process in (gateway, node):
                if process:
                    process.kill()
                    process.wait()


if __name__ == "__main__":
    main()
