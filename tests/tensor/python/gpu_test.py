#!/usr/bin/env python3
"""Arrays in CUDA's memory, without a GPU: over the test's own libcuda.so.1 (fake_cuda.cpp), which the loader finds first.

usage: gpu_test.py SOURCE LIBRARY FAKE [unittest's words]    FAKE is its path
"""
import ctypes
import gc
import os
import subprocess
import sys
import unittest

if len(sys.argv) < 4:
    sys.exit(__doc__)
SOURCE, LIBRARY, FAKE = sys.argv[1:4]
if os.path.dirname(FAKE) not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):  # read only when a process starts
    os.environ["LD_LIBRARY_PATH"] = os.path.dirname(FAKE) + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    os.execv(sys.executable, [sys.executable, "-B"] + sys.argv)
os.environ["WEIR_TENSOR_LIBRARY"] = LIBRARY
sys.path.insert(0, SOURCE)
try:
    import numpy
except ImportError:
    print("skipped: no numpy (python3-numpy)")
    sys.exit(77)
import weir_tensor
from weir_tensor import dlpack

fake = ctypes.CDLL(FAKE)
fake.fake_cuda_pinned_bytes.restype = ctypes.c_size_t
BIAS = 1 << 60
MIB = 1 << 20


class OnGpu:
    """A numpy array that claims to be on a GPU; `streams` are those that it was told to wait for."""

    def __init__(self, array, number=0):
        self.array, self.number, self.streams = array, number, []

    def __dlpack_device__(self):
        return 2, self.number

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        kind = {"f": 2, "i": 0, "u": 1, "b": 6}[self.array.dtype.kind]
        dimensions = self.array.ndim
        shape = (ctypes.c_int64 * max(dimensions, 1))(*self.array.shape)
        strides = (ctypes.c_int64 * max(dimensions, 1))(*(each // self.array.itemsize for each in self.array.strides))
        managed = dlpack._Managed()
        managed.tensor = dlpack._Tensor(self.array.ctypes.data + BIAS, 2, self.number, dimensions, kind, 8 * self.array.itemsize,
                                        1, ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
                                        ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), 0)
        managed.deleter = dlpack._delete
        address = ctypes.addressof(managed)
        dlpack._given[address] = (managed, shape, strides, self.array)
        return dlpack._api.PyCapsule_New(address, dlpack._NAME, ctypes.cast(dlpack._drop_unused, ctypes.c_void_p))


class PackableOnGpu(OnGpu):
    def contiguous(self):
        return OnGpu(numpy.ascontiguousarray(self.array))


def sample(shape, dtype="float32", first=0):
    return (numpy.arange(first, first + int(numpy.prod(shape))) % 100).astype(dtype).reshape(shape)


class Gpu(unittest.TestCase):
    def setUp(self):
        self.hub = weir_tensor.listen("tcp://127.0.0.1:0", push_names="*")
        self.addCleanup(self.hub.close)
        self.peer = weir_tensor.connect(self.hub.address)
        self.addCleanup(self.peer.close)

    def same(self, got, expected):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        self.assertTrue((got == expected).all())

    def test_a_published_array_is_a_copy_of_its_moment(self):
        for shape in ((), (0,), (7,), (300, 301)):
            for dtype in ("float32", "int8", "bool"):
                with self.subTest(shape=shape, dtype=dtype):
                    array = sample(shape, dtype)
                    self.hub.publish("a", OnGpu(array))
                    expected = array.copy()
                    array[...] = 1  # may be overwritten again
                    self.same(self.peer.fetch("a"), expected)

    def test_copies_are_ordered_behind_the_producers_stream(self):
        array, into = OnGpu(sample((10,))), OnGpu(numpy.zeros(10, "float32"))
        self.hub.publish("a", array)
        self.peer.fetch("a", out=into)
        ours = weir_tensor.gpu.stream_of(0)
        self.assertTrue(ours)
        self.assertEqual(array.streams, [ours])
        self.assertEqual(into.streams, [ours])

    def test_fetched_into_gpu_memory(self):
        expected, mine = sample((200, 3)), numpy.zeros((200, 3), "float32")
        self.hub.publish("a", OnGpu(expected))
        out = OnGpu(mine)
        self.assertIs(self.peer.fetch("a", out=out), out)
        self.same(mine, expected)
        with self.assertRaises(weir_tensor.ShapeMismatch):
            self.peer.fetch("a", out=OnGpu(numpy.zeros(3, "float32")))
        with self.assertRaises(weir_tensor.BadArray):
            self.peer.fetch("a", out=OnGpu(numpy.zeros((3, 200), "float32").T))

    def test_a_failed_fetch_writes_nothing_to_the_gpu(self):
        mine = sample((5,))
        with self.assertRaises(weir_tensor.NotPublished):
            self.peer.fetch("none", out=OnGpu(mine))
        self.same(mine, sample((5,)))

    def test_trees_of_gpu_and_host_memory(self):
        tree = {"a": sample((20, 30)), "b": sample((3,), "int8", 5), "c": sample((70000,), first=9), "empty": sample((0, 2))}
        before = fake.fake_cuda_waits()
        self.hub.publish_tree("t", {name: OnGpu(each) if name != "b" else each for name, each in tree.items()})
        self.assertEqual(fake.fake_cuda_waits() - before, 1)  # one for all arrays
        for name, got in self.peer.fetch_tree("t").items():
            self.same(got, tree[name])
        mine = {name: numpy.zeros_like(each) for name, each in tree.items()}
        self.peer.fetch_tree("t", out={name: OnGpu(each) if name != "a" else each for name, each in mine.items()})
        for name, got in mine.items():
            self.same(got, tree[name])

    def test_many_into_gpu_memory(self):
        arrays = {str(i): sample((100 + i,), first=i) for i in range(10)}
        for name, each in arrays.items():
            self.hub.publish(name, each)
        mine = {name: numpy.zeros_like(each) for name, each in arrays.items()}
        self.peer.fetch_many(arrays, out={name: OnGpu(each) if int(name) % 2 else each for name, each in mine.items()})
        for name, got in mine.items():
            self.same(got, arrays[name])

    def test_pushed_from_gpu_memory(self):
        gradient = sample((500,))
        self.peer.push("g", OnGpu(gradient))
        self.same(self.hub.get("g").value, gradient)
        self.peer.push_tree("t", {"x": OnGpu(gradient), "y": gradient})
        self.same(self.hub.get_tree("t").value["x"], gradient)
        self.assertEqual(self.peer.stats()["gpu_staged_bytes"], 4000)

    def test_strides_are_packed_on_the_gpu(self):
        whole = sample((20, 30))
        with self.assertRaises(weir_tensor.BadArray):
            self.hub.publish("a", OnGpu(whole.T))
        self.hub.publish("a", PackableOnGpu(whole.T))
        self.same(self.peer.fetch("a"), numpy.ascontiguousarray(whole.T))

    def test_staged_bytes_are_counted(self):
        self.hub.publish("a", OnGpu(sample((1000,))))
        self.hub.publish("b", sample((1000,)))
        self.assertEqual(self.hub.stats()["gpu_staged_bytes"], 4000)
        self.peer.fetch("b", out=OnGpu(numpy.zeros(1000, "float32")))
        self.peer.fetch_tree("a", out={"": OnGpu(numpy.zeros(1000, "float32"))})
        self.assertEqual(self.peer.stats()["gpu_staged_bytes"], 8000)

    def test_staging_is_pinned_and_used_again(self):
        array = OnGpu(numpy.zeros(8 * MIB, "uint8"))
        self.hub.publish("a", array)
        pinned = fake.fake_cuda_pinned_bytes()
        self.assertGreaterEqual(pinned, 8 * MIB)
        for _ in range(10):
            self.hub.publish("a", array)
        gc.collect()
        self.assertLessEqual(fake.fake_cuda_pinned_bytes(), pinned + 30 * MIB)  # only of `keep` versions

    def test_the_producer_hears_that_its_memory_is_free(self):
        before = len(dlpack._given)
        array = OnGpu(sample((1000,)))
        self.hub.publish("a", array)
        self.peer.fetch("a", out=OnGpu(numpy.zeros(1000, "float32")))
        gc.collect()
        self.assertEqual(len(dlpack._given), before)

    def test_a_gpu_that_is_not_there(self):
        with self.assertRaises(weir_tensor.NoGpu) as raised:
            self.hub.publish("a", OnGpu(sample((3,)), number=7))
        self.assertRegex(str(raised.exception), "GPU 7 cannot be used: invalid device ordinal")

    def test_other_devices_are_refused(self):
        class OnAnother(OnGpu):
            def __dlpack_device__(self):
                return 10, 0  # kDLROCM
        with self.assertRaisesRegex(weir_tensor.BadArray, "neither in host memory nor in CUDA's"):
            self.hub.publish("a", OnAnother(sample((3,))))

    def in_another_process(self, environment):
        words = [sys.executable, "-B", __file__, SOURCE, LIBRARY, FAKE, "InAnotherProcess"]
        return subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True)

    def test_pinning_that_fails_costs_only_speed(self):
        done = self.in_another_process({"FAKE_CUDA_PINS_NOTHING": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_driver_that_does_not_start(self):
        done = self.in_another_process({"FAKE_CUDA_BROKEN": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_a_driver_the_error_says_what_to_do(self):
        probe = f"""import ctypes, sys
sys.path.insert(0, {SOURCE!r})
try:
    ctypes.CDLL("libcuda.so.1")
    sys.exit(77)
except OSError:
    pass
import weir_tensor
class Gpu:
    def __dlpack_device__(self): return 2, 0
    def __dlpack__(self, stream=None): raise AssertionError("asked for")
hub = weir_tensor.listen("tcp://127.0.0.1:0")
try:
    hub.publish("a", Gpu())
except weir_tensor.NoGpu as why:
    print(why, why.next_step)
"""
        done = subprocess.run([sys.executable, "-B", "-c", probe], env={**os.environ, "LD_LIBRARY_PATH": ""}, capture_output=True,
                              text=True)
        if done.returncode == 77:
            self.skipTest("this machine has NVIDIA's driver")
        self.assertRegex(done.stdout, "no_gpu: libcuda.so.1 cannot be loaded.* Install NVIDIA's driver, or copy")


class InAnotherProcess(unittest.TestCase):
    """Run by other tests in this file, in an environment of their choice."""

    def test_there(self):
        hub = weir_tensor.listen("tcp://127.0.0.1:0")
        self.addCleanup(hub.close)
        if "FAKE_CUDA_BROKEN" in os.environ:
            with self.assertRaisesRegex(weir_tensor.NoGpu, "CUDA does not start"):
                hub.publish("a", OnGpu(sample((3,))))
            return
        hub.publish("a", OnGpu(sample((1000,))))
        self.assertTrue((hub.get("a").value == sample((1000,))).all())
        if "FAKE_CUDA_PINS_NOTHING" in os.environ:
            self.assertEqual(fake.fake_cuda_pinned_bytes(), 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
