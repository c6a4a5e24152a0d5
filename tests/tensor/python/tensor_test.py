#!/usr/bin/env python3
"""The Python package end to end: every dtype and shape, out=, trees, followers, killed hubs.

usage: tensor_test.py SOURCE LIBRARY [unittest's words]
"""
import array
import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
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

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
          "complex64", "complex128"]
SHAPES = [(), (0,), (1,), (3, 0, 2), (7,), (2, 3, 4), (1, 1, 1, 1, 5), (300, 301)]


def sample(shape, dtype):
    count = int(numpy.prod(shape, dtype=int))
    return (numpy.arange(count) % 100).astype(dtype).reshape(shape)


class HubAndPeer(unittest.TestCase):
    scheme = "rdma"

    def setUp(self):
        self.hub = weir_tensor.listen(f"{self.scheme}://127.0.0.1:0")
        self.addCleanup(self.hub.close)
        self.peer = weir_tensor.connect(self.hub.address)
        self.addCleanup(self.peer.close)

    def fetches(self, published, expected):
        self.hub.publish("a", published)
        got = self.peer.fetch("a")
        self.assertEqual(got.dtype, expected.dtype)
        self.assertEqual(got.shape, expected.shape)
        numpy.testing.assert_array_equal(got, expected)


class Arrays(HubAndPeer):
    def test_every_dtype_and_shape(self):
        for dtype in DTYPES:
            for shape in SHAPES:
                with self.subTest(dtype=dtype, shape=shape):
                    self.fetches(sample(shape, dtype), sample(shape, dtype))

    def test_strides_are_packed(self):
        whole = sample((20, 30), "float32")
        for view in (whole.T, whole[::2], whole[:, ::3], whole[::-1], numpy.asfortranarray(whole),
                     numpy.broadcast_to(whole[0], (5, 30))):
            self.fetches(view, numpy.ascontiguousarray(view))

    def test_what_has_the_buffer_protocol(self):
        self.fetches(b"hello", numpy.frombuffer(b"hello", "uint8"))
        self.fetches(array.array("d", [1, 2]), numpy.array([1.0, 2.0]))

    def test_what_is_no_array_is_refused(self):
        for wrong in (7, "text", None, numpy.array(["text"]), numpy.zeros(3, ">f4"), numpy.array([object()])):
            with self.assertRaises(weir_tensor.BadArray):
                self.hub.publish("a", wrong)

    def test_into_the_callers_array(self):
        expected = sample((300, 301), "float64")
        self.hub.publish("a", expected)
        mine = numpy.zeros_like(expected)
        self.assertIs(self.peer.fetch("a", out=mine), mine)
        numpy.testing.assert_array_equal(mine, expected)
        for wrong in (numpy.zeros((301, 300)), numpy.zeros((300, 301), "float32")):
            with self.assertRaisesRegex(weir_tensor.ShapeMismatch, r"float64 \(300, 301\)"):
                self.peer.fetch("a", out=wrong)
        for wrong in (numpy.zeros((301, 300)).T, b"bytes", expected.view().__class__(shape=3, buffer=b"x" * 24)):
            with self.assertRaises((weir_tensor.BadArray, weir_tensor.ShapeMismatch)):
                self.peer.fetch("a", out=wrong)

    def test_shared_memory(self):
        source, mine = weir_tensor.empty((100, 100)), weir_tensor.empty((100, 100), "float32")
        self.assertEqual(source.sum(), 0)
        source[:] = sample((100, 100), "float32")
        self.hub.publish("a", source)
        self.peer.fetch("a", out=mine)
        numpy.testing.assert_array_equal(mine, source)
        self.assertEqual(weir_tensor.empty(0).shape, (0,))

    def test_rows(self):
        whole = sample((40, 3, 5), "float32")
        self.hub.publish("a", whole)
        for rows in (7, slice(3, 7), slice(4), range(5, 9), [9, 3, 7], (1, 2, 3, 39), numpy.array([30, 0])):
            with self.subTest(rows=rows):
                expected = whole[[rows]] if isinstance(rows, int) else whole[list(rows) if not isinstance(rows, slice) else rows]
                numpy.testing.assert_array_equal(self.peer.fetch("a", rows=rows), expected)
                numpy.testing.assert_array_equal(self.peer.fetch("a", out=numpy.zeros_like(expected), rows=rows), expected)
        for wrong in (slice(3, None), slice(0, 9, 2), [], [-1], slice(5, 5)):
            with self.assertRaises(ValueError):
                self.peer.fetch("a", rows=wrong)
        with self.assertRaisesRegex(weir_tensor.ShapeMismatch, r"rows 38 to 40 of float32 \(40, 3, 5\)"):
            self.peer.fetch("a", rows=slice(38, 41))

    def test_ctrl_c_ends_a_waiting_fetch(self):
        def interrupt():  # once the hub has the request
            while self.hub.stats()["requests"] == 0:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        mine = numpy.zeros(3)
        interrupts = threading.Thread(target=interrupt)
        interrupts.start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            self.peer.fetch("a", out=mine, timeout=60)
        self.assertLess(time.monotonic() - begun, 30)
        interrupts.join()
        self.hub.publish("a", numpy.ones(3))
        numpy.testing.assert_array_equal(mine, numpy.zeros(3))
        numpy.testing.assert_array_equal(self.peer.fetch("a"), numpy.ones(3))

    def test_versions(self):
        one = self.hub.publish("a", sample((3,), "int32"))
        first = self.peer.fetch_version("a")
        self.assertEqual((first.number, first.generation), (one, self.hub.generation))
        with self.assertRaises(weir_tensor.TimedOut):
            self.peer.fetch("a", newer_than=first)
        with self.assertRaises(weir_tensor.TimedOut):
            self.peer.fetch("a", newer_than=first, timeout=0.01)
        with self.assertRaises(weir_tensor.NotPublished):
            self.peer.fetch("b")
        timer = threading.Timer(0.05, self.hub.publish, ("a", sample((4,), "int32")))
        timer.start()
        second = self.peer.fetch_version("a", newer_than=first, timeout=60)
        timer.join()
        self.assertEqual(second.number, 2)
        numpy.testing.assert_array_equal(first.value, sample((3,), "int32"))  # unchanged
        self.assertTrue(self.hub.withdraw("a"))
        with self.assertRaises(weir_tensor.NotPublished):
            self.peer.fetch("a")

    def test_many_at_once(self):
        expected = {f"a{i}": sample((i % 7, 30), DTYPES[i % len(DTYPES)]) for i in range(200)}
        for name, each in expected.items():
            self.hub.publish(name, each)
        for got in (self.peer.fetch_many(expected), self.peer.fetch_many(expected, out={k: numpy.zeros_like(v) for k, v in expected.items()})):
            self.assertEqual(list(got), list(expected))
            for name, each in expected.items():
                self.assertEqual(got[name].dtype, each.dtype)
                numpy.testing.assert_array_equal(got[name], each)
        stats = self.hub.stats()
        self.assertLess(stats["frames"], stats["requests"])
        self.assertEqual(self.peer.fetch_many([]), {})
        with self.assertRaisesRegex(weir_tensor.NotPublished, "'b'"):
            self.peer.fetch_many(["a1", "b", "c"])
        with self.assertRaises(weir_tensor.ShapeMismatch):
            self.peer.fetch_many(["a1", "a2"], out={"a1": numpy.zeros(1), "a2": numpy.zeros(1)})
        with self.assertRaises(weir_tensor.TimedOut):
            self.peer.fetch_many(["a1", "b"], timeout=0.01)
        with self.assertRaises(KeyError):
            self.peer.fetch_many(["a1", "a2"], out={"a1": numpy.zeros((1, 30), "int8")})

    def test_the_hub_tells_what_it_has(self):
        self.assertEqual(self.peer.list(), {})
        self.hub.publish("a", sample((2, 3), "bool"))
        self.hub.publish_tree("t", {"x": sample((3,), "int8")})
        self.assertEqual(self.peer.list(), {"a": (1, 6, "bool (2, 3)"), "t": (1, 3, "tree of 1")})

    def test_memory_is_let_go_of_and_kept_where_it_is_used(self):
        for i in range(5):
            self.hub.publish("a", numpy.full(1000, i))
            got = self.peer.fetch("a")
        self.hub.stats()
        self.assertEqual(self.hub.released(), 1)
        self.peer.close()
        self.hub.close()
        gc.collect()
        numpy.testing.assert_array_equal(got, numpy.full(1000, 4))

    def test_stats_tell_the_ways_of_the_bytes(self):
        self.hub.publish("direct", sample((1000, 100), "float32"))
        self.hub.publish("staged", sample((100, 1000), "float32").T)
        self.hub.publish_tree("packed", {str(i): sample((100,), "uint8") for i in range(10)})
        shared = weir_tensor.empty((500, 100), "float32")
        self.hub.publish("shared", shared)
        stats = self.hub.stats()
        self.assertEqual(stats["staged_bytes"], 400_000)
        self.assertEqual(stats["packed_bytes"], 1000)
        self.assertGreaterEqual(stats["direct_bytes"], 1_000_000)
        self.assertEqual(stats["private_bytes"], 800_000)
        self.assertGreaterEqual(stats["shared_bytes"], 201_000)
        self.assertEqual(stats["private_bytes"] + stats["shared_bytes"], stats["live_bytes"])

    def test_the_child_of_a_fork_makes_its_own(self):
        self.hub.publish("a", sample((3,), "int8"))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for call in (lambda: self.peer.fetch("a"), lambda: self.hub.publish("a", sample((3,), "int8"))):
                    try:
                        call()
                    except weir_tensor.Closed:
                        continue
                    os._exit(2)
                self.peer.close()
                self.hub.close()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        numpy.testing.assert_array_equal(self.peer.fetch("a"), sample((3,), "int8"))

    def test_closed_ones_say_so(self):
        self.peer.close()
        with self.assertRaises(weir_tensor.Closed):
            self.peer.fetch("a")
        self.hub.close()
        with self.assertRaises(weir_tensor.Closed):
            self.hub.publish("a", sample((3,), "int8"))

    def test_addresses_and_settings_are_checked(self):
        for wrong in ("tcpip://x:1", "rdma://x", "rdma://127.0.0.1:1?x"):
            with self.assertRaises(weir_tensor.BadAddress):
                weir_tensor.connect(wrong)
        with self.assertRaises(weir_tensor.BadAddress):
            weir_tensor.listen("rdma://127.0.0.1:0", kept=3)
        with self.assertRaises(weir_tensor.Unreachable):
            weir_tensor.connect("rdma://127.0.0.1:1")


