#!/usr/bin/env python3
"""The software NIC between two hosts beside TCP, and beside Soft-RoCE where this kernel has it.

usage: bench/between_hosts.py [--build build/release] [--mtu 1500,9000] [--repeat N] [--seconds N] [--rxe]

The hosts are two network namespaces joined by a wire (veth), made without privileges. Servers are pinned to CPU 0, clients to
CPU 1. perftest under `weir run` and iperf3 (64 KiB sends) take turns, --repeat times. A row shows the median and, in brackets, the
ratio to TCP's at the same MTU.

--rxe (root, the module rdma_rxe, and `rdma`) adds perftest on two rxe devices of this namespace, on dummy links: between namespaces
Soft-RoCE works from Linux 7.1 on only. Its packets then skip the IP stack, which favours it. The goals are 3x of it at MTU 1500 and 2x
at 9000. The devices and links are removed at the end.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import two_namespaces  # noqa: E402

HOST = two_namespaces.ADDRESSES["ipv4"]["server"]
PORT = 18_515
READY_S = 20
ROWS = [("WRITE 1 MiB", "ib_write_bw", 1 << 20), ("SEND 64 KiB", "ib_send_bw", 1 << 16), ("READ 64 KiB", "ib_read_bw", 1 << 16)]
LATENCIES = [("SEND 64 B, us", "ib_send_lat", 64), ("WRITE 64 B, us", "ib_write_lat", 64)]
RXE = {"server": ("rxebench0", "10.77.1.1"), "client": ("rxebench1", "10.77.1.2")}


def pinned(end, command):
    return ["taskset", "-c", "0" if end == "server" else "1", *command]


def wait_for(listens, server):
    deadline = time.monotonic() + READY_S
    while not subprocess.run(listens, capture_output=True, check=True, text=True).stdout.strip():
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{server.args} does not listen")
        time.sleep(0.02)


class Place:
    """Where both ends run, and how: `before` is put in front of each end's command."""

    def __init__(self, before, host, environment):
        self.before, self.host, self.environment = before, host, environment

    def pair(self, server_command, client_command):
        """Returns what the client printed."""
        server = subprocess.Popen([*self.before["server"], *pinned("server", server_command)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=self.environment)
        try:
            wait_for([*self.before["server"], "ss", "-Hltn", f"sport = :{PORT}"], server)
            client = [*self.before["client"], *pinned("client", client_command)]
            return subprocess.run(client, capture_output=True, text=True, env=self.environment, check=True).stdout
        finally:
            server.terminate()
            server.wait()

    def perftest(self, prefix, program, size, how):
        command = {end: [*prefix, program, "-F", "-p", str(PORT), "-s", str(size), *how(end)] for end in ("server", "client")}
        rows = [line.split() for line in self.pair(command["server"], [*command["client"], self.host]).splitlines()
                if line.split()[:1] == [str(size)]]
        if not rows:
            sys.exit(f"{program} printed no result")
        return rows[-1]

    def bandwidth(self, prefix, program, size, seconds, how=lambda end: []):
        """MB/s, as the middle of perftest's seconds has it."""
        return float(self.perftest(prefix, program, size, lambda end: ["-D", str(seconds), *how(end)])[3]) * 1.048576

    def latency(self, prefix, program, size, how=lambda end: []):
        """The typical one, in us."""
        return float(self.perftest(prefix, program, size, lambda end: ["-n", "5000", *how(end)])[4])

    def tcp(self, seconds):
        words = ["iperf3", "-p", str(PORT)]
        text = self.pair([*words, "-s"], [*words, "-c", self.host, "-t", str(seconds), "-l", "64K", "-J"])
        return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e6


def root(*command):
    subprocess.run(command, check=True)


def make_rxe(mtu):
    for device, (link, address) in zip(("rxe_bench0", "rxe_bench1"), RXE.values()):
        root("ip", "link", "add", link, "mtu", str(mtu), "type", "dummy")
        root("ip", "address", "add", f"{address}/24", "dev", link)
        root("ip", "link", "set", link, "up")
        root("rdma", "link", "add", device, "type", "rxe", "netdev", link)


def remove_rxe():
    for link, _ in RXE.values():  # its device goes with it
        subprocess.run(["ip", "link", "delete", link], stderr=subprocess.DEVNULL, check=False)


def why_no_rxe():
    if os.geteuid() != 0:
        return "only root may make rxe devices"
    if subprocess.run(["modprobe", "rdma_rxe"], capture_output=True, check=False).returncode != 0:
        return "this kernel has no module rdma_rxe (linux-modules-extra-$(uname -r) may have it)"
    return ""


def measure(arguments, mtu, wire, prefix):
    """A row's name -> its results by carrier."""
    results = {name: {"tcp": [], "weir": [], "rxe": []} for name, *_ in ROWS + LATENCIES}
    rxe = Place({"server": [], "client": []}, RXE["server"][1], dict(os.environ))
    device = {"server": ["-d", "rxe_bench0"], "client": ["-d", "rxe_bench1"]}
    for _ in range(arguments.repeat):
        tcp = wire.tcp(arguments.seconds)
        for name, program, size in ROWS:
            results[name]["tcp"].append(tcp)
            results[name]["weir"].append(wire.bandwidth(prefix, program, size, arguments.seconds))
            if arguments.rxe:
                results[name]["rxe"].append(rxe.bandwidth([], program, size, arguments.seconds, device.get))
        for name, program, size in LATENCIES:
            results[name]["weir"].append(wire.latency(prefix, program, size))
            if arguments.rxe:
                results[name]["rxe"].append(rxe.latency([], program, size, device.get))
    print(f"\nMTU {mtu}, medians of {arguments.repeat}, MB/s where nothing else is said\n")
    print("| | TCP | Weir | rxe |\n|---|---|---|---|")
    for name, by_carrier in results.items():
        median = {carrier: statistics.median(values) for carrier, values in by_carrier.items() if values}
        cells = [f"{median['tcp']:,.0f}" if "tcp" in median else "-", f"{median['weir']:,.1f}", f"{median['rxe']:,.1f}" if "rxe" in median else "-"]
        if "tcp" in median:
            cells[1] += f" ({median['weir'] / median['tcp']:.2f})"
        if "rxe" in median:
            cells[2] += f" (Weir {median['weir'] / median['rxe']:.2f}x)"
        print(f"| {name} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--mtu", default="1500,9000")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rxe", action="store_true")
    arguments = parser.parse_args()
    for why in (two_namespaces.why_not(), why_no_rxe() if arguments.rxe else ""):
        if why:
            sys.exit(why)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        for mtu in map(int, arguments.mtu.split(",")):
            namespaces = two_namespaces.TwoNamespaces()
            try:
                for end in ("server", "client"):
                    namespaces.run(end, "ip", "link", "set", "wire", "mtu", str(mtu))
                if arguments.rxe:
                    make_rxe(mtu)
                before = {end: namespaces.enter(end) for end in ("server", "client")}
                wire = Place(before, HOST, {**os.environ, "WEIR_RUNTIME_DIR": f"{scratch}/runtime"})
                measure(arguments, mtu, wire, [str(arguments.build.resolve() / "bin/weir"), "run", "--"])
            finally:
                namespaces.end()
                if arguments.rxe:
                    remove_rxe()


if __name__ == "__main__":
    main()
