#!/usr/bin/env python3
"""What `weir trace --pcap` and `weir stat` report about packets between hosts agrees with what the kernel saw.

usage: wire_agrees.py --build DIR      exit status 0: it agrees; 1: what does not is printed; 77: skipped, and why

rping runs between two network namespaces, over each kind of address. Of the traced client each IP packet to and from UDP port
4791 that a packet socket saw must be in the trace, with the same bytes but for the UDP checksum, which is not made yet where that
socket looks, and for IPv6's flow label; and nothing else may be in it. While another one runs, `weir stat` must know at both ends
where the packets go; and where a switch marks packets on their way, the end that got them must have told the other.
"""
import argparse
import collections
import ipaddress
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import two_namespaces
from program import POLL_S, Expired, Program
from run_case import SKIPPED
from trace_agrees import LIMIT_S, RPING_PORT, Disagrees, check_icrc, check_with_tshark, expect, packets_of, wait_for_rdma_listener

ROCE_PORT = 4791
ROUNDS = 5
HOW = ["-C", str(ROUNDS), "-S", "1500", "-V"]  # what both ends of rping need
UDP, IPV4, IPV6 = 17, 0x0800, 0x86dd
HEARD = "every packet is heard from now on"


def plain(ip):
    """An IP packet without the parts in which the two cannot agree; None: not RoCE."""
    version = ip[0] >> 4
    header, protocol = (20, ip[9]) if version == 4 else (40, ip[6])
    if protocol != UDP or int.from_bytes(ip[header + 2:header + 4], "big") != ROCE_PORT:
        return None
    ip = bytearray(ip[:int.from_bytes(ip[2:4], "big") if version == 4 else 40 + int.from_bytes(ip[4:6], "big")])
    ip[header + 6:header + 8] = b"\0\0"
    if version == 6:
        ip[1:4] = bytes((ip[1] & 0xf0, 0, 0))
    return bytes(ip)


def source_of(ip):
    return ipaddress.ip_address(ip[12:16] if ip[0] >> 4 == 4 else ip[8:24])


def listen(interface, path):
    """Writes each RoCE packet that passes to the file, in hexadecimal, until it is told to stop."""
    told_to_end = []
    signal.signal(signal.SIGTERM, lambda *_: told_to_end.append(True))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as every, open(path, "w", encoding="ascii") as out:
        every.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)  # the largest allowed: more than rping sends
        every.bind((interface, 0))
        every.settimeout(0.1)
        print(HEARD, flush=True)
        while True:
            try:
                frame = every.recv(1 << 17)
            except TimeoutError:  # packets from before the signal are read, too
                if told_to_end:
                    break
                continue
            packet = plain(frame[14:]) if int.from_bytes(frame[12:14], "big") in (IPV4, IPV6) else None
            if packet is not None:
                out.write(packet.hex() + "\n")
        lost = int.from_bytes(every.getsockopt(263, 6, 8)[4:8], "little")  # SOL_PACKET, PACKET_STATISTICS
        return 1 if lost else 0


def mark(interface):
    """Acts like a congested switch: sends a marked copy after each RoCE packet that may be marked, until it is told to stop."""
    capable, marked = 2, 3
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as every:
        every.bind((interface, 0))
        print(HEARD, flush=True)
        while True:
            frame, (_, _, way, *_) = every.recvfrom(1 << 17)
            if way != socket.PACKET_OUTGOING or int.from_bytes(frame[12:14], "big") != IPV4 or plain(frame[14:]) is None:
                continue
            frame = bytearray(frame)
            if frame[15] & marked != capable:
                continue
            frame[15] |= marked
            frame[24:26] = frame[40:42] = b"\0\0"  # the checksums; UDP has none
            total = sum(int.from_bytes(frame[at:at + 2], "big") for at in range(14, 34, 2))
            total = (total & 0xffff) + (total >> 16)
            frame[24:26] = (~(total + (total >> 16)) & 0xffff).to_bytes(2, "big")
            every.send(frame)


