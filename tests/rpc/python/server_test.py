#!/usr/bin/env python3
"""Python functions served to the Python client.

usage: server_test.py SOURCE LIBRARY RPC_SHOP EXAMPLE [unittest's words]
"""
import asyncio
import http.client
import os
import subprocess
import sys
import unittest

from installed import HERE, weir_rpc, where

class Served(unittest.TestCase):
    """Python functions."""

    def serve(self, address="tcp://127.0.0.1:0", **settings):
        server = weir_rpc.Server(**settings)
        self.addCleanup(server.close)

        def reflect(call):
            call.reply_attachment = call.attachment[::-1]
            return len(call.attachment)

        def refuse():
            raise weir_rpc.Denied("not you")

        server.add("py.add", lambda a, b: a + b, types="(i32, i32) -> i32")
        server.add("py.reflect", reflect)
        server.add("py.refuse", refuse)
        server.add("py.divide", lambda a, b: a / b)
        server.add("py.who", lambda call: call.certificate)
        server.add("py.caller", lambda call: call.identity)
        server.add("py.left", lambda call: call.remaining)
        return server, server.listen(address)

    def test_functions_are_called_over_each_transport(self):
        for transport in ("tcp", "unix", "rdma"):
            with self.subTest(transport):
                _, address = self.serve(where(transport))
                with weir_rpc.connect(address) as client:
                    self.assertEqual(client.call("py.add", 20, 22), 42)
                    self.assertIn(weir_rpc.Method("py.add", "(i32, i32) -> i32"), client.methods())

    def test_attachments_go_both_ways(self):
        _, address = self.serve()
        data = os.urandom(1 << 20)
        with weir_rpc.connect(address) as client:
            for attachment in (data, memoryview(data), bytearray(data)):
                reply = client.exchange("py.reflect", attachment=attachment)
                self.assertEqual((reply.result, bytes(reply.attachment)), (len(data), data[::-1]))
            room = bytearray(1 << 20)
            reply = client.exchange("py.reflect", attachment=data, into=room)
            self.assertEqual(room, data[::-1])
            with self.assertRaises(BufferError):
                client.exchange("py.reflect", attachment=data, into=data)  # it is read-only
        self.assertEqual(bytes(reply.attachment[:4]), data[:-5:-1])  # outlives the client

    def test_an_attachment_is_awaited(self):
        _, address = self.serve()

        async def run():
            async with await weir_rpc.aconnect(address) as client:
                reply = await client.aexchange("py.reflect", attachment=b"abc")
                self.assertEqual((reply.result, bytes(reply.attachment)), (3, b"cba"))
        asyncio.run(run())

    def test_exceptions_reach_the_caller(self):
        _, address = self.serve()
        with weir_rpc.connect(address) as client:
            with self.assertRaisesRegex(weir_rpc.Denied, "not you"):
                client.call("py.refuse")
            with self.assertRaisesRegex(weir_rpc.RpcError, "failed: ZeroDivisionError"):
                client.call("py.divide", 1, 0)
            with self.assertRaises(weir_rpc.BadArguments):
                client.call("py.add", 1)
            tick = 0.01  # the largest tick of the clock that deadlines use
            left = client.call("py.left", deadline=5)
            self.assertGreater(left, 0)
            self.assertLessEqual(left, 5 + tick)

    def test_whatever_a_function_raises_is_answered(self):
        class Unspeakable(Exception):
            def __str__(self):
                raise OSError

        def throw(name):
            raise {"exit": SystemExit(3), "interrupt": KeyboardInterrupt(), "surrogate": ValueError("\udc80"),
                   "unspeakable": Unspeakable()}[name]

        rows = (("exit", "SystemExit: 3"), ("interrupt", "KeyboardInterrupt"), ("surrogate", "ValueError: ?"),
                ("unspeakable", "Unspeakable"))
        for with_text in (False, True):
            server = weir_rpc.Server(exceptions_to_callers=with_text)
            self.addCleanup(server.close)
            server.add("py.throw", throw)
            with weir_rpc.connect(server.listen("tcp://127.0.0.1:0")) as client, self.assertLogs("weir_rpc") as logged:
                for name, told in rows:
                    with self.subTest(name, with_text=with_text), self.assertRaises(weir_rpc.RpcError) as raised:
                        client.call("py.throw", name, deadline=30)
                    self.assertIn(told if with_text else told.split(":")[0], str(raised.exception))
                    self.assertEqual(told in str(raised.exception), with_text or ":" not in told)
            self.assertEqual(len(logged.records), len(rows))

    def test_text_that_is_no_utf_8_and_keys_that_are_arrays_go_both_ways(self):
        server = weir_rpc.Server()
        self.addCleanup(server.close)
        server.add("py.echo", lambda value: value)
        server.add("py.raw", lambda value: value.encode(errors="surrogateescape"))
        with weir_rpc.connect(server.listen("tcp://127.0.0.1:0")) as client:
            for value in ("caf\udce9", {(1, 2): "a", (1, (2, 3)): ["b"]}, {"plain": [{(): 1}]}):
                with self.subTest(value):
                    self.assertEqual(client.call("py.echo", value, deadline=30), value)
            self.assertEqual(client.call("py.raw", "caf\udce9", deadline=30), b"caf\xe9")

    def test_functions_written_in_c_are_served(self):
        server = weir_rpc.Server()
        self.addCleanup(server.close)
        server.add("py.max", max)
        server.add("py.len", len)
        with self.assertRaisesRegex(TypeError, "py.nothing is to be a function, not None"):
            server.add("py.nothing", None)
        with self.assertRaisesRegex(ValueError, "NUL"):
            server.add("py.nu\0ll", len)
        with weir_rpc.connect(server.listen("tcp://127.0.0.1:0")) as client:
            self.assertEqual(client.call("py.max", 3, 5, 4), 5)
            self.assertEqual(client.call("py.len", "four"), 4)

    def test_a_certificate_names_the_caller(self):
        key, certificate = HERE / "key", HERE / "certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", "/CN=localhost", "-days", "2", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        files = {"certificate": certificate, "key": key, "authority": certificate}
        for transport in ("tls", "rdma+tls"):
            with self.subTest(transport):
                _, address = self.serve(f"{transport}://127.0.0.1:0", **files)
                with weir_rpc.connect(address, server_name="localhost", **files) as client:
                    self.assertEqual(client.call("py.who"), "CN=localhost")
                with self.assertRaises(weir_rpc.RpcError) as raised:
                    weir_rpc.connect(address, server_name="elsewhere", **files)
                self.assertEqual(raised.exception.name, "tls")

    def test_http_is_answered_on_its_ports_if_that_is_asked(self):
        def post(address, body, **fields):
            connection = http.client.HTTPConnection(address.removeprefix("tcp://"), timeout=60)
            self.addCleanup(connection.close)
            connection.request("POST", "/py.add", body, fields)
            answer = connection.getresponse()
            return answer.status, answer.read().decode().strip()

        _, address = self.serve(http=True)
        self.assertEqual(post(address, "[20, 22]"), (200, "42"))
        with weir_rpc.connect(address) as client:
            self.assertEqual(client.call("py.add", 20, 22), 42)
        _, address = self.serve(http={"origins": ["https://a.example", "https://b.example"], "body_bytes": 64})
        for origin, status in (("https://b.example", 200), ("https://c.example", 403)):
            self.assertEqual(post(address, "[20, 22]", Origin=origin)[0], status, origin)
        self.assertEqual(post(address, f"[20, {' ' * 64}22]")[0], 413)
        _, address = self.serve()
        with self.assertRaises((http.client.HTTPException, OSError)):
            post(address, "[20, 22]")

    def test_certificates_are_renewed_while_it_serves(self):
        live = {"certificate": HERE / "live.crt", "key": HERE / "live.key"}

        def show(name):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                            f"/CN={name}", "-days", "2", "-keyout", live["key"], "-out", live["certificate"]], check=True, capture_output=True)
            return live["certificate"].read_bytes()

        def trusts(authority):
            file = HERE / "trusted.crt"
            file.write_bytes(authority)
            try:
                with weir_rpc.connect(address, authority=file, server_name="localhost") as client:
                    return client.call("py.add", 1, 2) == 3
            except weir_rpc.RpcError as refused:
                self.assertEqual(refused.name, "tls")
                return False

        before = show("localhost")
        server, address = self.serve("tls://127.0.0.1:0", **live)
        after = show("localhost")
        self.assertTrue(trusts(before))
        server.renew_certificates()
        self.assertEqual((trusts(before), trusts(after)), (False, True))
        live["key"].write_text("no key")
        with self.assertRaisesRegex(weir_rpc.RpcError, "live.key"):
            server.renew_certificates()
        self.assertTrue(trusts(after))

    def test_connections_over_rdma_have_settings(self):
        few = {"receive_blocks": 16, "send_blocks": 8, "block_bytes": 4096, "keepalive_ms": 500}
        for server, client in ((few, None), (None, few), (few, {"shared_receives": True})):
            _, address = self.serve(where("rdma"), rdma=server)
            with self.subTest(server=server, client=client), weir_rpc.connect(address, rdma=client) as connected:
                self.assertEqual(connected.call("py.add", "x" * 100_000, "y"), "x" * 100_000 + "y")
        for settings, words in (({"block_bytes": 1000}, "block_bytes"), ({"receive_blocks": 5000}, "0 to 4096"), ({"colour": 1}, "colour")):
            with self.subTest(settings), self.assertRaisesRegex(weir_rpc.RpcError, words) as raised:
                self.serve(where("rdma"), rdma=settings)
            self.assertEqual(raised.exception.name, "bad_setting")
            with self.subTest(settings), self.assertRaisesRegex(weir_rpc.RpcError, words):
                weir_rpc.connect(address, rdma=settings)

    def test_a_server_asks_who_may_call(self):
        def who(token, certificate, peer):
            self.assertEqual(certificate, "")
            self.assertTrue(peer.startswith("tcp "))
            if not token:
                raise weir_rpc.Unauthenticated("no token")
            return {"gold": "anna", "lead": ("bert", 3600), "rust": ("carl", -1e-7)}[token]

        server, address = self.serve(authenticate=who, authorise=lambda name, method: (name, method) != ("bert", "py.add"))
        with weir_rpc.connect(address) as client:
            with self.assertRaisesRegex(weir_rpc.Unauthenticated, "no token"):
                client.call("py.add", 1, 2)
        with weir_rpc.connect(address, token="dross") as client:
            with self.assertRaisesRegex(weir_rpc.Unauthenticated, "KeyError"):
                client.call("py.add", 1, 2)
        with weir_rpc.connect(address, token="gold") as client:
            self.assertEqual(client.call("py.add", 1, 2), 3)
            self.assertEqual(client.call("py.caller"), "anna")
        with weir_rpc.connect(address, token="lead") as client:
            with self.assertRaisesRegex(weir_rpc.Denied, "bert may not call py.add"):
                client.call("py.add", 1, 2)
            self.assertEqual(client.call("py.caller"), "bert")
        with weir_rpc.connect(address, token="rust") as client:
            with self.assertRaisesRegex(weir_rpc.Unauthenticated, "expired"):
                client.call("py.caller")
        token = HERE / "token"
        token.write_text("gold\nand more\n")
        for shown in (["--token", "gold"], ["--token-file", str(token)]):
            called = subprocess.run([os.environ["WEIR"], "rpc", "call", address, "py.caller", *shown], text=True,
                                    capture_output=True, timeout=60, check=False)
            self.assertEqual((called.stdout, called.returncode), ('"anna"\n', 0), called.stderr)

    def test_a_check_that_fails_lets_nobody_in(self):
        for raised in (SystemExit(0), KeyboardInterrupt(), ValueError("\udc80"), weir_rpc.RpcError("zero", -1)):
            def fail(*_, why=raised):
                raise why

            for checks, kind in (({"authenticate": fail}, "unauthenticated"), ({"authorise": fail}, "denied")):
                with self.subTest(f"{raised!r} of {list(checks)}"):
                    _, address = self.serve(**checks)
                    with weir_rpc.connect(address) as client, self.assertRaises(weir_rpc.RpcError) as refused:
                        client.call("py.add", 1, 2)
                    self.assertEqual(refused.exception.name, kind)

    def test_large_bodies_are_compressed_where_both_ends_say_so(self):
        _, address = self.serve(compression="lz4")
        for here in ("zstd", "lz4", None):
            with weir_rpc.connect(address, compression=here) as client:
                self.assertEqual(client.call("py.add", "x" * 100000, "y"), "x" * 100000 + "y")

    def test_bad_settings_are_named(self):
        for address, settings, name in [("ftp://x:1", {}, "bad_address"),
                                        ("unix:///nowhere/at/all", {}, "unreachable"),
                                        ("rdma://127.0.0.1:1", {"rdma_provider": "mine"}, "bad_setting"),
                                        ("tcp://127.0.0.1:1", {"timeout": -1}, "bad_setting")]:
            with self.subTest(address), self.assertRaises(weir_rpc.RpcError) as raised:
                weir_rpc.connect(address, **settings)
            self.assertEqual(raised.exception.name, name)
        server, _ = self.serve()
        with self.assertRaises(weir_rpc.RpcError):
            server.add("py.late", lambda: None)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
