#!/usr/bin/env python3
"""weir-cli and weir-benchmark on weir-server over every transport, on the software NIC: values of all sizes, messages,
errors, a killed server.

  rdma_interop.py DIRECTORY_WITH_PROGRAMS
"""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = os.path.abspath(sys.argv[1])


def program(name):
    return os.path.join(PROGRAMS, name)


class Server:
    """weir-server on ports of the system's choice, which it prints."""

    def __init__(self, directory, certificate, key):
        self.socket = os.path.join(directory, f"s{time.monotonic_ns()}")
        self.process = subprocess.Popen(
            [program("weir-server"), "--port", "-1", "--rdma-port", "-1", "--tls-port", "-1", "--rdma-tls-port", "-1",
             "--bind", "127.0.0.1", "--rdma-bind", "127.0.0.1", "--unixsocket", self.socket, "--tls-cert-file", certificate,
             "--tls-key-file", key, "--tls-auth-clients", "no", "--rdma-provider", "weir"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.ports = {}
        seen = b""
        deadline = time.monotonic() + 30
        while len(self.ports) < 4:
            if not select.select([self.process.stdout], [], [], deadline - time.monotonic())[0]:
                raise RuntimeError(f"weir-server did not start: {seen.decode()}")
            block = os.read(self.process.stdout.fileno(), 65536)
            if not block:
                raise RuntimeError(f"weir-server ended: {seen.decode()}")
            seen += block
            for kind, port in re.findall(rb"listening on (tcp|tls|rdma|rdma\+tls) [^\s]*:(\d+)\n", seen):
                self.ports[kind.decode()] = port.decode()

    def ways(self, certificate):
        tls = ["--tls", "--cacert", certificate]
        return {"tcp": ["-p", self.ports["tcp"]], "unix": ["-s", self.socket], "tls": ["-p", self.ports["tls"], *tls],
                "rdma": ["-p", self.ports["rdma"], "--rdma"],
                "rdma+tls": ["-p", self.ports["rdma+tls"], "--rdma", *tls]}

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(20)
        self.process.stdout.close()


class OverRdma(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["WEIR_RDMA_PROVIDER"] = "weir"
        cls.directory = tempfile.mkdtemp(prefix="weir-rdma-")
        cls.certificate, cls.key = (os.path.join(cls.directory, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", cls.key, "-out", cls.certificate], check=True,
                       capture_output=True)
        cls.server = Server(cls.directory, cls.certificate, cls.key)
        cls.ways = cls.server.ways(cls.certificate)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        shutil.rmtree(cls.directory)

    def cli(self, way, *arguments, text=b"", timeout=60):
        return subprocess.run([program("weir-cli"), *way, *arguments], input=text, capture_output=True, timeout=timeout)

    def test_the_reason_of_a_refusal_arrives(self):
        """The server says it and closes, over RDMA often before the client has asked for anything."""
        holder = subprocess.Popen([program("weir-cli"), *self.ways["unix"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holder.stdin.write("CONFIG SET maxclients 1\n")
        holder.stdin.flush()
        self.assertEqual(holder.stdout.readline(), "OK\n")
        try:
            for way in ("tcp", "rdma"):
                for _ in range(5):
                    done = subprocess.run([program("weir-cli"), *self.ways[way], "PING"], capture_output=True, text=True, timeout=30)
                    self.assertEqual((done.stdout.strip(), done.stderr), ("ERR max number of clients reached", ""), way)
        finally:
            holder.stdin.write("CONFIG SET maxclients 10000\n")
            holder.stdin.close()
            holder.wait(20)
            holder.stdout.close()

    def test_each_transport_reads_what_another_wrote(self):
        for size in (0, 1, 127, 4096, 65536, 1 << 20, (1 << 20) + 1, 5 << 20):
            value = bytes(i * 7 % 251 for i in range(min(size, 5000))) * (size // 5000 + 1)
            value = value[:size]
            for writer in self.ways:
                done = self.cli(self.ways[writer], "-x", "SET", "value", text=value)
                self.assertEqual((done.returncode, done.stdout), (0, b"OK\n"), (writer, size, done.stderr))
                for reader in ("tcp", "rdma", "rdma+tls"):
                    done = self.cli(self.ways[reader], "GET", "value")
                    self.assertEqual(done.stdout == value + b"\n", True, (writer, reader, size, done.stderr))

    def test_pipes_many_commands(self):
        commands = b"".join(b"SET pipe%d %s\r\n" % (i, b"x" * 100) for i in range(20000))
        for name, way in self.ways.items():
            done = self.cli(way, "--pipe", text=commands)
            self.assertIn(b"errors: 0, replies: 20000", done.stdout, (name, done.stderr))

    def test_messages_reach_subscribers_over_rdma(self):
        for name in ("rdma", "rdma+tls"):
            child = subprocess.Popen([program("weir-cli"), *self.ways[name], "SUBSCRIBE", "news"], stdout=subprocess.PIPE)
            seen = b""
            while b"\n1\n" not in seen and select.select([child.stdout], [], [], 20)[0]:
                seen += os.read(child.stdout.fileno(), 4096)
            self.assertEqual(self.cli(self.ways["tcp"], "PUBLISH", "news", "hello").stdout, b"1\n", name)
            while b"hello" not in seen and select.select([child.stdout], [], [], 20)[0]:
                seen += os.read(child.stdout.fileno(), 4096)
            child.terminate()
            child.wait()
            child.stdout.close()
            self.assertEqual(seen, b"subscribe\nnews\n1\nmessage\nnews\nhello\n", name)

    def test_counts_are_exact_over_every_transport(self):
        for name, way in self.ways.items():
            for arguments in (["-c", "10", "-n", "3003", "-P", "7"], ["-c", "4", "-n", "200", "-k", "0"],
                              ["-c", "6", "-n", "2000", "--threads", "2"]):
                self.cli(self.ways["tcp"], "SET", "counter:000000000000", "0")
                done = subprocess.run([program("weir-benchmark"), *way, "-q", "-t", "incr", *arguments], capture_output=True,
                                      timeout=120)
                self.assertEqual(done.returncode, 0, (name, arguments, done.stderr))
                self.assertEqual(self.cli(way, "GET", "counter:000000000000").stdout.strip(), arguments[3].encode(),
                                 (name, arguments))

    def test_compares_all_transports_and_says_on_which_nic(self):
        file = os.path.join(self.directory, "c.json")
        done = subprocess.run([program("weir-benchmark"), "-p", self.server.ports["tcp"], "--cacert", self.certificate,
                               "--tls-port", self.server.ports["tls"], "--rdma-port", self.server.ports["rdma"],
                               "--rdma-tls-port", self.server.ports["rdma+tls"], "--compare", ",".join(self.ways), "-t", "get", "-c", "2", "--duration", "0.1", "--repeat", "1",
                               "--json", file], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Weir's software NIC", done.stdout)
        with open(file) as opened:
            rows = json.load(opened)["cases"][0]["transports"]
        self.assertEqual([row["transport"] for row in rows], list(self.ways))
        self.assertTrue(all(row["ops_per_s"] > 0 for row in rows))

    def test_nobody_listening_is_said(self):
        for name in ("rdma", "rdma+tls"):
            way = ["-p", "1", *self.ways[name][2:]]
            done = self.cli(way, "PING")
            self.assertEqual(done.returncode, 1, name)
            self.assertIn(b"Could not connect to 127.0.0.1:1 over RDMA", done.stderr, name)

    def test_a_certificate_nobody_vouches_for_is_refused(self):
        done = self.cli(["-p", self.server.ports["rdma+tls"], "--rdma", "--tls"], "PING")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--cacert", done.stderr)

    def test_a_killed_server_ends_the_wait(self):
        server = Server(self.directory, self.certificate, self.key)
        ways = server.ways(self.certificate)
        waiting = [subprocess.Popen([program("weir-cli"), *way, "BLPOP", "nothing", "0"], stderr=subprocess.PIPE)
                   for way in ways.values()]
        deadline = time.monotonic() + 20
        while b"blocked_clients:5" not in self.cli(ways["tcp"], "INFO", "clients").stdout.replace(b"\r", b""):
            self.assertLess(time.monotonic(), deadline, "the clients did not block")
            time.sleep(0.02)  # polls for readiness, with a limit
        server.stop(signal.SIGKILL)
        for name, child in zip(ways, waiting):
            _, said = child.communicate(timeout=20)
            self.assertEqual(child.returncode, 1, name)
            self.assertTrue(said, name)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
