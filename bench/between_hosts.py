#!/usr/bin/env python3
"""The software NIC between two hosts beside TCP, beside plain UDP, and beside Soft-RoCE where this kernel has it.

usage: bench/between_hosts.py [--build build/release] [--mtu 1500,9000] [--only NAME,NAME] [--repeat N] [--seconds N] [--rxe]

The hosts are two network namespaces joined by a wire (veth), made without privileges. Servers are pinned to CPU 0, clients to
CPU 1. What is compared takes turns, --repeat times, and medians are shown. The tables, by their names for --only:

  bulk      WRITE, SEND and READ by perftest under `weir run`, beside iperf3 (64 KiB sends)
  raw       WRITE and SEND of 1 MiB beside the same packets without a connection (udp_path_bench) and beside iperf3: throughput, and
            processor time a byte, of both ends
  small     64-byte SENDs in lists of 32 beside iperf3's sends of 64 bytes
  ping      SEND of 64 bytes there and back beside UDP's (udp_path_bench), with ends that poll and with ends that sleep
  loss      WRITE of 1 MiB, and the longest time of a SEND, where 0.1 % of the packets are lost, and none
  senders   8 programs that send to one (iperf on rsockets) beside one that does
  pairs     WRITE of 64 KiB on 1,000 queue pairs beside 1
  connects  rdma_cm's connections, made and ended, a second (cmtime)
  gets      GET of 16 bytes by weir-benchmark from weir-server, one thread each, beside the same over TCP: rate, median latency, and
            processor time a GET, of both ends
  calls     RPCs of rpc_echo_bench with 128 bytes, and with 1 MiB attached, beside the same over TCP: likewise
  carriers  WRITE of 1 MiB, SEND of 64 bytes there and back, and 64-byte SENDs in lists of 32, by UDP and by TCP streams (weir run
            --carrier tcp), beside iperf3
  tensors   fetches of 4 KiB and of 64 MiB (tensor_fetches.py), beside the same over TCP: time, and processor time, of both ends

On the wire of `loss` packets travel one by one, as between NICs: runs that the kernel would hand over whole would be lost whole. For
`senders`, set net.core.rmem_max to 212992 first to have the receive buffers that most systems have.

--rxe (root, the module rdma_rxe, and `rdma`) adds perftest on two rxe devices of this namespace to `bulk`, on dummy links: between
namespaces Soft-RoCE works from Linux 7.1 on only. Its packets then skip the IP stack, which favours it. The goals are 3x of it at MTU
1500 and 2x at 9000. The devices and links are removed at the end.
"""
import argparse
import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from host_pair import PORT, ROCE_PORT, Place, cpu_s

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import two_namespaces  # noqa: E402

HOST, OTHER_HOST = (two_namespaces.ADDRESSES["ipv4"][end] for end in ("server", "client"))
ROWS = [("WRITE 1 MiB", "ib_write_bw", 1 << 20), ("SEND 64 KiB", "ib_send_bw", 1 << 16), ("READ 64 KiB", "ib_read_bw", 1 << 16)]
LATENCIES = [("SEND 64 B, us", "ib_send_lat", 64), ("WRITE 64 B, us", "ib_write_lat", 64)]
RXE = {"server": ("rxebench0", "10.77.1.1"), "client": ("rxebench1", "10.77.1.2")}
LOST = 0.001
GETS = [("1 connection", 1, 1, 10_000), ("16 connections", 16, 1, 60_000), ("50 connections", 50, 1, 100_000),
        ("50 connections, 16 in each", 50, 16, 600_000)]
MIB = 1 << 20
CALLS = [("128 B, 1 in flight", "--in-flight", "1"), ("16 in flight", "--in-flight", "16"),
         ("50 connections", "--in-flight", "50", "--connections", "each"),
         ("1 MiB attached, to and fro", "--in-flight", "1", "--attachments", "--bytes", str(MIB))]
FETCHES = [("4 KiB", 4096, 2_000), ("64 MiB", 64 * MIB, 20)]

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


