#!/usr/bin/env python3
"""PyTorch's tensors through a hub: state_dicts, every dtype of torch, its tensors as out=.

usage: torch_test.py SOURCE LIBRARY [unittest's words]
"""
import gc
import os
import subprocess
import sys
import unittest

if len(sys.argv) < 3:
    sys.exit(__doc__)
SOURCE, LIBRARY = sys.argv[1:3]
os.environ["WEIR_TENSOR_LIBRARY"] = LIBRARY
sys.path.insert(0, SOURCE)
import weir_tensor

# Load Weir's NIC first: torch's TensorPipe loads the system's libibverbs, and a process has only one library
# of that name.
weir_tensor.listen("rdma://127.0.0.1:0").close()
try:
    import torch
except ImportError:
    print("skipped: no torch (python3-torch)")
    sys.exit(77)

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64, torch.complex64, torch.complex128]
SHAPES = [(), (0,), (3, 0, 2), (7,), (2, 3, 4), (300, 301)]


def sample(shape, dtype):
    count = 1
    for extent in shape:
        count *= extent
    return (torch.arange(count) % 100).to(dtype).reshape(shape)


def as_torch(array):
    """Works around numpy 1.24, which exports no DLPack capsule of a bool array."""
    return torch.from_dlpack(array) if getattr(array, "dtype", None) != bool else torch.as_tensor(array)


def model():
    return torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30), torch.nn.ReLU(), torch.nn.Linear(30, 5))


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.hub = weir_tensor.listen("rdma://127.0.0.1:0")
        self.addCleanup(self.hub.close)
        self.peer = weir_tensor.connect(self.hub.address)
        self.addCleanup(self.peer.close)

    def same(self, got, expected):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        self.assertTrue(torch.equal(got, expected))

    def test_every_dtype_and_shape(self):
        for dtype in DTYPES:
            for shape in SHAPES:
                with self.subTest(dtype=dtype, shape=shape):
                    expected = sample(shape, dtype)
                    self.hub.publish("a", expected)
                    self.same(as_torch(self.peer.fetch("a")), expected)

    def test_into_torchs_own_memory(self):
        for dtype in DTYPES:
            for shape in SHAPES:
                with self.subTest(dtype=dtype, shape=shape):
                    expected, mine = sample(shape, dtype), torch.zeros(shape, dtype=dtype)
                    self.hub.publish("a", expected)
                    self.assertIs(self.peer.fetch("a", out=mine), mine)
                    self.same(mine, expected)
        with self.assertRaises(weir_tensor.ShapeMismatch):
            self.peer.fetch("a", out=torch.zeros(3))
        with self.assertRaises(weir_tensor.BadArray):
            self.peer.fetch("a", out=torch.zeros((301, 300), dtype=DTYPES[-1]).T)

    def test_strides_are_packed(self):
        whole = sample((20, 30), torch.float32)
        for view in (whole.T, whole[::2], whole[:, ::3], whole[0].expand(5, 30), whole.to(torch.bool).T):
            self.hub.publish("a", view)
            self.same(as_torch(self.peer.fetch("a")), view.contiguous())

    def test_a_model_goes_into_another(self):
        ours, theirs = model(), model()
        ours(torch.randn(8, 20))  # gives it its own running statistics
        self.hub.publish_tree("model", ours.state_dict())
        theirs.load_state_dict({name: as_torch(each) for name, each in self.peer.fetch_tree("model").items()})
        into = model()
        self.peer.fetch_tree("model", out=into.state_dict())  # shares the memory of its parameters
        for each in (ours, theirs, into):
            each.eval()
        what = torch.randn(4, 20)
        self.same(theirs(what), ours(what))
        self.same(into(what), ours(what))

    def test_a_half_precision_model_keeps_its_dtype(self):
        ours = model().to(torch.bfloat16)
        self.hub.publish_tree("model", ours.state_dict())
        got = self.peer.fetch_tree("model")
        for name, expected in ours.state_dict().items():
            self.same(as_torch(got[name]), expected)

    def test_parameters_that_want_gradients_are_published(self):
        weight = torch.nn.Parameter(sample((3, 4), torch.float32))
        self.hub.publish("a", weight)
        self.same(as_torch(self.peer.fetch("a")), weight.detach())

    def test_what_is_pushed_is_torchs(self):
        with weir_tensor.listen("rdma://127.0.0.1:0", push_names="*") as hub, weir_tensor.connect(hub.address) as peer:
            peer.push("grad", sample((5, 5), torch.bfloat16))
            self.same(torch.from_dlpack(hub.get("grad").value), sample((5, 5), torch.bfloat16))

    def test_tensors_outlive_the_peer_and_are_let_go_of(self):
        expected = sample((1000,), torch.bfloat16)
        self.hub.publish("a", expected)
        got = torch.from_dlpack(self.peer.fetch("a"))
        self.peer.close()
        self.hub.close()
        gc.collect()
        self.same(got, expected)
        del got
        gc.collect()
        self.assertEqual(weir_tensor.dlpack._given, {})

    def test_who_imports_torch_first_hears_what_to_do(self):
        words = "import torch, weir_tensor; weir_tensor.listen('rdma://127.0.0.1:0')"
        done = subprocess.run([sys.executable, "-B", "-c", words], env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True,
                              text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "libibverbs.so.1.* is in this process already.*; open RDMA before")

    def test_what_dlpack_cannot_say_is_refused(self):
        for wrong in (sample((3,), torch.complex64).conj(), torch.sparse_coo_tensor([[0]], [1.0], (2,)),
                      torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8), torch.zeros(3, device="meta")):
            with self.assertRaises(weir_tensor.BadArray):
                self.hub.publish("a", wrong)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
