#!/usr/bin/env python3
"""Starts programs on another host of a scenario, for launchers that do so by ssh: mpirun --mca plm_rsh_agent.

  remote_shell.py listen [N]             a [[program]] of that host: runs N commands (default 1), one after the other
  remote_shell.py [-x] HOST COMMAND...   runs the words there, as ssh does; ends with their exit status
"""
import os
import socket
import sys

PORT = 22


def listen(commands):
    with socket.create_server(("", PORT)) as server:
        for _ in range(commands):
            asked, _ = server.accept()
            with asked, asked.makefile("rb") as stream:
                command = stream.read().decode()
                asked.sendall(bytes([os.waitstatus_to_exitcode(os.system(command)) & 255]))


def ask(host, command):
    with socket.create_connection((host, PORT)) as there:
        there.sendall(command.encode())
        there.shutdown(socket.SHUT_WR)
        status = there.recv(1)
    return status[0] if status else 255


if __name__ == "__main__":
    words = sys.argv[1:]
    if words and words[0] == "listen":
        listen(int(words[1]) if len(words) > 1 else 1)
        sys.exit(0)
    while words and words[0].startswith("-"):
        words.pop(0)
    if len(words) < 2:
        sys.exit(__doc__)
    sys.exit(ask(words[0], " ".join(words[1:])))
