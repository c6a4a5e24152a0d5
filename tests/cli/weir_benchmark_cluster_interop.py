#!/usr/bin/env python3
"""weir-benchmark --cluster on a cluster of Debian's redis-server, also while slots move.

  weir_benchmark_cluster_interop.py WEIR_BENCHMARK
"""
import json
import os
import subprocess
import sys
import unittest

from redis_nodes import NODES, RedisNodes, awaited

PROGRAM = os.path.abspath(sys.argv[1])


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = RedisNodes()

    @classmethod
    def tearDownClass(cls):
        cls.nodes.remove()

    def setUp(self):
        self.nodes.everywhere("FLUSHALL")

    def run_it(self, *arguments):
        return subprocess.run([PROGRAM, "--cluster", "-p", str(self.nodes.ports[1]), *map(str, arguments)],
                              capture_output=True, text=True, timeout=120)

    def measured(self, *arguments):
        done = self.run_it("--json", "-", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_primary_gets_its_share_and_nobody_is_redirected(self):
        for more in ([], ["-P", "8"], ["--threads", "2"], ["-r", "1000", "-P", "4"], ["--rate", "3000"]):
            told = self.measured("-t", "incr", "-n", "3000", "-c", "6", *more)[0]
            self.assertEqual(told["requests"], 3000)
            self.assertEqual({node["address"] for node in told["nodes"]},
                             {f"127.0.0.1:{port}" for port in self.nodes.ports})
            self.assertEqual(sum(node["requests"] for node in told["nodes"]), 3000)
            for node in told["nodes"]:
                self.assertGreater(node["requests"], 0, more)
                self.assertEqual(node["redirected"], 0)

    def test_every_standard_test_keeps_to_its_node(self):
        for told in self.measured("-n", "300", "-c", "3", "-r", "50"):
            self.assertEqual((told["requests"], sum(node["redirected"] for node in told["nodes"])), (300, 0), told)
        self.assertEqual(self.measured("-n", "30", "-c", "3", "-t", "evalsha,xread")[-1]["requests"], 30)

    def test_tls_goes_to_the_nodes_as_tls(self):
        done = subprocess.run([PROGRAM, "--cluster", "-p", str(self.nodes.tls_ports[0]), "--tls", "--cacert",
                               self.nodes.certificate, "-t", "set", "-n", "300", "-c", "3", "--json", "-"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({node["address"] for node in json.loads(done.stdout)[0]["nodes"]},
                         {f"127.0.0.1:{port}" for port in self.nodes.tls_ports})

    def give_slots(self, slots, source, target):
        """Moves empty slots to another node, so nothing has to be copied.

        The target imports first: this gives it a newer epoch, so that no older claim of the source, still on its way
        between two nodes, takes a slot back later.
        """
        for slot in slots:
            self.nodes.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.nodes.ids[source])
            for node in (target, *(node for node in range(NODES) if node != target)):
                self.nodes.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", self.nodes.ids[target])
        awaited("every node knows the slots' new owner",
                lambda: len({self.nodes.slot_table(node) for node in range(NODES)}) == 1)

    def test_slots_that_move_under_load_are_followed(self):
        for more in ([], ["--rate", "2000"]):
            self.nodes.everywhere("FLUSHALL")
            command = [PROGRAM, "--cluster", "-p", str(self.nodes.ports[1]), "-c", "3", "-n", "1000000000", "--duration", "4",
                       "--json", "-", *more, "EXISTS", "key:{tag}"]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

            def calls():
                told = self.nodes.ask(0, "INFO", "commandstats")
                return int(told.partition("cmdstat_exists:calls=")[2].partition(",")[0] or 0)

            awaited("the load runs", lambda: calls() > 100)
            tagged = [5461 * i // 32 for i in range(32)]  # the slots of node 0 that the load uses
            self.give_slots(tagged, 0, 1)
            out, err = child.communicate(timeout=60)
            self.give_slots(tagged, 1, 0)
            self.nodes.everywhere("CONFIG", "RESETSTAT")
            self.assertEqual(child.returncode, 0, err)
            told = json.loads(out)[0]
            self.assertGreater(sum(node["redirected"] for node in told["nodes"]), 0)
            self.assertGreater(told["requests"], 1000)

    def test_what_cannot_be_is_said(self):
        for arguments, words in ((["-n", "10", "SET", "key", "v"], "{tag}"), (["-c", "2"], "3 primaries"),
                                 (["-I"], "-I"), (["--compare", "tcp"], "--compare")):
            done = self.run_it(*arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(words, done.stderr)

    def test_text_tells_what_each_node_did(self):
        text = self.run_it("-t", "set", "-n", "300", "-c", "3").stdout
        for port in self.nodes.ports:
            self.assertRegex(text, rf"node 127\.0\.0\.1:{port}: \d+ requests, 0 redirected")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
