"""A program that ends by exit() with its connection open: the peer gets all bytes and the end of the stream, no error.

    ends_open.py serve|tell HOST PORT
"""
import socket
import sys

QUESTIONS, BYTES = 60, 3_000_000  # questions and answers first, so that a connection may change carriers


def serve(host, port):
    with socket.create_server((host, port)) as listener:
        connection, _ = listener.accept()
    for _ in range(QUESTIONS):
        connection.sendall(connection.recv(1))
    got = 0
    while piece := connection.recv(65536):
        got += len(piece)
    print(f"{got} bytes, then the end", flush=True)


def tell(host, port):
    connection = socket.create_connection((host, port))
    for _ in range(QUESTIONS):
        connection.sendall(b"?")
        connection.recv(1)
    connection.sendall(bytes(BYTES))
    connection.detach()  # or Python would close it


if __name__ == "__main__":
    {"serve": serve, "tell": tell}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