@unittest.skipUnless("WEIR" in os.environ, "no weir")
class Shell(HubAndPeer):
    def weir(self, *words, status=0):
        done = subprocess.run([os.environ["WEIR"], "tensor", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_lists_fetches_and_measures(self):
        expected = sample((3, 5), "float64")
        self.hub.publish("layers/1.w", expected)
        self.hub.publish("\x1b[2J", sample((), "bool"))
        self.hub.publish_tree("model", {"a/b": expected, ".c": sample((4,), "int16"), "none": sample((0,), "int8")})
        rows = self.weir("ls", self.hub.address).splitlines()
        self.assertRegex(rows[1], r"^layers/1.w +1 +120  float64 \(3, 5\)$")
        self.assertNotIn("\x1b", rows[2])
        self.assertEqual([row["name"] for row in json.loads(self.weir("ls", "--json", self.hub.address))],
                         ["layers/1.w", "\x1b[2J", "model"])
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "w.npy")
            self.weir("get", self.hub.address, "layers/1.w", "-o", file)
            numpy.testing.assert_array_equal(numpy.load(file), expected)
            self.weir("get", "--output", os.path.join(folder, "m"), self.hub.address, "model")
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "m"))), ["0_a_b.npy", "1__.c.npy", "2_none.npy"])
            numpy.testing.assert_array_equal(numpy.load(os.path.join(folder, "m", "1__.c.npy")), sample((4,), "int16"))
        self.assertEqual(json.loads(self.weir("bench", "--json", "--count", "5", self.hub.address, "model"))["count"], 5)
        self.assertIn("not_published", self.weir("get", self.hub.address, "nothing", status=1))
        self.assertIn("see weir tensor --help", self.weir("get", self.hub.address, status=2))
        self.weir("ls", "http://x:1", status=2)


