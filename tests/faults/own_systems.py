#!/usr/bin/env python3
"""Weir's own systems when a link flaps for a second, and when a queue pair dies: each must recover by itself.

  own_systems.py BIN [TEST...]     BIN: a directory of programs, with ../lib beside it; exit status 77: this machine permits no network
                                   namespaces
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import own_namespace
from own_namespace import ADDRESS

BIN = os.path.abspath(sys.argv[1])
SOURCE = os.path.abspath(f"{os.path.dirname(__file__)}/../..")
SECONDS = 60
PRIMARY, REPLICA = "18700", "18701"
HUB, RPC = f"rdma://{ADDRESS}:18702", f"rdma://{ADDRESS}:18703"
PYTHON = "/usr/bin/python3"  # Debian's own, which has numpy and msgpack

# Publishes the numbers from 1 on, one every 10 ms.
PUBLISH = """
import itertools, numpy, signal, sys, time, weir_tensor
signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that faults are reported
hub = weir_tensor.listen(sys.argv[1], open=True)
print("ready", flush=True)
for number in itertools.count(1):
    hub.publish_tree("number", {"x": numpy.full(1000, number)})
    time.sleep(0.01)
"""
# Follows them until it has seen one that was published long after any fault.
FOLLOW = """
import asyncio, sys, weir_tensor
async def follow():
    peer = weir_tensor.connect(sys.argv[1])
    seen = 0
    async for number, generation, tree in peer.follow("number"):
        array = tree["x"]
        assert (array == array[0]).all() and array[0] > seen, (seen, array)
        seen = int(array[0])
        if seen >= int(sys.argv[2]):
            break
    print("saw", sys.argv[2], flush=True)
asyncio.run(follow())
"""
SERVE = """
import signal, sys, time, weir_rpc
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
server = weir_rpc.Server()
server.add("twice", lambda number: 2 * number, "(int) -> int")
server.listen(sys.argv[1])
print("ready", flush=True)
time.sleep(600)
"""
# Calls for 5 s; a connection that is lost is made again.
CALL = """
import sys, time, weir_rpc
begun, client, calls, lost = time.monotonic(), weir_rpc.connect(sys.argv[1]), 0, 0
while time.monotonic() < begun + 5 or calls == 0:
    try:
        assert client.call("twice", calls, deadline=20) == 2 * calls
        calls += 1
        time.sleep(0.005)
    except (weir_rpc.ConnectionLost, weir_rpc.Closed):
        client, lost, calls = weir_rpc.connect(sys.argv[1]), lost + 1, 0
