"""Runs commands for the host, in the guest: each connection names one, gets its output, and in the last line its exit status.

A command ends at the latest with its connection. "end" as a command ends this program.
"""
import json
import os
import signal
import socket
import subprocess
import threading

PORT = 7000
LAST_WORD = "weir-vm: ended "


def serve(connection, listener):
    with connection, connection.makefile("r") as said:
        words = json.loads(said.readline())
        if words == ["end"]:
            return listener.shutdown(socket.SHUT_RDWR)
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=connection, stderr=connection, start_new_session=True)
        except OSError as error:
            return connection.sendall(f"{error}\n{LAST_WORD}127\n".encode())

        def end_with_connection():
            said.read()
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        threading.Thread(target=end_with_connection, daemon=True).start()
        status = process.wait()
        connection.sendall(f"\n{LAST_WORD}{status}\n".encode())
        connection.shutdown(socket.SHUT_RDWR)


def main():
    with socket.create_server(("", PORT)) as listener:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # shut down
                return
            threading.Thread(target=serve, args=(connection, listener), daemon=True).start()


if __name__ == "__main__":
    main()
