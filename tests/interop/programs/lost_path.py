"""Questions and answers over a TCP connection between two hosts. Once 500 were answered by RDMA, its packets no longer reach the
asking host, while TCP goes on. Compares each byte, and prints the longest wait for an answer.

    lost_path.py serve|ask HOST PORT
"""
import os
import socket
import struct
import subprocess
import sys
import time

BY_RDMA, MOST_BEFORE, AFTER, LIMIT_S = 500, 100_000, 1000, 3
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
    longest, by_rdma, asked, left = 0, 0, 0, None
    while left != 0:
        if left is None and (by_rdma == BY_RDMA or asked == MOST_BEFORE):
            lose_rdma_packets()
            left = AFTER
        i, asked = asked, asked + 1
        question = struct.pack("!I", i) + os.urandom(4 + i * 37 % 3000)
        before, begun = received_by_tcp(connection), time.monotonic()
        connection.sendall(struct.pack("!I", len(question)) + question)
        if receive_exactly(connection, len(question)) != question:
            raise SystemExit(f"another answer to question {i}")
        longest = max(longest, time.monotonic() - begun)
        if left is None:
            by_rdma += received_by_tcp(connection) == before
        else:
            left -= 1
    print("some by RDMA" if by_rdma >= BY_RDMA else f"{by_rdma} of {MOST_BEFORE} answers by RDMA")
    print(f"answered within {LIMIT_S} s" if longest < LIMIT_S else f"an answer took {longest:.1f} s")


def serve(host, port):
    with socket.create_server((host, port)) as listener:
        connection, _ = listener.accept()
    while head := connection.recv(4, socket.MSG_WAITALL):
        connection.sendall(receive_exactly(connection, struct.unpack("!I", head)[0]))
    print("the end")


{"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