# DLPack's kinds: opaque 3, bfloat 4, float8 e3m4 to e8m0fnu 7 to 14, float6 e2m3fn and e3m2fn 15 and 16,
# float4 e2m1fn 17; with lanes if an element would not be whole bytes, and kinds that numpy has, with lanes.
DTYPES_NUMPY_LACKS = [(3, 64, 1), (4, 16, 1), *((kind, 8, 1) for kind in range(7, 15)), (15, 6, 4), (16, 6, 4), (17, 4, 2),
                      (0, 8, 4), (2, 32, 4), (4, 16, 2), (5, 128, 2), (1, 4, 2), (0, 128, 1)]


class DLPack(HubAndPeer):
    def test_dtypes_that_numpy_lacks_pass_through(self):
        for kind, bits, lanes in DTYPES_NUMPY_LACKS:
            for shape in ((), (0,), (2, 3), (70, 50)):
                with self.subTest(kind=kind, bits=bits, lanes=lanes, shape=shape):
                    raw = sample((int(numpy.prod(shape, dtype=int)) * bits * lanes // 8,), "uint8")
                    self.hub.publish("a", weir_tensor.Array(kind, bits, lanes, shape, raw.ctypes.data, raw))
                    for got in (self.peer.fetch("a"), self.hub.get("a").value):
                        self.assertEqual((got.kind, got.bits, got.lanes, got.shape), (kind, bits, lanes, shape))
                        self.assertEqual(bytes(got.raw()), raw.tobytes())

    def test_elements_that_are_not_whole_bytes_are_refused(self):
        raw = numpy.zeros(6, "uint8")
        for kind, bits, lanes in ((17, 4, 1), (15, 6, 1), (0, 0, 1), (0, 8, 0)):
            with self.assertRaises(weir_tensor.BadArray):
                self.hub.publish("a", weir_tensor.Array(kind, bits, lanes, (6,), raw.ctypes.data, raw))

    def test_capsules_go_in_and_out(self):
        class OnlyDLPack:
            def __init__(self, of):
                self.of = of

            def __dlpack__(self, stream=None):
                return self.of.__dlpack__()

            def __dlpack_device__(self):
                return self.of.__dlpack_device__()

        expected = sample((4, 5), "float32")
        self.fetches(OnlyDLPack(expected), expected)
        with self.assertRaises(weir_tensor.BadArray):
            self.hub.publish("a", OnlyDLPack(expected.T))
        holder = numpy.arange(4, dtype="int32")
        ours = weir_tensor.Array(0, 32, 1, (4,), holder.ctypes.data, holder)
        numpy.testing.assert_array_equal(numpy.from_dlpack(ours), holder)
        ours.__dlpack__()  # a capsule that is never taken
        gc.collect()
        self.assertEqual(weir_tensor.dlpack._given, {})


class Trees(HubAndPeer):
    def tree(self, value=1):
        return {f"layer{i}.w": numpy.full((i % 5, 100 * i), value, "float32") for i in range(30)} | {
            "step": numpy.array(value), "flag": numpy.array([True])}

    def test_a_tree_comes_whole(self):
        for value in (1, 2):
            self.hub.publish_tree("model", self.tree(value))
            got = self.peer.fetch_tree("model")
            self.assertEqual(list(got), list(self.tree()))
            for name, expected in self.tree(value).items():
                numpy.testing.assert_array_equal(got[name], expected)
                self.assertEqual(got[name].dtype, expected.dtype)
        self.assertEqual(self.peer.stats()["metadata_updates"], 1)
        with self.assertRaises(weir_tensor.BadArray):
            self.peer.fetch("model")

    def test_neighbours_alike_come_each_as_its_own_array(self):
        tree = {f"alike{i}": numpy.full((2, 3), i, "float32") for i in range(40)}
        tree |= {"between": numpy.arange(5, dtype="int8")}
        tree |= {f"scalar{i}": numpy.array(i, "float32") for i in range(3)} | {f"none{i}": numpy.zeros((0, 2), "int16") for i in range(3)}
        tree |= {f"row{i}": numpy.full(6, i, "float32") for i in range(3)} | {f"doubles{i}": numpy.full(6, i, "float64") for i in range(3)}
        tree |= {f"large{i}": numpy.full((50, 100), i, "float64") for i in range(3)}
        self.hub.publish_tree("model", tree)
        for got, may_write in ((self.peer.fetch_tree("model"), True), (self.hub.get_tree("model").value, False)):
            self.assertEqual(list(got), list(tree))
            for name, expected in tree.items():
                self.assertIs(type(got[name]), numpy.ndarray, name)
                numpy.testing.assert_array_equal(got[name], expected, name)
                self.assertEqual((got[name].dtype, got[name].shape), (expected.dtype, expected.shape), name)
                self.assertTrue(got[name].flags.c_contiguous, name)
                if got[name].size:
                    self.assertEqual(got[name].flags.writeable, may_write, name)
        one, other = self.peer.fetch_tree("model"), self.peer.fetch_tree("model")["alike7"]
        one["alike7"][:] = -1
        numpy.testing.assert_array_equal(one["alike6"], tree["alike6"])
        numpy.testing.assert_array_equal(one["alike8"], tree["alike8"])
        del one
        gc.collect()
        numpy.testing.assert_array_equal(other, tree["alike7"])  # still owns its memory

    def test_into_the_callers_arrays_all_or_nothing(self):
        self.hub.publish_tree("model", self.tree())
        mine = {name: numpy.zeros_like(each) for name, each in self.tree().items()}
        self.assertIs(self.peer.fetch_tree("model", out=mine), mine)
        for name, expected in self.tree().items():
            numpy.testing.assert_array_equal(mine[name], expected)
        wrong = {name: numpy.zeros_like(each) for name, each in self.tree().items()}
        wrong["flag"] = numpy.zeros(2, bool)
        with self.assertRaises(weir_tensor.ShapeMismatch):
            self.peer.fetch_tree("model", out=wrong)
        self.assertEqual(sum(each.sum() for each in wrong.values()), 0)

    def test_a_tree_of_none_and_of_one(self):
        self.hub.publish_tree("model", {})
        self.assertEqual(self.peer.fetch_tree("model"), {})
        self.hub.publish_tree("model", {"x": numpy.arange(3)})
        numpy.testing.assert_array_equal(self.peer.fetch_tree("model")["x"], numpy.arange(3))


class TreesOverTcp(Trees):
    scheme = "tcp"


class Transports(unittest.TestCase):
    def test_both_at_one_port_and_rdma_first(self):
        with weir_tensor.listen("rdma://127.0.0.1:0?fallback=tcp") as hub:
            hub.publish("a", numpy.arange(5))
            port = hub.address.split(":")[2].split("?")[0]
            for address, transport in ((hub.address, "rdma"), (f"rdma://127.0.0.1:{port}", "rdma"),
                                       (f"tcp://127.0.0.1:{port}", "tcp")):
                with weir_tensor.connect(address) as peer:
                    numpy.testing.assert_array_equal(peer.fetch("a"), numpy.arange(5))
                    self.assertEqual(peer.stats()["transport"], transport)
                    self.assertEqual(peer.stats()["fallbacks"], 0)

    def test_a_fallback_is_asked_for_and_said(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1]); import weir_tensor\n"
                   "with weir_tensor.connect(sys.argv[2]) as peer: print(peer.fetch('a'), peer.stats()['transport'])")
        with weir_tensor.listen("tcp://127.0.0.1:0") as hub:
            hub.publish("a", numpy.arange(3))
            address = hub.address.replace("tcp://", "rdma://")

            def connect(at):
                return subprocess.run([sys.executable, "-B", "-c", program, SOURCE, at], capture_output=True, text=True)
            said = connect(address + "?fallback=tcp")
            self.assertEqual(said.stdout, "[0 1 2] tcp\n", said.stderr)
            self.assertRegex(said.stderr, r"weir_tensor: no RDMA to 127.0.0.1:\d+ \(.*\); using TCP\n")
            self.assertIn("Unreachable", connect(address).stderr)


