#!/usr/bin/env python3
"""PyTorch's tensors on a GPU through a hub, between two processes; with --speed also how fast.

usage: torch_gpu_test.py SOURCE LIBRARY [--speed | unittest's words]    exit status 77: skipped, for lack of torch or of a GPU
"""
import gc
import os
import subprocess
import sys
import time
import unittest

if len(sys.argv) < 3:
    sys.exit(__doc__)
SOURCE, LIBRARY = sys.argv[1:3]
os.environ["WEIR_TENSOR_LIBRARY"] = LIBRARY
sys.path.insert(0, SOURCE)
import weir_tensor

# Load Weir's NIC first: torch may load the system's libibverbs, and a process has only one library of that
# name.
weir_tensor.listen("rdma://127.0.0.1:0").close()
try:
    import torch
except ImportError:
    print("skipped: no torch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: no GPU that torch can use")
    sys.exit(77)

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64, torch.complex64, torch.complex128]
SHAPES = [(), (0,), (3, 0, 2), (7,), (2, 3, 4), (300, 301)]


def sample(shape, dtype, seed=7):
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    return torch.randint(0, 100, shape, generator=generator, device="cuda").to(dtype)


def model():
    return torch.nn.Sequential(torch.nn.Linear(200, 300), torch.nn.BatchNorm1d(300), torch.nn.ReLU(), torch.nn.Linear(300, 50)).cuda()


