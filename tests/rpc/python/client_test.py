#!/usr/bin/env python3
"""The Python client against the C++ example server, over each transport.

usage: client_test.py SOURCE LIBRARY RPC_SHOP EXAMPLE [unittest's words]
"""
import asyncio
import dataclasses
import gc
import os
import subprocess
import sys
import threading
import unittest
import weakref

from installed import EXAMPLE, HERE, Shop, weir_rpc

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

    def test_an_aggregate_comes_with_the_names_of_its_fields(self):
        bolt = self.client.call("shop.Stock.find", "bolt")
        self.assertEqual((bolt.name, bolt.count), ("bolt", 12))
        self.assertEqual(bolt.asdict(), {"name": "bolt", "count": 12})
        self.assertIsNone(self.client.call("shop.Stock.find", "no such thing"))

    def test_a_dataclass_goes_as_an_aggregate(self):
        @dataclasses.dataclass
        class Item:
            name: str
            count: int

        before = self.client.call("shop.Stock.find", "nut").count
        self.assertEqual(self.client.call("shop.Stock.take", Item("nut", 0)), before)

    def test_a_field_that_an_aggregate_has_not_is_refused(self):
        with self.assertRaisesRegex(TypeError, "Item has no field 'conut'; it has name, count"):
            self.client.call("shop.Stock.take", {"name": "nut", "conut": 1})

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
        with self.assertRaisesRegex(weir_rpc.UnknownMethod, "no function 'shop.sell'"):
            self.client.call("shop.sell")

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
                await asyncio.sleep(0)  # it is in flight
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

    def test_what_a_closed_event_loop_left_keeps_its_memory_until_it_ends(self):
        async def leave():
            asyncio.get_running_loop().create_task(self.client.aexchange("shop.brew", "tea", into=bytearray(1 << 16)))
            await asyncio.sleep(0)  # it is in flight

        async def go_on():
            with self.client._use() as handle:
                self.client._watch(asyncio.get_running_loop(), handle)
            gc.collect()  # the abandoned task
            self.assertIsNotNone(request(), "its buffer went before its reply had come")
            while self.client._awaited:
                self.assertEqual(await self.client.acall("shop.add", 1, 2), 3)

        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave())
        loop.close()
        request = next(weakref.ref(thing) for thing in gc.get_objects() if isinstance(thing, weir_rpc.client._Request))
        asyncio.run(go_on())
        self.assertIsNone(request())

    def test_a_forked_child_leaves_its_parents_client_alone(self):
        def child():
            try:
                self.client.call("shop.add", 1, 2)
            except weir_rpc.Closed as why:
                self.client.close()
                self.client.__del__()
                return 0 if "connect another here" in str(why) else 1
            return 2

        self.assertEqual(self.client.call("shop.add", 1, 2), 3)
        pid = os.fork()
        if pid == 0:
            os._exit(child())
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(self.client.call("shop.add", 1, 2), 3)

    def test_a_forked_child_has_clients_of_its_own(self):
        def child():
            with weir_rpc.connect(self.shop.address) as client:
                return 0 if client.call("shop.add", 1, 2) == 3 else 1

        if self.transport == "rdma":
            self.skipTest("a process that has RDMA open does not take it along into its children")
        pid = os.fork()
        if pid == 0:
            os._exit(child())
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_a_signal_interrupts_a_call(self):
        """A whole program: a call in the main thread, and Ctrl-C."""
        program = ("import os, signal, sys, threading, weir_rpc\n"
                   "client = weir_rpc.connect(sys.argv[1])\n"
                   "client.call('shop.add', 1, 2)\n"
                   "def interrupt():\n"
                   "    while len(weir_rpc.client._Waiter._all) == 0: pass\n"
                   "    os.kill(os.getpid(), signal.SIGINT)\n"
                   "threading.Thread(target=interrupt).start()\n"
                   "try:\n"
                   "    while True: client.call('shop.brew', 'tea', deadline=600)\n"
                   "except KeyboardInterrupt:\n"
                   "    sys.exit(0 if client.call('shop.add', 1, 2) == 3 else 1)\n")
        environment = dict(os.environ, PYTHONPATH=str(HERE / "site"))
        ran = subprocess.run([sys.executable, "-c", program, self.shop.address], env=environment, capture_output=True,
                             text=True, timeout=60, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_what_the_library_would_misread_is_refused(self):
        for method, deadline in (("shop.add\0x", None), ("shop.add", float("nan")), ("shop.add", float("inf")),
                                 ("shop.add", 1e300)):
            with self.subTest(f"{method!r}, {deadline}"), self.assertRaisesRegex(ValueError, "NUL|number of seconds"):
                self.client.call(method, 1, 2, deadline=deadline)

    def test_what_is_of_another_type_is_named(self):
        for method, deadline in ((None, None), (b"shop.add", None), ("shop.add", "soon")):
            with self.subTest(f"{method!r}, {deadline!r}"), \
                    self.assertRaisesRegex(TypeError, "a method's name is text|a deadline is a number of seconds"):
                self.client.call(method, 1, 2, deadline=deadline)
        for address in (None, 7, b"tcp://127.0.0.1:1"):
            with self.subTest(repr(address)), self.assertRaisesRegex(TypeError, "an address is text"):
                weir_rpc.connect(address)

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