class Tokens(unittest.TestCase):
    def test_are_asked_for_and_must_be_right(self):
        with weir_tensor.listen("tcp://127.0.0.1:0", token="secret", open=True) as hub:
            hub.publish("a", sample((3,), "int8"))
            with weir_tensor.connect(hub.address, token="secret") as peer:
                numpy.testing.assert_array_equal(peer.fetch("a"), sample((3,), "int8"))
            with weir_tensor.connect(hub.address) as peer, self.assertRaisesRegex(weir_tensor.Refused, "token"):
                peer.fetch("a")
            with self.assertRaisesRegex(weir_tensor.Refused, "token is wrong"):
                weir_tensor.connect(hub.address, token="other")
            listed = subprocess.run([os.environ["WEIR"], "tensor", "ls", hub.address], capture_output=True, text=True,
                                    env={**os.environ, "WEIR_TENSOR_TOKEN": "secret"})
            self.assertIn("int8 (3)", listed.stdout, listed.stderr)


class Tls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.key, self.certificate = os.path.join(folder.name, "key"), os.path.join(folder.name, "crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=hub", "-days", "2",
                        "-addext", "subjectAltName=DNS:hub,IP:127.0.0.1", "-keyout", self.key, "-out", self.certificate],
                       check=True, capture_output=True)

    def test_is_spoken_and_checked(self):
        with weir_tensor.listen("tls://127.0.0.1:0", certificate=self.certificate, key=self.key) as hub:
            hub.publish("a", sample((300, 301), "int8"))
            with weir_tensor.connect(hub.address, authority=self.certificate) as peer:
                numpy.testing.assert_array_equal(peer.fetch("a"), sample((300, 301), "int8"))
                self.assertEqual(peer.stats()["transport"], "tls")
            with self.assertRaisesRegex(weir_tensor.Refused, "certificate is not accepted"):
                weir_tensor.connect(hub.address)
            with self.assertRaisesRegex(weir_tensor.Refused, "ostname mismatch"):
                weir_tensor.connect(hub.address, authority=self.certificate, server_name="other")
            listed = subprocess.run([os.environ["WEIR"], "tensor", "ls", hub.address, "--cacert", self.certificate],
                                    capture_output=True, text=True)
            self.assertIn("int8 (300, 301)", listed.stdout, listed.stderr)

    def test_needs_a_certificate_at_the_hub(self):
        with self.assertRaisesRegex(weir_tensor.BadAddress, "tls.certificate"):
            weir_tensor.listen("tls://127.0.0.1:0")



