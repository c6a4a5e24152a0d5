#!/usr/bin/env python3
"""weir-cli -c on a cluster of Debian's redis-server: it goes where the key is, and prints what redis-cli prints.

  weir_cli_cluster_interop.py WEIR_CLI
"""
import os
import socket
import subprocess
import sys
import threading
import unittest

from redis_nodes import RedisNodes

PROGRAM = os.path.abspath(sys.argv[1])


def run(program, *arguments, text=""):
    return subprocess.run([program, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "TERM": "dumb"})  # redis-cli colors what its cluster manager prints


class RedirectingServer:
    """Answers every request with MOVED to itself."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.listener.settimeout(60)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection:
            while connection.recv(4096):
                connection.sendall(f"-MOVED 7 127.0.0.1:{self.port}\r\n".encode())


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = RedisNodes()

    @classmethod
    def tearDownClass(cls):
        cls.nodes.remove()

    def alike(self, *arguments, text=""):
        """Returns what both programs print, starting at a node that has neither key."""
        printed = []
        for program in ("redis-cli", PROGRAM):
            self.nodes.everywhere("FLUSHALL")
            done = run(program, "-c", "-p", self.nodes.ports[0], *arguments, text=text)
            printed.append((done.stdout, done.stderr, done.returncode))
        self.assertEqual(printed[0], printed[1])
        return printed[1][0]

    def test_cluster_orders_print_what_redis_cli_prints(self):
        self.nodes.everywhere("FLUSHALL")
        run("redis-cli", "-c", "-p", self.nodes.ports[0], text="set foo 1\nset bar 2\nset hello 3\n")
        for order in (["info"], ["check"], ["call", "PING"], ["call", "CONFIG", "GET", "maxmemory"], ["call", "NOSUCH"]):
            for port in self.nodes.ports:
                words = [order[0], f"127.0.0.1:{port}", *order[1:]]
                expected, done = (run(program, "--cluster", *words) for program in ("redis-cli", PROGRAM))
                self.assertEqual((done.stdout, done.returncode), (expected.stdout, expected.returncode), words)

    def test_check_finds_open_slots(self):
        slot, source = 12182, self.nodes.owner(12182)
        self.nodes.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.nodes.ids[(source + 1) % 3])
        try:
            done = run(PROGRAM, "--cluster", "check", f"127.0.0.1:{self.nodes.ports[0]}")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"has slots in migrating state {slot}.", done.stdout)
        finally:
            self.nodes.ask(source, "CLUSTER", "SETSLOT", slot, "STABLE")

    def test_orders_that_change_a_cluster_are_refused_with_the_programs_that_do(self):
        done = run(PROGRAM, "--cluster", "create", "127.0.0.1:1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("redis-cli and valkey-cli have", done.stderr)

    def test_lines_go_where_their_keys_are_and_the_conversation_stays_there(self):
        told = self.alike(text="set foo 1\nget foo\nset bar 2\nget foo\nincr foo\nlpush foo x\nmget foo bar\n")
        self.assertIn("-> Redirected to slot [12182] located at 127.0.0.1:", told)

    def test_one_command_goes_there_silently(self):
        for key in ("foo", "bar", "hello"):
            self.assertEqual(self.alike("SET", key, "v"), "OK\n")
            self.assertEqual(self.alike("-3", "--no-raw", "HSET", key, "f", "v"), "(integer) 1\n")

    def test_a_transaction_that_is_led_away_is_told_as_redis_cli_tells_it(self):
        self.alike(text="multi\nset foo 1\nexec\n")

    def test_without_c_a_redirection_is_an_error(self):
        done = run(PROGRAM, "-p", self.nodes.ports[0], "GET", "foo")
        self.assertIn("MOVED 12182", done.stdout)

    def test_a_slot_on_its_way_is_asked_for_at_its_new_node(self):
        slot, source = 12182, self.nodes.owner(12182)
        target = (source + 1) % 3
        self.nodes.everywhere("FLUSHALL")
        self.nodes.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.nodes.ids[source])
        self.nodes.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.nodes.ids[target])
        try:
            done = run(PROGRAM, "-c", "-p", self.nodes.ports[source], "SET", "foo", "moved")
            self.assertEqual((done.stdout, done.stderr), ("OK\n", ""))
            self.assertEqual(self.nodes.ask(target, "CLUSTER", "COUNTKEYSINSLOT", slot), "1")
        finally:
            self.nodes.ask(target, "FLUSHALL")
            self.nodes.everywhere("CLUSTER", "SETSLOT", slot, "STABLE")

    def test_the_next_node_gets_the_same_login(self):
        self.nodes.everywhere("ACL", "SETUSER", "joe", "on", ">pw", "+@all", "~*")
        self.nodes.everywhere("ACL", "SETUSER", "default", "off")
        try:
            done = run(PROGRAM, "-c", "-p", self.nodes.ports[0], "--user", "joe", "-a", "pw", "--no-auth-warning",
                       text="set foo 1\nset bar 2\nset hello 3\nacl whoami\n")
            self.assertEqual(done.stdout.splitlines()[-1], "joe")
            self.assertEqual(done.stderr, "")
        finally:
            for port in self.nodes.ports:
                run("redis-cli", "-p", port, "--user", "joe", "--pass", "pw", "ACL", "SETUSER", "default", "on")

    def test_tls_goes_on_as_tls(self):
        done = run(PROGRAM, "-c", "--tls", "--cacert", self.nodes.certificate, "-p", self.nodes.tls_ports[0],
                   text="set foo 1\nset bar 2\nget foo\n")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines()[-1], "1")
        for line in done.stdout.splitlines():
            if line.startswith("->"):
                self.assertIn(int(line.rsplit(":", 1)[1]), self.nodes.tls_ports)

    def test_nodes_that_do_not_agree_do_not_keep_it_for_ever(self):
        server = RedirectingServer()
        done = run(PROGRAM, "-c", "-e", "-p", server.port, "GET", "foo")
        self.assertEqual(done.returncode, 1)
        self.assertIn("redirected 16 times", done.stderr)
        self.assertEqual(server.connections, 17)
        server.listener.close()

    def test_a_node_that_is_gone_is_named(self):
        gone = socket.create_server(("127.0.0.1", 0))
        port = gone.getsockname()[1]
        gone.close()
        first = socket.create_server(("127.0.0.1", 0))

        def answer():
            connection, _ = first.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(f"-MOVED 7 127.0.0.1:{port}\r\n".encode())
                first.close()

        threading.Thread(target=answer, daemon=True).start()
        done = run(PROGRAM, "-c", "-p", first.getsockname()[1], "GET", "foo")
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(port), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
