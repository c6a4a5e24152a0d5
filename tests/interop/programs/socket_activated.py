#!/usr/bin/env python3
"""A server that gets its listening socket from the program that starts it (systemd's LISTEN_FDS), and a client of it that asks 400
questions.

usage: socket_activated.py serve
       socket_activated.py call HOST PORT [same]      same: of a server that returns its input, as cat(1)
"""
import os
import socket
import sys
import time

FIRST_PASSED = 3  # sd_listen_fds(3)
QUESTIONS = 400


def serve():
    assert os.environ["LISTEN_FDS"] == "1"
    listener = socket.socket(fileno=FIRST_PASSED)
    while True:
        connection, _ = listener.accept()
        while question := connection.recv(4096):
            connection.sendall(question[::-1])
        connection.close()


def call(host, port, step):
    right = 0
    with socket.create_connection((host, port)) as connection:
        for number in range(QUESTIONS):
            question = b"question %08d of the client" % number
            connection.sendall(question)
            answer = b""
            while len(answer) < len(question):
                answer += connection.recv(len(question) - len(answer)) or sys.exit("the end came too early")
            right += answer == question[::step]
            if number < 60:
                time.sleep(0.001)  # the ends agree in the background
    print(f"{right} of {QUESTIONS} answers right", flush=True)


if sys.argv[1] == "serve":
    serve()
else:
    call(sys.argv[2], int(sys.argv[3]), 1 if sys.argv[4:] == ["same"] else -1)