class Pushes(unittest.TestCase):
    def setUp(self):
        self.hub = weir_tensor.listen("rdma://127.0.0.1:0", push_names="grad/*,model", push_from="127.0.0.0/8",
                                      push_bytes=1 << 20, push_bytes_per_peer=1 << 19)
        self.addCleanup(self.hub.close)
        self.peer = weir_tensor.connect(self.hub.address)
        self.addCleanup(self.peer.close)

    def test_come_to_the_hub_and_to_its_readers(self):
        for dtype, shape in (("float32", (100, 3)), ("bool", ()), ("complex128", (0, 2)), ("uint8", (20000,))):
            expected = sample(shape, dtype)
            number = self.peer.push("grad/1", expected)
            got = self.hub.get("grad/1")
            self.assertEqual((got.number, got.generation), (number, self.hub.generation))
            for each in (got.value, self.peer.fetch("grad/1")):
                numpy.testing.assert_array_equal(each, expected)
                self.assertEqual((each.dtype, each.shape), (expected.dtype, expected.shape))
        with self.assertRaises(ValueError):
            got.value[0] = 1  # a version never changes
        with self.assertRaises(weir_tensor.TimedOut):
            self.hub.get("grad/1", newer_than=got, timeout=0.01)

    def test_trees_are_one_version(self):
        tree = {f"layer{i}": numpy.full((i, 3), i, "float32") for i in range(200)}
        self.peer.push_tree("model", tree)
        got = self.hub.get_tree("model").value
        self.assertEqual(list(got), list(tree))
        for name, expected in tree.items():
            numpy.testing.assert_array_equal(got[name], expected)

    def test_are_refused_where_the_hub_does_not_let_them(self):
        with self.assertRaisesRegex(weir_tensor.Refused, "push_names"):
            self.peer.push("weights", sample((3,), "int8"))
        with self.assertRaisesRegex(weir_tensor.TooMuch, "push_bytes_per_peer"):
            self.peer.push("grad/1", numpy.zeros(1 << 19, "uint8"))
        with self.assertRaises(weir_tensor.BadAddress):
            weir_tensor.listen("rdma://127.0.0.1:0", push_from="nowhere")
        with weir_tensor.listen("rdma://127.0.0.1:0") as closed, weir_tensor.connect(closed.address) as peer:
            with self.assertRaises(weir_tensor.Refused):
                peer.push("grad/1", sample((3,), "int8"))


