#!/usr/bin/env python3
"""The Python package where several programs share arrays: fetches in event loops, leases, sums, over each carrier.

usage: sharing_test.py SOURCE LIBRARY [unittest's words]
"""
import asyncio
import os
import sys
import threading
import time
import unittest

if len(sys.argv) < 3:
    sys.exit(__doc__)
SOURCE, LIBRARY = sys.argv[1:3]
os.environ["WEIR_TENSOR_LIBRARY"] = LIBRARY
sys.path.insert(0, SOURCE)
try:
    import numpy
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)
import weir_tensor


def sample(shape, dtype):
    return (numpy.arange(int(numpy.prod(shape, dtype=int))) % 100).astype(dtype).reshape(shape)


class HubAndPeer(unittest.TestCase):
    scheme = "rdma"

    def setUp(self):
        self.hub = weir_tensor.listen(f"{self.scheme}://127.0.0.1:0", push_names="grad/*,model")
        self.addCleanup(self.hub.close)
        self.peer = weir_tensor.connect(self.hub.address)
        self.addCleanup(self.peer.close)


class Sharing(HubAndPeer):
    def test_an_asynchronous_fetch_comes_or_is_cancelled(self):
        async def both():
            waiting = asyncio.ensure_future(self.peer.fetch_async("a", timeout=60))
            await asyncio.sleep(0)
            self.hub.publish("a", sample((4, 2), "int32"))
            numpy.testing.assert_array_equal(await waiting, sample((4, 2), "int32"))
            numpy.testing.assert_array_equal(await self.peer.fetch_async("a", rows=[3, 1]), sample((4, 2), "int32")[[3, 1]])
            never = asyncio.ensure_future(self.peer.fetch_async("b", timeout=60))
            await asyncio.sleep(0)
            never.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await never
        begun = time.monotonic()
        asyncio.run(both())  # and its end waits for the executor's threads
        self.assertLess(time.monotonic() - begun, 30)

    def test_a_hundred_asynchronous_fetches_need_no_threads(self):
        async def all_at_once():
            before = threading.active_count()
            waiting = [asyncio.ensure_future(self.peer.fetch_async(f"a{i}", timeout=60)) for i in range(100)]
            await asyncio.sleep(0)
            for i in reversed(range(100)):
                self.hub.publish(f"a{i}", sample((i,), "int32"))
            got = await asyncio.gather(*waiting)
            self.assertEqual(threading.active_count(), before)
            self.assertEqual([len(each) for each in got], list(range(100)))
        asyncio.run(all_at_once())
        asyncio.run(all_at_once())  # in another loop

    def test_event_loops_in_several_threads_share_a_peer(self):
        async def some(thread):
            for i in range(50):
                name = f"{thread}/{i}"
                waiting = asyncio.ensure_future(self.peer.fetch_async(name, timeout=60))
                await asyncio.sleep(0)
                self.hub.publish(name, numpy.full(3, thread))
                numpy.testing.assert_array_equal(await waiting, numpy.full(3, thread))
            return True
        done = []
        threads = [threading.Thread(target=lambda n=n: done.append(asyncio.run(some(n)))) for n in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(done, [True] * 4)

    def test_an_asynchronous_fetch_raises_what_fetch_does(self):
        async def fail():
            with self.assertRaises(weir_tensor.NotPublished):
                await self.peer.fetch_async("none")
            with self.assertRaises(weir_tensor.TimedOut):
                await self.peer.fetch_async("none", timeout=0.05)
            self.hub.publish("a", sample((4, 2), "int32"))
            out = numpy.zeros((4, 2), "int32")
            self.assertIs(await self.peer.fetch_async("a", out=out), out)
            numpy.testing.assert_array_equal(out, sample((4, 2), "int32"))
            with self.assertRaises(weir_tensor.ShapeMismatch):
                await self.peer.fetch_async("a", out=numpy.zeros(3))
        asyncio.run(fail())

    def test_a_lease_ends_as_its_readers_end_it(self):
        lease = self.hub.lend("request", sample((4,), "int64"), timeout=600)
        self.assertIsNone(lease.wait(0))
        got = self.peer.fetch_version("request")
        self.assertEqual(got.number, lease.version)
        self.peer.done("request", got, "7 tokens \u00e4")
        self.assertEqual(lease.wait(60), ("done", ["7 tokens \u00e4"]))
        with self.assertRaises(weir_tensor.Superseded):
            self.peer.done("request", got)
        self.assertEqual(asyncio.run(self.hub.lend_tree("tree", {"a": numpy.ones(3)}, timeout=0.01).ended()), ("never came", []))
        with self.assertRaises(weir_tensor.NotPublished):
            self.peer.fetch("request")

    def test_sums_are_those_of_numpy_and_lose_nothing(self):
        for dtype in ("float16", "float32", "float64", "int8", "uint16", "int64"):
            name, addends = f"grad/{dtype}", [sample((7, 30), dtype) * i for i in range(1, 5)]
            for i, each in enumerate(addends, 1):
                self.assertEqual(self.peer.add(name, each.astype(dtype)), i)
            got = self.peer.fetch(name)
            self.assertEqual(got.dtype, numpy.dtype(dtype))
            numpy.testing.assert_array_equal(got, sum(each.astype(dtype) for each in addends).astype(dtype))
        self.peer.add_tree("model", {"a": numpy.ones(3), "b": numpy.ones((2, 2), "int32")})
        self.assertEqual(self.peer.add_tree("model", {"a": numpy.ones(3), "b": numpy.ones((2, 2), "int32")}), 2)
        numpy.testing.assert_array_equal(self.peer.fetch_tree("model")["b"], numpy.full((2, 2), 2))

    def test_what_cannot_be_added_is_refused(self):
        self.peer.push("grad/1", sample((3,), "float32"))
        with self.assertRaises(weir_tensor.ShapeMismatch):
            self.peer.add("grad/1", sample((4,), "float32"))
        with self.assertRaises(weir_tensor.BadArray):
            self.peer.add("grad/2", sample((4,), "bool"))
        with self.assertRaisesRegex(weir_tensor.Refused, "push_names"):
            self.peer.add("weights", sample((3,), "float32"))
        self.assertEqual(self.hub.get("grad/1").number, 1)


class SharingOverTcp(Sharing):
    scheme = "tcp"


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