class Ends:
    """Programs at both ends, with a shared runtime folder."""

    def __init__(self, build, namespaces, scratch):
        self.build, self.namespaces, self.runtime = build, namespaces, scratch / "runtime"
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": str(self.runtime)}
        self.programs = []

    def start(self, end, *words):
        program = Program(end, [*self.namespaces.enter(end), *words], self.environment)
        self.programs.append(program)
        return program

    def weir(self, end, *words):
        return self.start(end, str(self.build / "bin/weir"), *words)

    def statistics(self, end):
        command = [*self.namespaces.enter(end), str(self.build / "bin/weir"), "stat", "--once", "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S, check=True)
        return [qp for process in json.loads(done.stdout)["processes"] for qp in process["queue_pairs"]]

    def end(self):
        for program in self.programs:
            program.end()


def show_difference(traced, seen):
    for packet in (traced - seen).elements():
        raise Disagrees(f"in the trace, but no packet socket saw it: {packet.hex()}")
    for packet in (seen - traced).elements():
        raise Disagrees(f"not in the trace: {packet.hex()}")


def run_traced(ends, scratch, kind):
    address = two_namespaces.ADDRESSES[kind]["server"]
    pcap, heard = scratch / f"{kind}.pcapng", scratch / f"{kind}.heard"
    server = ends.weir("server", "run", "--", "rping", "-s", "-a", address, *HOW)
    wait_for_rdma_listener(ends.runtime, RPING_PORT)
    listener = ends.start("client", sys.executable, __file__, "--listen", "wire", str(heard))
    listener.wait_until_it_prints(HEARD, LIMIT_S)
    client = ends.weir("client", "trace", "--pcap", str(pcap), "--", "rping", "-c", "-a", address, *HOW)
    for program in (client, server):
        expect(program.wait(LIMIT_S), 0, f"exit status of the {program.name}, which printed:\n{program.output}\n")
    listener.kill(signal.SIGTERM)
    expect(listener.wait(LIMIT_S), 0, "exit status of the listener (1: it lost packets)")
    packets = packets_of(pcap)
    for packet in packets:
        check_icrc(packet)
    traced = collections.Counter(plain(packet) for packet in packets)
    in_order = [bytes.fromhex(line) for line in heard.read_text().split()]
    seen = collections.Counter(in_order)
    # Packets that the server still sent, or repeated, after the client had ended were not received.
    theirs = ipaddress.ip_address(address.partition("%")[0])
    while in_order and source_of(in_order[-1]) == theirs and seen[in_order[-1]] > traced[in_order[-1]]:
        seen[in_order.pop()] -= 1
    if len(traced) < ROUNDS * 4:
        raise Disagrees(f"{len(traced)} packets in the trace, of {ROUNDS} messages that were written, read and sent")
    show_difference(traced, seen)
    check_with_tshark(pcap)
    print(f"{kind}: {sum(traced.values())} packets, each as the kernel saw it")


def run_watched(ends):
    address = two_namespaces.ADDRESSES["ipv4"]
    ends.weir("server", "run", "--", "rping", "-s", "-a", address["server"])
    wait_for_rdma_listener(ends.runtime, RPING_PORT)
    ends.weir("client", "run", "--", "rping", "-c", "-a", address["server"], "-C", "0")
    for end, other in (("client", "server"), ("server", "client")):
        deadline = time.monotonic() + LIMIT_S
        while True:
            there = [qp for qp in ends.statistics(end) if qp["peer_address"] == address[other]]
            if there and min(there[0]["counters"][way] for way in ("packets_out", "packets_in")) > 100:
                break
            if time.monotonic() > deadline:
                raise Disagrees(f"weir stat shows no packets to {address[other]} at the {end}: {there}")
            time.sleep(POLL_S)
    print("weir stat: packets to the other end, at both")
    ends.start("client", sys.executable, __file__, "--mark", "wire").wait_until_it_prints(HEARD, LIMIT_S)
    wanted = {"server": ("packets_marked", "cnps_out"), "client": ("cnps_in",)}
    deadline = time.monotonic() + LIMIT_S
    while True:
        there = {end: [qp["counters"] for qp in ends.statistics(end) if qp["peer_address"]] for end in wanted}
        if all(sum(counters[name] for counters in there[end]) > 0 for end in wanted for name in wanted[end]):
            break
        if time.monotonic() > deadline:
            raise Disagrees(f"packets are marked on their way to the server, and weir stat shows {there}")
        time.sleep(POLL_S)
    print("weir stat: the server got marked packets and told the client")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--listen", nargs=2)
    parser.add_argument("--mark")
    arguments = parser.parse_args()
    if arguments.listen:
        return listen(*arguments.listen)
    if arguments.mark:
        return mark(arguments.mark)
    if shutil.which("rping") is None:
        print("skipped: rping is not installed")
        return SKIPPED
    if forbidden := two_namespaces.why_not():
        print(f"skipped: {forbidden}")
        return SKIPPED
    namespaces = two_namespaces.TwoNamespaces()
    try:
        for end in namespaces.holders:  # batches are split before the packet socket sees them
            namespaces.run(end, "ip", "link", "set", "wire", "gso_max_segs", "1")
        runs = [(kind, lambda ends, scratch, kind=kind: run_traced(ends, scratch, kind)) for kind in two_namespaces.ADDRESSES]
        runs.append(("weir stat", lambda ends, scratch: run_watched(ends)))
        for name, run in runs:
            with tempfile.TemporaryDirectory(prefix="weir-wire-", dir="/dev/shm") as scratch:
                ends = Ends(arguments.build.resolve(), namespaces, pathlib.Path(scratch))
                try:
                    run(ends, pathlib.Path(scratch))
                except (Disagrees, Expired, subprocess.SubprocessError) as wrong:
                    print(f"{name}: {str(wrong)[:4000]}")
                    return 1
                finally:
                    ends.end()
    finally:
        namespaces.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