class Bench:
    def __init__(self, arguments, mtu, namespaces, wire):
        self.arguments, self.mtu, self.namespaces, self.wire = arguments, mtu, namespaces, wire
        self.payload = 4096 if mtu >= 4176 else 1024
        programs = arguments.build.absolute() / "bin"
        self.weir = [str(programs / "weir"), "run", "--"]
        self.server = [str(programs / "weir-server"), "--port", str(PORT), "--rdma-port", str(PORT), "--bind", HOST, "--protected-mode", "no",
                       "--save", "", "--rdma-provider", "weir"]
        self.client = [str(programs / "weir-benchmark"), "-h", HOST, "-p", str(PORT), "-q", "--threads", "1", "-t", "get", "-d", "16",
                       "--rdma-provider", "weir"]
        self.rsockets = [str(programs / "weir"), "run", "--rsockets", "--"]
        self.udp_path = str(programs / "udp_path_bench")
        self.rpc = str(programs / "rpc_echo_bench")

    def in_turn(self, *measured):
        """The medians of what each function returns: a number, or numbers."""
        results = [[] for _ in measured]
        for _ in range(self.arguments.repeat):
            for result, measure in zip(results, measured):
                value = measure()
                result.append(value if isinstance(value, tuple) else (value,))
        return [tuple(map(statistics.median, zip(*result))) for result in results]

    def plain(self, *words, spins=()):
        """What udp_path_bench prints, as numbers by name."""
        (text,), _ = self.wire.together([self.udp_path, "--receive", *spins],
                                        [[self.udp_path, "--to", HOST, "--from", OTHER_HOST, *words, *spins]], ("u", ROCE_PORT))
        return {name: float(value) for name, value in re.findall(r"^(.+?)  +([\d.]+)$", text, re.MULTILINE)}

    def plain_stream(self):
        said = self.plain("--seconds", str(self.arguments.seconds), "--mtu", str(self.payload))
        return said["MB/s"], said["sender ns/byte"], said["receiver ns/byte"], said["lost packets"]

    def say(self, *lines):
        for line in lines:
            print(f"| {line} |", flush=True)

    def head(self, *titles):
        print(f"\nMTU {self.mtu}, medians of {self.arguments.repeat}, load average {os.getloadavg()[0]:.1f}\n")
        self.say(" | ".join(titles))
        print("|---" * len(titles) + "|")

    # ---- the tables

    def bulk(self):
        results = {name: {"tcp": [], "weir": [], "rxe": []} for name, *_ in ROWS + LATENCIES}
        rxe = Place({"server": [], "client": []}, RXE["server"][1], dict(os.environ))
        device = {"server": ["-d", "rxe_bench0"], "client": ["-d", "rxe_bench1"]}
        seconds, wire = self.arguments.seconds, self.wire
        for _ in range(self.arguments.repeat):
            tcp, _ = wire.tcp(seconds)
            for name, program, size in ROWS:
                results[name]["tcp"].append(tcp)
                results[name]["weir"].append(wire.bandwidth(self.weir, program, size, seconds))
                if self.arguments.rxe:
                    results[name]["rxe"].append(rxe.bandwidth([], program, size, seconds, device.get))
            for name, program, size in LATENCIES:
                results[name]["weir"].append(wire.latency(self.weir, program, size)[0])
                if self.arguments.rxe:
                    results[name]["rxe"].append(rxe.latency([], program, size, device.get)[0])
        self.head("MB/s where nothing else is said", "TCP", "Weir", "rxe")
        for name, by_carrier in results.items():
            median = {carrier: statistics.median(values) for carrier, values in by_carrier.items() if values}
            cells = [f"{median['tcp']:,.0f}" if "tcp" in median else "-", f"{median['weir']:,.1f}", f"{median['rxe']:,.1f}" if "rxe" in median else "-"]
            if "tcp" in median:
                cells[1] += f" ({median['weir'] / median['tcp']:.2f})"
            if "rxe" in median:
                cells[2] += f" (Weir {median['weir'] / median['rxe']:.2f}x)"
            self.say(" | ".join([name, *cells]))

    def raw(self):
        count = self.arguments.seconds * 2000
        tcp, plain, write, send = self.in_turn(lambda: self.wire.tcp(self.arguments.seconds), self.plain_stream,
                                               lambda: self.wire.transfers(self.weir, "ib_write_bw", MIB, count),
                                               lambda: self.wire.transfers(self.weir, "ib_send_bw", MIB, count, ["-e"]))
        self.head("", "MB/s", "processor time of both ends, ns/byte")
        of_plain = plain[1] + plain[2]
        self.say(f"TCP | {tcp[0]:,.0f} | {tcp[1]:.3f}",
                 f"packets without a connection | {plain[0]:,.0f} | {of_plain:.3f} (sender {plain[1]:.3f}, receiver {plain[2]:.3f})")
        for name, (rate, ns) in (("WRITE 1 MiB, sender polls", write), ("SEND 1 MiB, both ends sleep", send)):
            self.say(f"{name} | {rate:,.0f} ({rate / tcp[0]:.2f} of TCP, {rate / plain[0]:.2f} of packets) | "
                     f"{ns:.3f} ({ns / tcp[1]:.2f} of TCP, {ns / of_plain:.2f} of packets)")
        print(f"\nPackets lost without a connection: {plain[3]:,.0f}")

    def small(self):
        def tcp_rate():
            return self.wire.tcp(self.arguments.seconds, "64")[0] / 64

        def weir_rate():
            return self.wire.bandwidth(self.weir, "ib_send_bw", 64, self.arguments.seconds, lambda end: ["-l", "32"]) / 64

        (tcp,), (weir,) = self.in_turn(tcp_rate, weir_rate)
        self.head("64-byte messages, millions a second", "TCP", "Weir")
        self.say(f"SEND in lists of 32 | {tcp:.2f} | {weir:.2f} ({weir / tcp:.2f})")

    def ping(self):
        def plain(*spins):
            said = self.plain("--ping", "20000", "--mtu", "64", spins=spins)
            return said["us, median"], said["us, 99.9th"]

        def weir(*words):
            return self.wire.latency(self.weir, "ib_send_lat", 64, lambda end: words, turns=20_000)[:2]

        results = self.in_turn(lambda: plain("--spin"), weir, plain, lambda: weir("-e"))
        self.head("64 bytes, half of a round trip, us (99.9th percentile)", "UDP", "SEND")
        for name, udp, send in (("both ends poll", *results[:2]), ("both ends sleep", *results[2:])):
            self.say(f"{name} | {udp[0]:.1f} ({udp[1]:.1f}) | {send[0]:.1f} ({send[1]:.1f}), {send[0] / udp[0]:.2f}x")

    @contextlib.contextmanager
    def losing(self, share):
        """Drops that share of what comes to either end."""
        # Classic BPF: a random number of 32 bits, greater than the limit? Drop (2), else pass (0).
        limit = round((1 - share) * (1 << 32))
        drops = f"4,32 0 0 {0xfffff038},37 0 1 {limit},6 0 0 2,6 0 0 0"
        for end in ("server", "client"):
            self.namespaces.run(end, "tc", "qdisc", "add", "dev", "wire", "clsact")
            self.namespaces.run(end, "tc", "filter", "add", "dev", "wire", "ingress", "bpf", "direct-action", "bytecode", drops)
        try:
            yield
        finally:
            for end in ("server", "client"):
                self.namespaces.run(end, "tc", "qdisc", "del", "dev", "wire", "clsact")

    def cut_up_before_the_wire(self, most):
        for end in ("server", "client"):
            self.namespaces.run(end, "ip", "link", "set", "wire", "gso_max_segs", str(most))

    def loss(self):
        def rate():
            return self.wire.bandwidth(self.weir, "ib_write_bw", MIB, self.arguments.seconds)

        def longest_ms():
            return self.wire.latency(self.weir, "ib_send_lat", 64, turns=20_000)[2] * 2 / 1000

        def lossy(measure):
            with self.losing(LOST):
                return measure()

        def whole_and_lossy():
            return self.in_turn(rate, lambda: lossy(rate), longest_ms, lambda: lossy(longest_ms))

        self.cut_up_before_the_wire(1)
        (whole,), (lossy_rate,), (longest,), (lossy_longest,) = whole_and_lossy()
        self.cut_up_before_the_wire(65_535)
        self.head("", "no loss", f"{LOST:.1%} of the packets lost")
        self.say(f"WRITE 1 MiB, MB/s | {whole:,.0f} | {lossy_rate:,.0f} ({lossy_rate / whole:.2f})",
                 f"the longest of 20,000 round trips of SEND, ms | {longest:.1f} | {lossy_longest:.1f}")

    def overflows(self):
        """Datagrams, or runs of them, that reached the server's sockets, and those that found them full."""
        names, values = (line.split()[1:] for line in self.wire.output("server", "grep", "^Udp:", "/proc/self/net/snmp").splitlines())
        count = dict(zip(names, map(int, values)))
        return count["InDatagrams"], count["RcvbufErrors"]

    def senders(self):
        def rate(clients):
            client = [*self.rsockets, "iperf", "-c", HOST, "-p", str(PORT), "-t", str(self.arguments.seconds), "-y", "C"]
            before = self.overflows()
            texts, _ = self.wire.together([*self.rsockets, "iperf", "-s", "-p", str(PORT)], [client] * clients, ("u", ROCE_PORT))
            came, full = (after - earlier for after, earlier in zip(self.overflows(), before))
            return sum(float(text.strip().splitlines()[-1].split(",")[-1]) for text in texts) / 8e6, 100 * full / max(came + full, 1)

        one, eight = self.in_turn(lambda: rate(1), lambda: rate(8))
        most = pathlib.Path("/proc/sys/net/core/rmem_max").read_text().strip()
        self.head(f"receive buffer at most {most} bytes", "1 sender", "8 senders")
        self.say(f"rsockets, MB/s together | {one[0]:,.0f} | {eight[0]:,.0f} ({eight[0] / one[0]:.2f})",
                 f"found the receive buffer full | {one[1]:.3f} % | {eight[1]:.3f} %")

    def pairs(self):
        def rate(queue_pairs, depth):
            return self.wire.bandwidth(self.weir, "ib_write_bw", 1 << 16, self.arguments.seconds,
                                       lambda end: ["-q", str(queue_pairs), "-t", str(depth), "-N"])

        (one,), (many,) = self.in_turn(lambda: rate(1, 128), lambda: rate(1000, 1))
        self.head("WRITE 64 KiB, MB/s", "1 queue pair", "1,000 queue pairs")
        self.say(f"Weir | {one:,.0f} | {many:,.0f} ({many / one:.2f})")

    def connects(self, count=1000):
        def us_each():
            words = [*self.weir, "cmtime", "-p", str(PORT), "-c", str(count)]
            (text,), _ = self.wire.together([*words, "-b", HOST], [[*words, "-s", HOST]], ("u", ROCE_PORT))
            total_ms = {name: float(ms) for name, ms in re.findall(r"^(\w[\w ]*?)\s*:\s*([\d.]+)", text, re.MULTILINE)}
            return (total_ms["connect"] + total_ms["disconnect"]) * 1000 / count, sum(total_ms.values()) * 1000 / count

        ((both, everything),) = self.in_turn(us_each)
        self.head("rdma_cm", "us", "a second")
        self.say(f"connect and disconnect | {both:,.0f} | {1e6 / both:,.0f}",
                 f"with identifier, addresses, route and queue pair, made and destroyed | {everything:,.0f} | {1e6 / everything:,.0f}")

    def gets(self):
        def measure(carrier, connections, in_each, count):
            def run(many):
                (text,), used_s = self.wire.together(
                    self.server, [[*self.client, *carrier, "-c", str(connections), "-P", str(in_each), "-n", str(many)]], ("t", PORT))
                rate, p50 = re.search(r"([\d.]+) requests per second, p50=([\d.]+) msec", text).groups()
                return float(rate), float(p50) * 1000, used_s

            (*_, beginning_s), (rate, p50_us, used_s) = run(count // 10), run(count)
            return rate, p50_us, (used_s - beginning_s) * 1e6 / (count - count // 10)

        self.head("GET of 16 bytes", "TCP: a second; p50; processor", "RDMA", "RDMA's rate; processor, of TCP's")
        for name, *how in GETS:
            tcp, rdma = self.in_turn(lambda how=how: measure([], *how), lambda how=how: measure(["--rdma"], *how))
            cells = [f"{rate:,.0f}; {p50_us:,.0f} us; {us:.1f} us" for rate, p50_us, us in (tcp, rdma)]
            self.say(" | ".join([name, *cells, f"{rdma[0] / tcp[0]:.2f}; {rdma[2] / tcp[2]:.2f}"]))

    def calls(self):
        network = f"/proc/{self.namespaces.holders['client'].pid}/ns/net"

        def measure(carrier, words):
            def run(seconds):
                used_s = cpu_s()
                text = self.wire.output("server", self.rpc, "--address", f"{carrier}://{HOST}:0", "--client-network", network,
                                        "--seconds", str(seconds), *words)
                rate, p50_us = re.search(r"([\d.]+) qps .* p50 +([\d.]+)", text).groups()
                return float(rate), float(p50_us), cpu_s() - used_s, float(rate) * seconds * 1.2  # with those that warm up

            *_, beginning_s, few = run(self.arguments.seconds / 10)
            rate, p50_us, used_s, count = run(self.arguments.seconds)
            return rate, p50_us, (used_s - beginning_s) * 1e6 / (count - few)

        self.head("RPC", "TCP: a second; p50; processor", "RDMA", "RDMA's rate; processor, of TCP's")
        for name, *words in CALLS:
            tcp, rdma = self.in_turn(lambda words=words: measure("tcp", words), lambda words=words: measure("rdma", words))
            cells = [f"{rate:,.0f}; {p50_us:,.0f} us; {us:.1f} us" for rate, p50_us, us in (tcp, rdma)]
            self.say(" | ".join([name, *cells, f"{rdma[0] / tcp[0]:.2f}; {rdma[2] / tcp[2]:.2f}"]))

    def carriers(self):
        streams = [*self.weir[:-1], "--carrier", "tcp", "--"]
        count, seconds = self.arguments.seconds * 2000, self.arguments.seconds

        def small(weir):
            return self.wire.bandwidth(weir, "ib_send_bw", 64, seconds, lambda end: ["-l", "32"]) / 64

        self.head("", "UDP", "TCP streams", "TCP (iperf3)")
        tcp, *writes = self.in_turn(lambda: self.wire.tcp(seconds), *(lambda weir=weir: self.wire.transfers(weir, "ib_write_bw", MIB, count)
                                                                      for weir in (self.weir, streams)))
        cells = [f"{rate:,.0f}; {ns:.3f}" for rate, ns in (*writes, tcp[:2])]
        self.say(" | ".join(["WRITE 1 MiB: MB/s; processor of both ends, ns/byte", *cells]))
        pings = self.in_turn(*(lambda weir=weir: self.wire.latency(weir, "ib_send_lat", 64, turns=20_000)[:2] for weir in (self.weir, streams)))
        self.say(" | ".join(["SEND 64 bytes, half of a round trip, us (99.9th percentile)", *(f"{us:.1f} ({most:.1f})" for us, most in pings), "-"]))
        rates = self.in_turn(*(lambda weir=weir: small(weir) for weir in (self.weir, streams)))
        self.say(" | ".join(["64-byte SENDs in lists of 32, millions a second", *(f"{rate:.2f}" for (rate,) in rates), "-"]))

    def tensors(self):
        program = ["/usr/bin/python3", "-B", str(ROOT / "bench/tensor_fetches.py"), str(self.arguments.build.absolute())]

        def measure(carrier, size, count):
            def run(many):
                (text,), used_s = self.wire.together([*program, "hub", f"rdma://{HOST}:{PORT}?fallback=tcp", str(size)],
                                                     [[*program, "peer", f"{carrier}://{HOST}:{PORT}", str(many), str(size)]], ("t", PORT))
                return float(text.split()[-1]), used_s

            (_, beginning_s), (p50_us, used_s) = run(count // 10), run(count)
            return p50_us, (used_s - beginning_s) * 1e6 / (count - count // 10)

        self.head("fetch of an array", "TCP: median; processor", "RDMA", "RDMA's, of TCP's")
        for name, *how in FETCHES:
            tcp, rdma = self.in_turn(lambda how=how: measure("tcp", *how), lambda how=how: measure("rdma", *how))
            self.say(" | ".join([name, *(f"{p50_us:,.0f} us; {us:,.0f} us" for p50_us, us in (tcp, rdma)),
                                 f"{rdma[0] / tcp[0]:.2f}; {rdma[1] / tcp[1]:.2f}"]))


TABLES = ("bulk", "raw", "small", "ping", "loss", "senders", "pairs", "connects", "gets", "carriers", "calls", "tensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--mtu", default="1500,9000")
    parser.add_argument("--only", default=",".join(TABLES), help="the tables to make, by name")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rxe", action="store_true")
    arguments = parser.parse_args()
    tables = arguments.only.split(",")
    if unknown := [name for name in tables if name not in TABLES]:
        parser.error(f"no table is called {unknown[0]}; there are {', '.join(TABLES)}")
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
                bench = Bench(arguments, mtu, namespaces, wire)
                for name in tables:
                    getattr(bench, name)()
            finally:
                namespaces.end()
                if arguments.rxe:
                    remove_rxe()


if __name__ == "__main__":
    main()
