"""A cluster of Debian's redis-servers on loopback: primaries only, over TCP and TLS."""
import os
import shutil
import socket
import subprocess
import tempfile
import time

NODES = 3


def free_ports(count):
    """All at once, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def awaited(what, reached):
    deadline = time.monotonic() + 30
    while not reached():
        if time.monotonic() > deadline:
            raise RuntimeError(f"does not come to it: {what}")
        time.sleep(0.02)  # polls, with a limit


class RedisNodes:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="weir-cluster-")
        self.certificate, self.key = (os.path.join(self.directory, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.key, "-out", self.certificate],
                       check=True, capture_output=True)
        for _ in range(5):  # a port may be taken between looking and listening
            self.ports, self.tls_ports, buses = (free_ports(NODES) for _ in range(3))
            if len({*self.ports, *self.tls_ports, *buses}) < 3 * NODES:
                continue
            self.servers = [self.start(i, buses[i]) for i in range(NODES)]
            if all(self.answers(i) for i in range(NODES)):
                return self.join(buses)
            self.end()
        raise RuntimeError("redis-server did not start")

    def start(self, node, bus):
        folder = os.path.join(self.directory, str(node))
        os.makedirs(folder, exist_ok=True)
        return subprocess.Popen(
            ["redis-server", "--port", str(self.ports[node]), "--cluster-port", str(bus), "--bind", "127.0.0.1",
             "--cluster-enabled", "yes", "--save", "", "--tls-port", str(self.tls_ports[node]), "--tls-cert-file",
             self.certificate, "--tls-key-file", self.key, "--tls-ca-cert-file", self.certificate, "--tls-auth-clients",
             "no", "--tls-cluster", "yes"], cwd=folder, stdout=subprocess.DEVNULL)

    def ask(self, node, *words):
        return subprocess.run(["redis-cli", "-p", str(self.ports[node]), *map(str, words)], capture_output=True,
                              text=True).stdout.strip()

    def answers(self, node):
        deadline = time.monotonic() + 20
        while self.servers[node].poll() is None and time.monotonic() < deadline:
            if self.ask(node, "PING") == "PONG":
                return True
            time.sleep(0.02)  # polls for readiness, with a limit
        return False

    def join(self, buses):
        for node in range(NODES):
            self.ask(node, "CLUSTER", "ADDSLOTSRANGE", 16384 * node // NODES, 16384 * (node + 1) // NODES - 1)
            self.ask(node, "CLUSTER", "MEET", "127.0.0.1", self.tls_ports[0], buses[0])
        for node in range(NODES):
            awaited("the cluster is well", lambda: "cluster_state:ok" in self.ask(node, "CLUSTER", "INFO") and
                    "handshake" not in self.ask(node, "CLUSTER", "NODES"))
            self.ids = [self.ask(i, "CLUSTER", "MYID") for i in range(NODES)]

    def owner(self, slot):
        return next(i for i in range(NODES) if slot < 16384 * (i + 1) // NODES)

    def slot_table(self, node):
        """Which node id owns which slots, as this node sees it."""
        lines = [line.split() for line in self.ask(node, "CLUSTER", "NODES").splitlines()]
        return tuple(sorted((words[0], *words[8:]) for words in lines))

    def everywhere(self, *words):
        for node in range(NODES):
            self.ask(node, *words)

    def end(self):
        for server in self.servers:
            server.kill()
            server.wait()

    def remove(self):
        self.end()
        shutil.rmtree(self.directory)
