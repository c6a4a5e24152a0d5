#!/usr/bin/env python3
"""How long a new replica takes to copy all data from its primary: over TCP and over RDMA, alternating.

  bench/full_sync.py [--bin build/release/bin] [--mb 300] [--values 100,1000,100000] [--transports tcp,rdma] [--runs 5]

Runs two weir-servers, each on its own core, with a new replica for each run.
"""
import argparse
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

FILL = """
local value = string.rep('x', tonumber(ARGV[1]))
for i = tonumber(ARGV[2]), tonumber(ARGV[3]) do redis.call('set', 'key:' .. i, value) end
"""
CERTIFICATE = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
               "-subj", "/CN=bench", "-keyout", "key.pem", "-out", "cert.pem"]


class Server:
    def __init__(self, program, folder, name, core, *options):
        self.path = str(folder / name)
        words = [program, "--port", "0", "--unixsocket", self.path, "--dir", folder, "--save", "", *options]
        self.process = subprocess.Popen(["taskset", "-c", str(core), *words], stdout=subprocess.PIPE, text=True)
        while "Ready to accept connections" not in self.process.stdout.readline():
            pass
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(self.path)

    def ask(self, *words):
        """Returns the reply, which is one line or one bulk string."""
        parts = [str(word).encode() for word in words]
        self.link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        reply = b""
        while not reply.endswith(b"\r\n") or (reply[:1] == b"$" and not reply[1:2] == b"-" and
                                              len(reply) < reply.index(b"\r\n") + 4 + int(reply[1:reply.index(b"\r\n")])):
            reply += self.link.recv(1 << 16)
        return reply.decode()

    def fact(self, section, name):
        return self.ask("info", section).partition(f"{name}:")[2].partition("\r\n")[0]

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.kill()
        self.process.wait()


def free_ports(count):
    taken = [socket.socket() for _ in range(count)]
    for each in taken:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


def options_of(transport, folder):
    return ["--rdma-provider", "weir", "--tls-ca-cert-file", folder / "cert.pem",
            *(["--rdma-replication", "yes"] if "rdma" in transport else []), *(["--tls-replication", "yes"] if "tls" in transport else [])]


def synchronise(arguments, folder, transport, primary, port):
    """Seconds until the replica has all data, and the processor time of each end."""
    replica = Server(arguments.bin / "weir-server", folder, "replica", 1, *options_of(transport, folder))
    try:
        before = primary.cpu_s(), replica.cpu_s()
        began = time.perf_counter()
        replica.ask("replicaof", "127.0.0.1", port)
        while replica.fact("replication", "master_link_status") != "up":
            time.sleep(0.005)
        took = time.perf_counter() - began
        if replica.fact("replication", "master_link_transport") != transport:
            raise SystemExit(f"that was not {transport}")
        return took, primary.cpu_s() - before[0], replica.cpu_s() - before[1]
    finally:
        replica.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=lambda path: pathlib.Path(path).absolute(), default="build/release/bin")
    parser.add_argument("--mb", type=int, default=300)
    parser.add_argument("--values", default="100,1000,100000")
    parser.add_argument("--transports", default="tcp,rdma")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    transports = arguments.transports.split(",")
    print(f"{'value':>8} {'over':>9} {'s':>7} {'MB/s':>6} {'primary s':>9} {'replica s':>9}  as fast as the first")
    for size in map(int, arguments.values.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run(CERTIFICATE, cwd=folder, check=True, capture_output=True)
            measure(arguments, folder, transports, size)


def measure(arguments, folder, transports, size):
    ports = dict(zip(("tcp", "tls", "rdma", "rdma+tls"), free_ports(4)))
    settings = {"tcp": "--port", "tls": "--tls-port", "rdma": "--rdma-port", "rdma+tls": "--rdma-tls-port"}
    primary = Server(arguments.bin / "weir-server", folder, "primary", 0, "--bind", "127.0.0.1", "--rdma-provider", "weir",
                     "--tls-cert-file", folder / "cert.pem", "--tls-key-file", folder / "key.pem", "--tls-auth-clients", "no",
                     *(word for transport in transports for word in (settings[transport], str(ports[transport]))))
    try:
        keys = max(arguments.mb * 1_000_000 // size, 1)
        for first in range(1, keys + 1, 10_000):
            primary.ask("eval", FILL, 0, size, first, min(first + 9_999, keys))
        times = {transport: [] for transport in transports}
        for _ in range(arguments.runs):
            for transport in transports:
                times[transport].append(synchronise(arguments, folder, transport, primary, ports[transport]))
        for transport in transports:
            took, at_primary, at_replica = (statistics.median(each) for each in zip(*times[transport]))
            ratios = [first[0] / this[0] for first, this in zip(times[transports[0]], times[transport])]
            print(f"{size:>8} {transport:>9} {took:>7.2f} {keys * size / 1e6 / took:>6.0f} {at_primary:>9.2f} {at_replica:>9.2f}  "
                  f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
    finally:
        primary.end()


if __name__ == "__main__":
    main()