print("called, lost", lost, flush=True)
"""
# A flap ends while requests are still repeated; a queue pair that is in error has to be replaced.
FLAP = "down from=2s until=3s"
DEATH = "qp-error from=2s"


class OwnSystems(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-own-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": f"{self.folder}/runtime",
                            "PYTHONPATH": f"{SOURCE}/tensor/python:{SOURCE}/rpc/python",
                            "WEIR_TENSOR_LIBRARY": f"{BIN}/../lib/libweir_tensor.so.0", "WEIR_RPC_LIBRARY": f"{BIN}/../lib/libweir_rpc.so.0"}

    def start(self, name, *command, fault=None):
        """Starts a program on the NIC with packets; its report is in NAME in the folder once it has ended."""
        options = ["--packets", "--gid", ADDRESS, *(["--fault", fault] if fault else [])]
        with open(f"{self.folder}/{name}", "w") as report:
            process = subprocess.Popen([f"{BIN}/weir", "run", *options, "--", *command], cwd=self.folder, env=self.environment,
                                       stdout=subprocess.PIPE, stderr=report, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def report(self, name):
        with open(f"{self.folder}/{name}") as report:
            return report.read()

    def expect_fired(self, name, process):
        self.end(process)
        self.assertRegex(self.report(name), r": fired[ ;]", f"the fault of {name} never fired")

    def server(self, name, port, *options, fault=None):
        folder = f"{self.folder}/{name}.data"
        os.mkdir(folder)
        return self.start(name, f"{BIN}/weir-server", "--port", port, "--rdma-port", port, "--bind", f"{ADDRESS} 127.0.0.1", "--dir", folder,
                          "--protected-mode", "no", "--save", "", *options, fault=fault)

    def ask(self, port, *words, rdma=False):
        where = ["-h", ADDRESS, "-p", port, "--rdma"] if rdma else ["-h", "127.0.0.1", "-p", port]
        command = [f"{BIN}/weir-cli", *where, *words]
        if rdma:
            command = [f"{BIN}/weir", "run", "--packets", "--gid", ADDRESS, "--", *command]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=SECONDS).stdout.strip()

    def until(self, what, holds):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.05)
        self.fail(f"not within {SECONDS} s: {what}")

    def is_up(self, port):
        info = self.ask(port, "info", "replication")
        return "master_link_transport:rdma" in info and "master_link_status:up" in info

    def replicate_through(self, primary_fault=None, replica_fault=None):
        primary = self.server("primary", PRIMARY, fault=primary_fault)
        self.until("the primary answers", lambda: self.ask(PRIMARY, "ping") == "PONG")
        begun = time.monotonic()
        replica = self.server("replica", REPLICA, "--rdma-replication", "yes", "--replicaof", f"{ADDRESS} {PRIMARY}", fault=replica_fault)
        self.until("the link is up", lambda: self.is_up(REPLICA))
        number = 0
        while time.monotonic() < begun + 5:
            number += 1
            self.assertEqual(self.ask(PRIMARY, "set", "key", str(number)), "OK")
            self.ask(PRIMARY, "eval", "for i = 1, 50 do redis.call('set', 'k' .. i, i) end", "0")
        self.until("the replica has what was written", lambda: self.ask(REPLICA, "get", "key") == str(number))
        self.until("the link is up again", lambda: self.is_up(REPLICA))
        self.assertEqual(self.ask(REPLICA, "get", "key"), str(number))
        for name, process, fault in ("replica", replica, replica_fault), ("primary", primary, primary_fault):
            if fault:
                self.expect_fired(name, process)

    def test_replica_survives_a_link_flap_of_its_own(self):
        self.replicate_through(replica_fault=FLAP)

    def test_replica_survives_a_link_flap_of_its_primary(self):
        self.replicate_through(primary_fault=FLAP)

    def test_replica_survives_the_death_of_its_queue_pair(self):
        self.replicate_through(replica_fault="qp-error nth=8")

    def test_replica_survives_the_death_of_its_primarys_queue_pair(self):
        self.replicate_through(primary_fault="qp-error nth=8")

    def pair(self, serving, using, address, *words, server_fault=None, client_fault=None):
        """Runs a Python program that serves and one that uses it; returns what the second printed."""
        server = self.start("server", PYTHON, "-B", "-c", serving, address, fault=server_fault)
        self.assertEqual(server.stdout.readline(), "ready\n", self.report("server"))
        client = self.start("client", PYTHON, "-B", "-c", using, address, *words, fault=client_fault)
        said = client.stdout.readline()
        client.wait(SECONDS)
        self.assertEqual(client.returncode, 0, self.report("client"))
        for name, process, fault in ("client", client, client_fault), ("server", server, server_fault):
            if fault:
                self.expect_fired(name, process)
        return said

    def test_tensor_follower_survives_link_flaps(self):
        for side in "server_fault", "client_fault":
            with self.subTest(side):
                self.assertEqual(self.pair(PUBLISH, FOLLOW, HUB, "600", **{side: FLAP}), "saw 600\n")

    def test_tensor_follower_survives_the_death_of_a_queue_pair(self):
        for side in "server_fault", "client_fault":
            with self.subTest(side):
                self.assertEqual(self.pair(PUBLISH, FOLLOW, HUB, "600", **{side: DEATH}), "saw 600\n")

    def test_rpc_calls_survive_link_flaps(self):
        for side in "server_fault", "client_fault":
            with self.subTest(side):
                self.assertEqual(self.pair(SERVE, CALL, RPC, **{side: FLAP}), "called, lost 0\n")

    def test_rpc_connections_end_with_their_queue_pair_and_are_made_again(self):
        for side in "server_fault", "client_fault":
            with self.subTest(side):
                self.assertEqual(self.pair(SERVE, CALL, RPC, **{side: DEATH}), "called, lost 1\n")

    def test_clients_of_the_server_survive_link_flaps(self):
        self.server("primary", PRIMARY)
        self.until("the server answers", lambda: self.ask(PRIMARY, "ping") == "PONG")
        load = self.start("load", f"{BIN}/weir-benchmark", "-h", ADDRESS, "-p", PRIMARY, "--rdma", "-t", "set", "-n", "50000", "-c", "4",
                          fault="down from=100ms until=1100ms")
        load.stdout.read()
        load.wait(3 * SECONDS)
        self.assertEqual(load.returncode, 0, self.report("load"))
        self.assertRegex(self.report("load"), "down from=100ms until=1100ms: fired; [1-9]")

    def test_server_serves_others_when_the_queue_pair_of_a_client_dies(self):
        server = self.server("primary", PRIMARY, fault="qp-error nth=20")
        self.until("the server answers", lambda: self.ask(PRIMARY, "ping") == "PONG")
        answers = [self.ask(PRIMARY, "ping", rdma=True) for _ in range(10)]
        self.assertIn("PONG", answers)
        self.assertEqual(self.ask(PRIMARY, "ping", rdma=True), "PONG")
        self.expect_fired("primary", server)


if __name__ == "__main__":
    own_namespace.run_tests()