HUB_PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy, weir_tensor
hub = weir_tensor.listen(sys.argv[2])
hub.publish("a", numpy.full(1 << 20, int(sys.argv[3])))
print(hub.address, hub.generation, flush=True)
version = 1
while True:
    hub.publish_tree("model", {"v": numpy.full(1000, version), "w": numpy.full(50000, version)})
    version += 1
    time.sleep(0.002)
"""


class OfAnotherProcess(unittest.TestCase):
    def hub(self, address, value):
        process = subprocess.Popen([sys.executable, "-B", "-c", HUB_PROGRAM, SOURCE, address, str(value)],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        address, generation = process.stdout.readline().split()
        return process, address, int(generation)

    def test_a_killed_hub_is_gone_and_the_next_one_is_another(self):
        address, old = "rdma://127.0.0.1:0", None
        for value in range(5):
            process, address, generation = self.hub(address, value)
            self.assertNotEqual(generation, old)
            if old is None:
                peer = weir_tensor.connect(address)
                self.addCleanup(peer.close)
            version = peer.fetch_version("a")
            self.assertEqual((version.generation, int(version.value[0]), int(version.value[-1])), (generation, value, value))
            timer = threading.Timer(0.02 * value, process.kill)
            timer.start()
            try:
                with self.assertRaises(weir_tensor.PeerGone) as gone:
                    peer.fetch("a", newer_than=version, timeout=60)
                self.assertEqual(gone.exception.generation, generation)
            finally:
                timer.join()
            process.wait()
            old = generation

    def test_eight_readers_follow(self):
        _, address, _ = self.hub("rdma://127.0.0.1:0", 1)

        async def follow():
            with weir_tensor.connect(address) as peer:
                seen, last = 0, 0
                async for number, _, tree in peer.follow("model"):
                    self.assertGreater(number, last)
                    for name in ("v", "w"):
                        self.assertTrue((tree[name] == number).all(), "torn or stale")
                    last, seen = number, seen + 1
                    if seen == 20:
                        return seen

        async def all_of_them():
            return await asyncio.gather(*(follow() for _ in range(8)))

        self.assertEqual(asyncio.run(all_of_them()), [20] * 8)

    def test_a_stopped_hub_costs_no_more_than_the_timeout(self):
        process, address, _ = self.hub("rdma://127.0.0.1:0", 1)
        with weir_tensor.connect(address) as peer:
            last = peer.fetch_version("a")
            process.send_signal(signal.SIGSTOP)
            try:
                begun = time.monotonic()
                with self.assertRaises(weir_tensor.TensorError):
                    peer.fetch("a", newer_than=last, timeout=0.2)
                self.assertLess(time.monotonic() - begun, 30)
            finally:
                process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
