#!/usr/bin/env python3
"""What `weir trace` records of Debian's programs agrees with the work they were given.

usage: trace_agrees.py --build DIR      exit status 0: it agrees; 1: what does not is printed; 77: skipped, and why

Each row runs a server and a client of perftest under `weir trace`: ITERATIONS work requests must be ITERATIONS lines of
the log and their packets, in order, with every packet number once (again after an RNR NAK) and an ICRC that another
implementation of the CRC (zlib's) finds right. Where tshark is installed, it must know each packet as RoCEv2.
"""
import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from program import POLL_S, Expired, Program
from run_case import free_port, listening

LIMIT_S = 60
ITERATIONS = 1000
MTU = 1024
RC_ACK = 0x11
RNR_NAK = 1  # the upper three bits of an AETH's syndrome: IBA table 43
RPING_PORT = "7174"  # the default; RDMA ports belong to the runtime folder, so no other program can have it
NAMES = {0x00: "SEND_FIRST", 0x01: "SEND_MIDDLE", 0x02: "SEND_LAST", 0x04: "SEND_ONLY", 0x06: "WRITE_FIRST", 0x07: "WRITE_MIDDLE",
         0x08: "WRITE_LAST", 0x0a: "WRITE_ONLY", 0x0c: "READ", 0x0d: "RESPONSE_FIRST", 0x0e: "RESPONSE_MIDDLE",
         0x0f: "RESPONSE_LAST", 0x10: "RESPONSE_ONLY", 0x11: "ACK", 0x12: "ATOMIC_ACK", 0x13: "CMP_SWAP", 0x14: "FETCH_ADD"}

