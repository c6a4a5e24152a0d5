#!/usr/bin/env python3
"""The Python client and server (rpc/python), installed with pip, against the C++ example server and each other.

usage: python_test.py SOURCE LIBRARY RPC_SHOP EXAMPLE [unittest's words]
"""
import asyncio
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE, LIBRARY, SHOP, EXAMPLE = sys.argv[1:5]
SCRATCH = tempfile.TemporaryDirectory(prefix="weir-python-")
HERE = pathlib.Path(SCRATCH.name)


def install():
    """pip builds in the source's folder, so it gets a copy."""
    shutil.copytree(SOURCE, HERE / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                    "--no-build-isolation", "--disable-pip-version-check", "--root-user-action=ignore",
                    "--target", HERE / "site", HERE / "source"], check=True)
    sys.path.insert(0, str(HERE / "site"))
    os.environ["WEIR_RPC_LIBRARY"] = LIBRARY


lacking = [name for name in ("msgpack", "pip", "setuptools", "wheel") if importlib.util.find_spec(name) is None]
if lacking:
    print(f"SKIPPED: {sys.executable} lacks {', '.join(lacking)}: install python3-{lacking[0]}")
    sys.exit(77)
install()
import weir_rpc  # noqa: E402

assert pathlib.Path(weir_rpc.__file__).is_relative_to(HERE), "not the one that pip installed"


def where(transport):
    return f"unix://{HERE}/{os.urandom(4).hex()}" if transport == "unix" else f"{transport}://127.0.0.1:0"


