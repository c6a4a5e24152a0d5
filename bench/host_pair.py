"""Programs on two hosts: a server, pinned to CPU 0, and clients, pinned to CPU 1, and what they take."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

PORT = 18_515
ROCE_PORT = 4791
READY_S, END_S = 20, 20


def pinned(end, command):
    return ["taskset", "-c", "0" if end == "server" else "1", *command]


def kernel_threads():
    """The threads to which the kernel moves work of the network that no program waits for."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().startswith("ksoftirqd/"):
                found.append(folder)
        except OSError:
            pass  # it has ended
    return found


KERNEL_THREADS = kernel_threads()


def cpu_s():
    """Processor time of all programs that have ended, and of the kernel's threads."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = sum(sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:13])) for folder in KERNEL_THREADS)
    return ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


class Place:
    """Where both ends run, and how: `before` is put in front of each end's command."""

    def __init__(self, before, host, environment):
        self.before, self.host, self.environment = before, host, environment

    def start(self, end, command, output=subprocess.DEVNULL):
        return subprocess.Popen([*self.before[end], *pinned(end, command)], stdout=output, stderr=output, text=True, env=self.environment)

    def output(self, end, *command):
        return subprocess.run([*self.before[end], *command], capture_output=True, check=True, text=True, env=self.environment).stdout

    def wait_until_it_listens(self, server, kind, port):
        deadline = time.monotonic() + READY_S
        while not self.output("server", "ss", f"-Hln{kind}", f"sport = :{port}").strip():
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{server.args} does not listen")
            time.sleep(0.02)

    def together(self, server_command, client_commands, listens=("t", PORT)):
        """Returns what each client printed, and the processor time of all; a server that does not end by itself is ended."""
        server = self.start("server", server_command)
        clients = []
        try:
            self.wait_until_it_listens(server, *listens)
            used_s = cpu_s()
            clients = [self.start("client", command, subprocess.PIPE) for command in client_commands]
            said = [client.communicate(timeout=120) for client in clients]
            for client, texts in zip(clients, said):
                if client.returncode != 0:
                    sys.exit(f"{' '.join(client.args)} failed: {client.returncode}\n" + "".join(texts))
            return [text for text, _ in said], self.end(server, used_s)
        finally:
            for client in clients:
                client.kill()
                client.wait()
            server.kill()
            server.wait()

    @staticmethod
    def end(server, used_s):
        try:
            server.wait(timeout=1)
        except subprocess.TimeoutExpired:
            server.terminate()
            server.wait(timeout=END_S)
        return cpu_s() - used_s

    def perftest(self, prefix, program, size, how):
        """The words of perftest's row, and the processor time of both ends."""
        command = {end: [*prefix, program, "-F", "-p", str(PORT), "-s", str(size), *how(end)] for end in ("server", "client")}
        (text,), used_s = self.together(command["server"], [[*command["client"], self.host]])
        rows = [line.split() for line in text.splitlines() if line.split()[:1] == [str(size)]]
        if not rows:
            sys.exit(f"{program} printed no result")
        return rows[-1], used_s

    def bandwidth(self, prefix, program, size, seconds, how=lambda end: []):
        """MB/s, as the middle of perftest's seconds has it."""
        row, _ = self.perftest(prefix, program, size, lambda end: ["-D", str(seconds), *how(end)])
        return float(row[3]) * 1.048576

    def transfers(self, prefix, program, size, count, words=()):
        """MB/s, and ns of processor time a byte, both ends together, beginning and end left out."""
        _, idle_s = self.perftest(prefix, program, size, lambda end: ["-n", "5", *words])
        row, used_s = self.perftest(prefix, program, size, lambda end: ["-n", str(count), *words])
        return float(row[3]) * 1.048576, (used_s - idle_s) * 1e9 / (size * count)

    def latency(self, prefix, program, size, how=lambda end: [], turns=5000):
        """Half of a round trip in us: a typical one, the 99.9th percentile, and the longest."""
        row, _ = self.perftest(prefix, program, size, lambda end: ["-n", str(turns), *how(end)])
        return float(row[4]), float(row[8]), float(row[3])

    def tcp(self, seconds, size="64K"):
        """MB/s, and ns of processor time a byte, both ends together."""
        words = ["iperf3", "-p", str(PORT)]
        (text,), used_s = self.together([*words, "-s", "-1"], [[*words, "-c", self.host, "-t", str(seconds), "-l", size, "-J"]])
        received = json.loads(text)["end"]["sum_received"]
        return received["bits_per_second"] / 8e6, used_s * 1e9 / received["bytes"]
