"""One program under test: started, watched, and ended with everything it started.

Its output goes through a pseudo-terminal, so that C programs flush each line and nothing is lost when one is killed. It
runs in a session of its own: what it forked is found by session id, and killed with it.
"""
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import tty

POLL_S = 0.005  # how often a condition in /proc is polled


class Expired(Exception):
    """A time limit was exceeded; the message says which."""


class Program:
    def __init__(self, name, command, environment):
        self.name, self.command = name, command
        self.lines = []
        self.lock = threading.Lock()  # of lines
        ours, theirs = os.openpty()
        tty.setraw(theirs)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment,
                                        start_new_session=True)
        os.close(theirs)
        self.reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self.reader.start()

    def _read(self, terminal):
        partial = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # EIO: the last writer is gone
                piece = b""
            *whole, partial = (partial + piece).split(b"\n")
            if not piece and partial:
                whole.append(partial)
            with self.lock:
                self.lines += [line.decode(errors="replace").rstrip("\r") for line in whole]
            if not piece:
                os.close(terminal)
                return

    @property
    def output(self):
        with self.lock:
            return "\n".join(self.lines)

    def wait_until_listening(self, port, limit_s, protocol="tcp"):
        """Waits until a process of this program's session listens on that TCP port, or has that UDP port."""
        deadline = time.monotonic() + limit_s
        while not listening_inodes(self.process.pid, port, protocol) & self._socket_inodes():
            if self.process.poll() is not None:
                raise Expired(f"{self.name} ended before it listened on port {port}")
            if time.monotonic() > deadline:
                raise Expired(f"{self.name} did not listen on port {port} within {limit_s} s")
            time.sleep(POLL_S)

    def wait_until_it_prints(self, pattern, limit_s):
        deadline = time.monotonic() + limit_s
        while not re.search(pattern, self.output):
            if self.process.poll() is not None:
                raise Expired(f"{self.name} ended before it printed /{pattern}/")
            if time.monotonic() > deadline:
                raise Expired(f"{self.name} did not print /{pattern}/ within {limit_s} s")
            time.sleep(POLL_S)

    def wait_until_it_has_thread(self, name, limit_s):
        """Waits until a thread of the session has that name."""
        deadline = time.monotonic() + limit_s
        while name not in self._thread_names():
            if self.process.poll() is not None:
                raise Expired(f"{self.name} ended before it had a thread {name}")
            if time.monotonic() > deadline:
                raise Expired(f"{self.name} had no thread {name} within {limit_s} s")
            time.sleep(POLL_S)

    def wait_until_it_used_cpu(self, seconds, limit_s):
        """Waits until the program's processes have used that much processor time from now on, so that they are at work."""
        deadline, began = time.monotonic() + limit_s, self._cpu_s()
        while self._cpu_s() - began < seconds:
            if self.process.poll() is not None:
                raise Expired(f"{self.name} ended before it had worked for {seconds} s")
            if time.monotonic() > deadline:
                raise Expired(f"{self.name} used under {seconds} s of processor time in {limit_s} s")
            time.sleep(POLL_S)

    def wait(self, limit_s):
        """Waits for the exit status, negative for a signal. Output is complete when this returns."""
        try:
            status = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise Expired(f"{self.name} did not end within {limit_s:.0f} s") from None
        self.reader.join(limit_s)
        return status

    def kill(self, which=signal.SIGKILL):
        """Signals every process of the session."""
        try:
            os.killpg(self.process.pid, which)
        except ProcessLookupError:
            pass

    def end(self):
        """Makes sure that none of its processes is left."""
        self.kill()
        self.process.wait()
        self.reader.join(5)

    def _pids(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if int(fields[3]) == self.process.pid:  # session
                found.append((int(pid), fields))
        return found

    def _thread_names(self):
        names = set()
        for pid, _ in self._pids():
            try:
                for task in os.scandir(f"/proc/{pid}/task"):
                    names.add(pathlib.Path(task.path, "comm").read_text().strip())
            except OSError:
                continue
        return names

    def _cpu_s(self):
        ticks = sum(int(fields[11]) + int(fields[12]) for _, fields in self._pids())
        return ticks / os.sysconf("SC_CLK_TCK")

    def _socket_inodes(self):
        found = set()
        for pid, _ in self._pids():
            try:
                for entry in os.scandir(f"/proc/{pid}/fd"):
                    match = re.match(r"socket:\[(\d+)\]", os.readlink(entry.path))
                    if match:
                        found.add(match.group(1))
            except OSError:
                continue
        return found


def listening_inodes(pid, port, protocol):
    """Inodes of the sockets that listen on `port` in that process's network namespace."""
    listening = {"tcp": "0A", "udp": "07"}[protocol]  # include/net/tcp_states.h
    found = set()
    for table in (f"/proc/{pid}/net/{protocol}", f"/proc/{pid}/net/{protocol}6"):
        try:
            rows = pathlib.Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[3] == listening:
                found.add(fields[9])
    return found