class Shop:
    """examples/rpc/shop.cpp."""

    def __init__(self, transport):
        self.process = subprocess.Popen([SHOP, "serve", where(transport)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("serving at "), line
        self.address = line.split()[-1]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class AgainstTheCppServer:
    """The same over each transport."""

    @classmethod
    def setUpClass(cls):
        cls.shop = Shop(cls.transport)

    @classmethod
    def tearDownClass(cls):
        cls.shop.kill()

    def setUp(self):
        self.client = weir_rpc.connect(self.shop.address)
        self.addCleanup(self.client.close)

    def test_a_call_brings_its_result(self):
        self.assertEqual(self.client.call("shop.add", 2, 3), 5)
        self.assertEqual(self.client.call("shop.Stock.find", "screw"), None)
        self.assertEqual(self.client.call("shop.Stock.find", "bolt"), ["bolt", 12])
        self.assertTrue(self.client.call("shop.brew", "tea").startswith("tea for "))

    def test_an_aggregate_goes_as_a_list_or_by_names(self):
        before = self.client.call("shop.Stock.find", "nut")[1]
        self.assertEqual(self.client.call("shop.Stock.take", ["nut", 1]), before - 1)
        self.assertEqual(self.client.call("shop.Stock.take", {"count": 1, "name": "nut"}), before - 2)

    def test_failures_are_exceptions_with_a_code(self):
        for method, arguments, kind, name, did_not_run in [
                ("shop.sell", (), weir_rpc.UnknownMethod, "unknown_method", True),
                ("shop.add", (2, "three"), weir_rpc.BadArguments, "bad_arguments", True),
                ("shop.add", (2,), TypeError, "bad_arguments", True),
                ("shop.Stock.take", (["nut", 1000],), weir_rpc.RpcError, "failed", False)]:
            with self.subTest(method), self.assertRaises(kind) as raised:
                self.client.call(method, *arguments)
            self.assertEqual((raised.exception.name, raised.exception.did_not_run), (name, did_not_run))
            self.assertIn(name, str(raised.exception))
            self.assertTrue(raised.exception.next_step)

    def test_a_deadline_ends_a_call(self):
        with self.assertRaises(weir_rpc.DeadlineExceeded):
            self.client.call("shop.brew", "tea", deadline=0.001)
        with self.assertRaises(TimeoutError):
            self.client.call("shop.brew", "tea", deadline=0.001)

    def test_reflection_lists_the_methods(self):
        methods = {method.name: method.types for method in self.client.methods()}
        self.assertEqual(methods["shop.add"], "(i32, i32) -> i32")

    def test_threads_share_a_client(self):
        sums = []
        threads = [threading.Thread(target=lambda n=n: sums.append(sum(self.client.call("shop.add", n, i)
                                                                       for i in range(50)))) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(sums), [50 * n + 1225 for n in range(4)])

    def test_many_calls_are_awaited_at_once(self):
        async def run():
            async with await weir_rpc.aconnect(self.shop.address) as client:
                sums = await asyncio.gather(*(client.acall("shop.add", i, i) for i in range(64)))
                self.assertEqual(sums, [2 * i for i in range(64)])
                self.assertIn("shop.add", [method.name for method in await client.amethods()])
                with self.assertRaises(weir_rpc.UnknownMethod):
                    await client.acall("shop.sell")
        asyncio.run(run())

    def test_a_client_moves_to_another_event_loop(self):
        for _ in range(2):
            self.assertEqual(asyncio.run(self.client.acall("shop.add", 1, 2)), 3)

    def test_a_cancelled_task_cancels_its_call(self):
        async def run():
            async with await weir_rpc.aconnect(self.shop.address) as client:
                task = asyncio.create_task(client.acall("shop.brew", "tea"))
                await asyncio.sleep(0)  # it is under way
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual(await client.acall("shop.add", 1, 1), 2)
        asyncio.run(run())

    def test_closing_ends_what_is_awaited(self):
        async def run():
            client = await weir_rpc.aconnect(self.shop.address)
            task = asyncio.create_task(client.acall("shop.brew", "tea"))
            await asyncio.sleep(0)
            await client.aclose()
            with self.assertRaises(weir_rpc.Closed):
                await task
            with self.assertRaises(weir_rpc.Closed):
                await client.acall("shop.add", 1, 1)
        asyncio.run(run())

    def test_a_closed_client_says_so(self):
        self.client.close()
        self.client.close()
        self.assertFalse(self.client.is_open)
        with self.assertRaises(weir_rpc.Closed):
            self.client.call("shop.add", 1, 1)

    def test_the_example_runs(self):
        environment = dict(os.environ, PYTHONPATH=str(HERE / "site"))
        ran = subprocess.run([sys.executable, EXAMPLE, self.shop.address], env=environment, capture_output=True,
                             text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        for part in ("shop.add(i32, i32) -> i32", "2 + 3 = 5", "['bolt', 12]", "failed: there are not 100 of nut",
                     "deadline_exceeded: ", "64 calls on one connection: 4032"):
            self.assertIn(part, ran.stdout)

    def test_a_killed_server_ends_calls(self):
        shop = Shop(self.transport)
        client = weir_rpc.connect(shop.address)
        self.assertTrue(client.is_open)
        shop.kill()
        with self.assertRaises(ConnectionError):
            while True:
                client.call("shop.add", 1, 1)
        self.assertFalse(client.is_open)
        client.close()
        with self.assertRaises(weir_rpc.Unreachable):
            weir_rpc.connect(shop.address)


class OverTcp(AgainstTheCppServer, unittest.TestCase):
    transport = "tcp"


class OverUnix(AgainstTheCppServer, unittest.TestCase):
    transport = "unix"


class OverRdma(AgainstTheCppServer, unittest.TestCase):
    transport = "rdma"


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
                client.exchange("py.reflect", attachment=data, into=data)  # it may not be written to
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
            self.assertTrue(0 < client.call("py.left", deadline=5) <= 5)

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

    def test_a_server_asks_who_may_call(self):
        def who(token, certificate, peer):
            self.assertEqual(certificate, "")
            self.assertTrue(peer.startswith("tcp "))
            if not token:
                raise weir_rpc.Unauthenticated("no token")
            return {"gold": "anna", "lead": ("bert", 3600)}[token]

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
        token = HERE / "token"
        token.write_text("gold\nand more\n")
        for shown in (["--token", "gold"], ["--token-file", str(token)]):
            called = subprocess.run([os.environ["WEIR"], "rpc", "call", address, "py.caller", *shown], text=True,
                                    capture_output=True, timeout=60, check=False)
            self.assertEqual((called.stdout, called.returncode), ('"anna"\n', 0), called.stderr)

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
