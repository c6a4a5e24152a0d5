"""Two ends talk over TCP connections, both ways at once, in pieces and with pauses that a seed chooses, and compare each byte
with what it has to be. Begins with questions and answers, so that a connection may change carriers; then what the seed says:
a fork, an option that TCP alone can honour, a long pause of the reader, nothing. Ends by half closing.

    sockets_talk.py serve|ask HOST PORT CONNECTIONS
"""
import os
import random
import socket
import struct
import sys
import threading
import time

QUESTIONS, LIMIT_S = 60, 60
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


def disturb(connection, chance):
    what = chance.randrange(5)
    if what == 0:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    elif what == 1:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def send_stream(connection, seed, end):
    bytes_of, chance = random.Random(f"{seed} {end} bytes"), random.Random(f"{seed} {end} pieces")
    when = chance.randrange(40)
    for piece in range(chance.randrange(1, 80)):
        if piece == when:
            disturb(connection, chance)
        connection.sendall(bytes_of.randbytes(chance.choice([1, 7, 100, 3000, chance.randrange(1, 60000)])))
        if chance.randrange(8) == 0:
            time.sleep(chance.random() / 500)
    connection.shutdown(socket.SHUT_WR)


def compare_stream(connection, seed, peer):
    """Draws the same numbers as send_stream, so it knows each piece."""
    bytes_of, chance = random.Random(f"{seed} {peer} bytes"), random.Random(f"{seed} {peer} pieces")
    sizes = random.Random(f"{seed} reads")
    when = chance.randrange(40)
    total, wanted = 0, b""
    for piece in range(chance.randrange(1, 80)):
        if piece == when:
            chance.randrange(5)
        wanted += bytes_of.randbytes(chance.choice([1, 7, 100, 3000, chance.randrange(1, 60000)]))
        if chance.randrange(8) == 0:
            chance.random()
        while wanted:
            if sizes.randrange(50) == 0:
                time.sleep(sizes.random() / 100)
            got = connection.recv(sizes.choice([1, 64, 4096, 100000]))
            if not got or got != wanted[:len(got)] and len(got) <= len(wanted):
                raise SystemExit(f"seed {seed}: byte {total} is wrong, or the end came before it")
            if len(got) > len(wanted):
                ahead = got[len(wanted):]
                if got[:len(wanted)] != wanted:
                    raise SystemExit(f"seed {seed}: byte {total} is wrong")
                total += len(wanted)
                wanted = b""
                connection = Ahead(connection, ahead)
                break
            total += len(got)
            wanted = wanted[len(got):]
    if connection.recv(1):
        raise SystemExit(f"seed {seed}: more than was sent")
    return total


class Ahead:
    """Bytes that were read beyond a piece come first."""

    def __init__(self, connection, bytes_ahead):
        self.connection, self.ahead = connection, bytes_ahead

    def recv(self, size):
        if not self.ahead:
            return self.connection.recv(size)
        got, self.ahead = self.ahead[:size], self.ahead[size:]
        return got


def talk(connection, seed, asks):
    connection.settimeout(LIMIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in range(QUESTIONS):
        question, answer = b"question %08d of weir" % number, b"answer to question %08d" % number
        if asks:
            connection.sendall(question)
            assert receive_exactly(connection, len(answer)) == answer
            time.sleep(0.001)  # the ends agree in the background
        else:
            assert receive_exactly(connection, len(question)) == question
            connection.sendall(answer)
    own, peer = ("ask", "serve") if asks else ("serve", "ask")
    sender = threading.Thread(target=send_stream, args=(connection, seed, own))
    sender.start()
    total = compare_stream(connection, seed, peer)
    sender.join()
    questions = QUESTIONS * len(answer if asks else question)
    by_tcp = received_by_tcp(connection)
    connection.close()
    return total + questions, by_tcp


def main():
    what, host, port, connections = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    moved = 0
    listener = socket.create_server((host, port), family=family) if what == "serve" else None
    for seed in range(connections):
        connection = listener.accept()[0] if listener else socket.create_connection((host, port))
        total, by_tcp = talk(connection, seed, what == "ask")
        moved += by_tcp + 1 < total  # the kernel counts a SYN
        print(f"seed {seed}: {total} bytes whole, {by_tcp} by TCP", flush=True)
    print(f"{connections} connections whole, {'some' if moved > connections / 2 else 'few'} moved")


main()
