"""Questions and answers over a TCP connection between two hosts, and from the 1000th question on RDMA packets no longer reach
the asking host, while TCP goes on. Compares each byte, and prints the longest wait for an answer.

    lost_path.py serve|ask HOST PORT
"""
import os
import socket
import struct
import subprocess
import sys
import time

BEFORE, AFTER, LIMIT_S = 1000, 1000, 3
BYTES_RECEIVED_AT = 128  # in struct tcp_info


def received_by_tcp(connection):
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("=Q", info, BYTES_RECEIVED_AT)[0]


def receive_exactly(connection, size):
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise SystemExit(f"the end after {len(got)} of {size} bytes")
        got += more
    return got


def lose_rdma_packets():
    """Drops them where they arrive, so no sender gets an error. Only in a namespace made for this (two_namespaces.py)."""
    if not subprocess.run(["ip", "-4", "address", "show", "dev", "wire", "to", "10.77.0.0/24"], capture_output=True).stdout:
        raise SystemExit("this host has no wire to another namespace")
    for words in (["add", "pref", "100", "lookup", "local"], ["del", "pref", "0"],
                  ["add", "pref", "10", "iif", "wire", "ipproto", "udp", "dport", "4791", "blackhole"]):
        subprocess.run(["ip", "rule", *words], check=True)


def ask(host, port):
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    longest, by_rdma = 0, 0
    for i in range(BEFORE + AFTER):
        if i == BEFORE:
            lose_rdma_packets()
        question = struct.pack("!I", i) + os.urandom(4 + i * 37 % 3000)
        before, begun = received_by_tcp(connection), time.monotonic()
        connection.sendall(struct.pack("!I", len(question)) + question)
        if receive_exactly(connection, len(question)) != question:
            raise SystemExit(f"another answer to question {i}")
        longest = max(longest, time.monotonic() - begun)
        by_rdma += i < BEFORE and received_by_tcp(connection) == before
    print("some by RDMA" if by_rdma > BEFORE // 2 else f"{by_rdma} of {BEFORE} answers by RDMA")
    print(f"answered within {LIMIT_S} s" if longest < LIMIT_S else f"an answer took {longest:.1f} s")


def serve(host, port):
    with socket.create_server((host, port)) as listener:
        connection, _ = listener.accept()
    while head := connection.recv(4, socket.MSG_WAITALL):
        connection.sendall(receive_exactly(connection, struct.unpack("!I", head)[0]))
    print("the end")


{"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