class OnGpu(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.hub = weir_tensor.listen("rdma://127.0.0.1:0", push_names="*")
        self.addCleanup(self.hub.close)
        self.peer = weir_tensor.connect(self.hub.address)
        self.addCleanup(self.peer.close)

    def same(self, got, expected):
        self.assertEqual((got.dtype, got.shape, got.device), (expected.dtype, expected.shape, expected.device))
        self.assertTrue(torch.equal(got, expected))

    def test_every_dtype_and_shape_there_and_back(self):
        for dtype in DTYPES:
            for shape in SHAPES:
                with self.subTest(dtype=dtype, shape=shape):
                    expected = sample(shape, dtype)
                    mine = torch.zeros(shape, dtype=dtype, device="cuda")
                    self.hub.publish("a", expected)
                    self.assertIs(self.peer.fetch("a", out=mine), mine)
                    self.same(mine, expected)

    def test_between_gpu_and_host(self):
        expected = sample((300, 301), torch.float32)
        self.hub.publish("gpu", expected)
        self.same(torch.from_dlpack(self.peer.fetch("gpu")), expected.cpu())
        self.hub.publish("host", expected.cpu())
        mine = torch.zeros_like(expected)
        self.peer.fetch("host", out=mine)
        self.same(mine, expected)

    def test_strides_are_packed_on_the_gpu(self):
        whole = sample((200, 300), torch.float32)
        for view in (whole.T, whole[::2], whole[:, ::3], whole[0].expand(5, 300)):
            mine = torch.zeros(view.shape, device="cuda")
            self.hub.publish("a", view)
            self.peer.fetch("a", out=mine)
            self.same(mine, view.contiguous())

    def test_a_model_goes_into_another(self):
        ours, into = model(), model()
        ours(torch.randn(8, 200, device="cuda"))
        self.hub.publish_tree("model", ours.state_dict())
        self.peer.fetch_tree("model", out=into.state_dict())
        ours.eval(), into.eval()
        what = torch.randn(4, 200, device="cuda")
        self.same(into(what), ours(what))
        many = {name: torch.zeros_like(each) for name, each in ours.state_dict().items()}
        for name, each in ours.state_dict().items():
            self.hub.publish(name, each)
        self.peer.fetch_many(many, out=many)
        for name, each in ours.state_dict().items():
            self.same(many[name], each)

    def test_a_push_from_the_gpu(self):
        gradient = torch.nn.Parameter(sample((500, 500), torch.bfloat16))
        self.peer.push("g", gradient)
        self.same(torch.from_dlpack(self.hub.get("g").value).cuda(), gradient.detach())

    def test_what_the_stream_has_not_done_yet_is_waited_for(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for round_ in range(5):
                array = torch.zeros(1 << 22, device="cuda")
                torch.cuda._sleep(50_000_000)  # cycles: 25 ms or more
                array += round_ + 1
                self.hub.publish("a", array)
                array.zero_()  # queued behind the copy
                self.assertTrue(bool((self.hub.get("a").value == round_ + 1).all()))
                mine = torch.zeros(1 << 22, device="cuda")
                torch.cuda._sleep(50_000_000)
                copied = mine.clone()  # of the zeros: the fetch is queued behind it
                self.peer.fetch("a", out=mine)
                total = mine.sum()  # sees the fetched values
                self.assertEqual(copied.abs().max().item(), 0)
                self.assertEqual(total.item(), (round_ + 1) * (1 << 22))

    def test_a_tree_waits_for_the_stream_as_an_array_does(self):
        with torch.cuda.stream(torch.cuda.Stream()):
            tree = {str(i): torch.zeros(1000, device="cuda") for i in range(20)}
            mine = {name: torch.zeros_like(each) for name, each in tree.items()}
            torch.cuda._sleep(50_000_000)
            for number, each in enumerate(tree.values()):
                each += number + 1
            self.hub.publish_tree("t", tree)
            torch.cuda._sleep(50_000_000)
            copied = [each.clone() for each in mine.values()]
            self.peer.fetch_tree("t", out=mine)
            for number, (got, before) in enumerate(zip(mine.values(), copied)):
                self.same(got, torch.full_like(got, number + 1))
                self.assertEqual(before.abs().max().item(), 0)

    def test_torch_gets_its_memory_back(self):
        before = torch.cuda.memory_allocated()
        for _ in range(5):
            array = torch.ones(8 << 20, device="cuda")
            self.hub.publish("a", array)
            self.peer.fetch("a", out=array)
        del array
        gc.collect()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_cupys_arrays(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no cupy")
        expected = cupy.arange(30000, dtype="float32").reshape(300, 100)
        mine = cupy.zeros_like(expected)
        self.hub.publish("a", expected)
        self.peer.fetch("a", out=mine)
        self.assertTrue(bool((mine == expected).all()))


SOURCE_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import weir_tensor
hub = weir_tensor.listen(sys.argv[2], push_names="*")
import time, torch
array = torch.arange(16 << 20, dtype=torch.float32, device="cuda")
hub.publish("a", array)
hub.publish_tree("tree", {str(i): each for i, each in enumerate(array.chunk(1000))})
print(hub.address, flush=True)
for _ in range(10):
    begin = time.perf_counter()
    hub.publish("a", array)
    print(time.perf_counter() - begin, flush=True)
print("done", flush=True)
sys.stdin.read()
"""


def best(work, rounds=10):
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times), sorted(times)[len(times) // 2]


def speed():
    """64 MiB from one process's GPU memory to another's, beside torch's plain copies within one process."""
    mine = torch.zeros(16 << 20, dtype=torch.float32, device="cuda")
    other = torch.arange(16 << 20, dtype=torch.float32, device="cuda")
    pinned = torch.empty(16 << 20, dtype=torch.float32, pin_memory=True)
    host = torch.zeros(16 << 20, dtype=torch.float32)
    rows = {"torch: .cpu() and copy_() back": lambda: mine.copy_(other.cpu()),
            "torch: copy_() to host memory and back": lambda: mine.copy_(host.copy_(other)),
            "torch: copy_() to pinned memory and back": lambda: mine.copy_(pinned.copy_(other))}
    for address in ("rdma://127.0.0.1:0", "tcp://127.0.0.1:0"):
        hub = subprocess.Popen([sys.executable, "-c", SOURCE_PROGRAM, SOURCE, address], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        where = hub.stdout.readline().strip()
        published = []
        while (line := hub.stdout.readline().strip()) != "done":
            published.append(float(line))
        kind = address.partition(":")[0]
        print(f"{kind}: publish of 64 MiB: best {min(published) * 1e3:.2f} ms, median {sorted(published)[5] * 1e3:.2f} ms")
        with weir_tensor.connect(where) as peer:
            tree = {str(i): each for i, each in enumerate(mine.chunk(1000))}
            for name, work in (rows | {f"{kind}: fetch(out=) of 64 MiB": lambda: peer.fetch("a", out=mine),
                                       f"{kind}: fetch(out=) to host memory": lambda: peer.fetch("a"),
                                       f"{kind}: fetch_tree(out=) of 1000 x 64 KiB": lambda: peer.fetch_tree("tree", out=tree),
                                       f"{kind}: push of 64 MiB": lambda: peer.push("g", mine)}).items():
                work()
                least, median = best(work)
                print(f"{name}: best {least * 1e3:.2f} ms, {64 * 1.048576e6 / least / 1e9:.1f} GB/s; median {median * 1e3:.2f} ms",
                      flush=True)
            mine.zero_()
            peer.fetch("a", out=mine)
            assert torch.equal(mine, other), "wrong bytes"
        hub.stdin.close()
        hub.wait()


if __name__ == "__main__":
    if sys.argv[3:] == ["--speed"]:
        speed()
    else:
        unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