# program and its own options, message bytes, operation in the log, packets of one message
ROWS = [
    ("ib_write_bw", 8, "WRITE", ["WRITE_ONLY", "ACK"]),
    ("ib_write_bw", 2100, "WRITE", ["WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "ACK"]),
    ("ib_read_bw", 2048, "READ", ["READ", "RESPONSE_FIRST", "RESPONSE_LAST"]),
    ("ib_send_bw", 1024, "SEND", ["SEND_ONLY", "ACK"]),
    ("ib_send_bw -r 8", 2048, "SEND", ["SEND_FIRST", "SEND_LAST", "ACK"]),  # few receives: many refusals
    ("ib_atomic_bw", 8, "FETCH_ADD", ["FETCH_ADD", "ATOMIC_ACK"]),
]


class Disagrees(Exception):
    pass


def expect(found, wanted, what):
    if found != wanted:
        raise Disagrees(f"{what}: {found}, not {wanted}")


def packets_of(path):
    """The packets of a pcapng file, without their Ethernet headers."""
    data = path.read_bytes()
    at, packets = 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            kept, size = struct.unpack_from("<II", data, at + 20)
            expect(kept, size, "bytes kept of a packet")
            packets.append(data[at + 28 + 14:at + 28 + kept])
        expect(struct.unpack_from("<I", data, at + length - 4)[0], length, "length at the end of a block")
        at += length
    return packets


def check_icrc(ip):
    """Computed by the rule for IPv4 and IPv6, with zlib's CRC-32."""
    masked = bytearray(ip[:-4])
    if ip[0] >> 4 == 6:
        start = 40
        masked[0] |= 0x0f
        for i in (1, 2, 3, 7):
            masked[i] = 0xff
    else:
        start = 20
        for i in (1, 8, 10, 11):
            masked[i] = 0xff
    masked[start + 6] = masked[start + 7] = masked[start + 8 + 4] = 0xff
    expect(struct.unpack("<I", ip[-4:])[0], zlib.crc32(b"\xff" * 8 + bytes(masked)), "ICRC")
    return ip[start + 8:-4]


def check_packets(path, per_message):
    """How many requests were refused: a SEND may find no receive if the server gets no processor for a while."""
    names, refused, expected_psn = [], 0, None
    for ip in packets_of(path):
        bth = check_icrc(ip)
        psn = int.from_bytes(bth[9:12], "big")
        if bth[0] == RC_ACK and bth[12] >> 5 == RNR_NAK:
            expect(names.pop(), per_message[0], "what has an RNR NAK")
            refused, expected_psn = refused + 1, psn  # it is repeated with the same PSN (IBA 9.7.5.2.8)
            continue
        names.append(NAMES.get(bth[0], hex(bth[0])))
        answer = bth[0] in (0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12)
        if expected_psn is not None and not answer:
            expect(psn, expected_psn, f"PSN of packet {len(names)}")
        if bth[0] not in (0x11, 0x12, 0x0c):  # the responses to a READ use the PSNs from the READ's own on
            expected_psn = psn + 1 & 0xffffff
    expect(names, per_message * ITERATIONS, "packets")
    return refused


def check_with_tshark(path):
    tshark = shutil.which("tshark")
    if tshark is None:
        print("tshark is not installed: Wireshark's opinion was not asked")
        return
    fields = ["-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.malformed"]
    done = subprocess.run([tshark, "-r", str(path), *fields], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    protocols = {line.split("\t")[0] for line in done.stdout.splitlines()}
    expect(protocols, {"RRoCE"}, "protocols that tshark sees")
    expect([line for line in done.stdout.splitlines() if "alformed" in line][:1], [], "packets that tshark cannot read")


def wait_for_rdma_listener(runtime, port):
    deadline = time.monotonic() + LIMIT_S
    while not any(listening(path) for path in runtime.glob(f"net-*/cm/*-{port}/*")):
        if time.monotonic() > deadline:
            raise Expired(f"the server did not listen on RDMA port {port}")
        time.sleep(POLL_S)


def run_pair(build, scratch, port, server_command, client_command, trace_options):
    """Waits until both have ended successfully; the client is traced."""
    environment = {**os.environ, "WEIR_RUNTIME_DIR": str(scratch / "runtime")}
    server = Program("server", [str(build / "bin/weir"), "run", "--", *server_command], environment)
    client = None
    try:
        if port == RPING_PORT:
            wait_for_rdma_listener(scratch / "runtime", port)
        else:
            server.wait_until_listening(int(port), LIMIT_S)
        client = Program("client", [str(build / "bin/weir"), "trace", *trace_options, "--", *client_command], environment)
        for program in (client, server):
            status = program.wait(LIMIT_S)
            expect(status, 0, f"exit status of the {program.name}, which printed:\n{program.output}\n")
    finally:
        for program in (server, client):
            if program is not None and program.process.poll() is None:
                program.process.kill()


def run_row(build, scratch, row):
    program, size, operation, per_message = row
    name, *options = program.split()
    port = str(free_port())
    log, pcap = scratch / f"{name}-{size}.log", scratch / f"{name}-{size}.pcapng"
    sized = [] if name == "ib_atomic_bw" else ["-s", str(size)]
    command = [name, *options, "-p", port, *sized, "-n", str(ITERATIONS), "-m", str(MTU), "-F"]
    run_pair(build, scratch, port, command, [*command, "127.0.0.1"], ["--log", str(log), "--pcap", str(pcap)])
    lines = log.read_text().splitlines()
    posted = [line for line in lines if f" post {operation} " in line]
    failed = [line for line in lines if " comp " in line and "success" not in line]
    expect(len(posted), ITERATIONS, f"lines of posted {operation}s")
    registered = set(re.findall(r" - register 0x\w+: \d+ bytes, key (0x\w+),", "\n".join(lines)))
    used = set(re.findall(r"(?:from|into) 0x\w+ key (0x\w+)", "\n".join(posted)))
    expect(used - registered, set(), "keys that were used and not registered")
    expect(set(re.findall(r" - deregister key (0x\w+)", "\n".join(lines))), registered, "keys that were deregistered")
    expect(failed[:1], [], "completions with an error")
    signaled = sum("signaled" in line for line in posted)
    expect(sum(f" comp {operation} " in line for line in lines), signaled, f"completions of {signaled} signaled {operation}s")
    refused = check_packets(pcap, per_message)
    check_with_tshark(pcap)
    print(f"{program} -s {size}: {ITERATIONS} {operation}s, {ITERATIONS * len(per_message)} packets, {refused} refusals")


def run_shared_receives(build, scratch):
    """Each receive that completes was posted before, to the SRQ."""
    port, log = str(free_port()), scratch / "srq.log"
    command = ["ibv_srq_pingpong", "-p", port, "-q", "2", "-r", "16", "-n", "20"]
    run_pair(build, scratch, port, command, [*command, "127.0.0.1"], ["--log", str(log)])
    posted = received = 0
    for line in log.read_text().splitlines():
        posted += " srq post RECV " in line
        received += " comp RECV " in line
        if received > posted:
            raise Disagrees(f"more receives completed than were posted: {line}")
    if received < 20:
        raise Disagrees(f"{received} completions of receives, of 20 messages")
    print(f"ibv_srq_pingpong: {posted} receives posted, {received} completed")


def run_connection(build, scratch):
    """The events of a connection, in order; on rping's own port."""
    log = scratch / "cm.log"
    server = ["rping", "-s", "-a", "127.0.0.1", "-C", "3"]
    run_pair(build, scratch, RPING_PORT, server, ["rping", "-c", "-a", "127.0.0.1", "-C", "3"], ["--log", str(log)])
    events = [line.split(" cm ")[1].split()[0] for line in log.read_text().splitlines() if " cm " in line]
    expected = ["ADDR_RESOLVED", "ROUTE_RESOLVED", "ESTABLISHED"]  # it ends without waiting for the last event
    expect(events[:3], [f"RDMA_CM_EVENT_{name}" for name in expected], "events")
    print("rping:", ", ".join(events))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    missing = sorted({name for name in ("ibv_srq_pingpong", "rping", *(row[0].split()[0] for row in ROWS)) if shutil.which(name) is None})
    if missing:
        print("skipped:", ", ".join(missing), "not installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="weir-trace-") as scratch:
        runs = [(f"{row[0]} -s {row[1]}", run_row, [row]) for row in ROWS]
        runs.append(("ibv_srq_pingpong", run_shared_receives, []))
        runs.append(("rping", run_connection, []))
        for name, run, arguments in runs:
            try:
                run(build, pathlib.Path(scratch), *arguments)
            except (Disagrees, Expired, subprocess.SubprocessError) as wrong:
                print(f"{name}: {str(wrong)[:2000]}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
