"""Converts Python's arrays for the library and back: dtypes, shapes, addresses.

Accepted: anything with `__array_interface__` (numpy), `__dlpack__` (torch and others, in host memory or CUDA's) or the buffer
protocol (bytes, array.array, memoryview). Returned: numpy arrays if numpy is installed and has the dtype, else an `Array`,
which DLPack's consumers accept (`torch.from_dlpack`). Only arrays that are not contiguous are copied.
"""
import ctypes
import functools
import sys
from math import prod
from typing import NamedTuple

from . import dlpack, gpu
from .errors import BadArray
from .library import Array as CArray
from .library import word

# numpy's kinds and DLPack's codes for them.
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_LETTERS = {code: letter for letter, code in _KINDS.items()}
_FORMATS = {"b": (0, 8), "B": (1, 8), "h": (0, 16), "H": (1, 16), "i": (0, 32), "I": (1, 32), "l": (0, 64), "L": (1, 64),
            "q": (0, 64), "Q": (1, 64), "n": (0, 64), "N": (1, 64), "e": (2, 16), "f": (2, 32), "d": (2, 64), "?": (6, 8),
            "c": (1, 8)}


@functools.lru_cache(1024)
def _extents(shape):
    return (ctypes.c_uint64 * len(shape))(*shape)


class Described:
    """An array's dtype, shape and address; `holder` owns the memory."""

    __slots__ = ("kind", "bits", "lanes", "shape", "address", "holder", "staged", "gpu", "place", "staging", "_shape")

    def __init__(self, kind, bits, lanes, shape, address, holder, staged=False) -> None:
        self.kind, self.bits, self.lanes = kind, bits, lanes
        self.shape, self.address, self.holder = tuple(shape), address, holder
        self.staged = staged  # a contiguous copy was made
        self.gpu = None  # the GPU that `address` is on, if any; the library then gets `place`, in host memory
        self.place = self.staging = None

    @property
    def nbytes(self) -> int:
        size = self.bits * self.lanes // 8
        for extent in self.shape:
            size *= extent
        return size

    def write(self, into: CArray) -> CArray:
        into.kind, into.bits, into.lanes = self.kind, self.bits, self.lanes
        into.dimensions = len(self.shape)
        self._shape = _extents(self.shape)
        into.shape = self._shape
        into.data = self.address if self.gpu is None else self.place
        return into


def _contiguous(shape, strides, itemsize) -> bool:
    """Whether the strides, in bytes, are those of a contiguous array in C order."""
    expected = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _by_interface(array, interface, writable: bool) -> Described:
    typestr = interface["typestr"]
    if typestr[0] == (">" if sys.byteorder == "little" else "<"):
        raise BadArray(f"the array has the other byte order ({typestr}); use astype() first")
    kind = _KINDS.get(typestr[1])
    if kind is None:
        raise BadArray(f"tensors have no dtype {typestr}")
    itemsize = int(typestr[2:])
    shape, strides, staged = interface["shape"], interface.get("strides"), False
    if strides is not None and 0 not in shape and not _contiguous(shape, strides, itemsize):
        if writable:
            raise BadArray("out= is not contiguous")
        array, staged = array.copy("C"), True
        interface = array.__array_interface__
    address, read_only = interface["data"]
    if writable and read_only:
        raise BadArray("out= is read-only")
    return Described(kind, 8 * itemsize, 1, shape, address, array, staged)


def _by_dlpack(array, writable: bool, ordered=None) -> Described:
    if str(getattr(array, "dtype", "")) == "torch.bool" and dlpack.device_of(array)[0] == dlpack.CPU:  # DLPack lacked bool before torch 2.2; numpy shares the memory
        array = array.detach().numpy()
        return _by_interface(array, array.__array_interface__, writable)
    held = dlpack.take(array, ordered)
    itemsize = held.bits * held.lanes // 8
    if held.strides is not None and 0 not in held.shape and not _contiguous(
            held.shape, [stride * itemsize for stride in held.strides], itemsize):
        if writable or not hasattr(array, "contiguous"):
            raise BadArray("the array is not contiguous")
        packed = _by_dlpack(array.contiguous(), writable)  # without `ordered`: the copy has just been queued on the stream
        packed.staged = True
        return packed
    described = Described(held.kind, held.bits, held.lanes, held.shape, held.address, held)
    described.gpu = held.gpu
    return described


class _Buffer:
    """Pins any object that has the buffer protocol."""

    class _View(ctypes.Structure):  # Py_buffer
        _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                    ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                    ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                    ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]

    def __init__(self, data, writable: bool) -> None:
        self._view = _Buffer._View()
        self._held = False
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(data), ctypes.byref(self._view),
                                            ctypes.c_int(1 if writable else 0))  # PyBUF_WRITABLE
        self._held = True
        self.address = self._view.buf

    def __del__(self) -> None:
        if self._held:
            ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self._view))


def _by_buffer(array, writable: bool) -> Described:
    view = memoryview(array)
    if view.format not in _FORMATS:
        raise BadArray(f"tensors have no dtype {view.format}")
    kind, bits = _FORMATS[view.format]
    held = _Buffer(array, writable)
    return Described(kind, bits, 1, view.shape, held.address, held)


def describe(array, writable: bool = False, ordered=None) -> Described:
    """Describes an array for the library. `ordered`: see dlpack.take."""
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        return _by_interface(array, interface, writable)
    if hasattr(array, "__dlpack__"):
        return _by_dlpack(array, writable, ordered)
    if isinstance(array, Array):
        return Described(array.kind, array.bits, array.lanes, array.shape, array.address, array)
    try:
        return _by_buffer(array, writable)
    except (TypeError, BufferError) as why:
        raise BadArray(f"{type(array).__name__} is not an array: {why}") from why


def describe_for_reading(array):
    """Like `describe`, after copying GPU arrays to host memory; also returns how many bytes were copied."""
    described = describe(array)
    return described, gpu.bring([described])


def describe_tree(tree):
    """Describes a mapping's arrays for the library. Returns the C array, its length, what must stay alive while it is used, and
    how many bytes came from GPUs."""
    ordered = set()
    described = [describe(array, ordered=ordered) for array in tree.values()]
    from_gpus = gpu.bring(described)
    names = [word("a name", key) for key in tree]
    arrays = (CArray * len(described))()
    for each, one, key in zip(arrays, described, names):
        one.write(each)
        each.name = ctypes.cast(ctypes.c_char_p(key), ctypes.c_void_p)
        each.name_size = len(key)
    return arrays, len(described), (described, names), from_gpus


class Array:
    """An array in host memory, for DLPack's consumers. `owner` owns the memory."""

    def __init__(self, kind, bits, lanes, shape, address, owner) -> None:
        self.kind, self.bits, self.lanes = kind, bits, lanes
        self.shape, self.address, self.owner = tuple(shape), address, owner

    @property
    def nbytes(self) -> int:
        size = self.bits * self.lanes // 8
        for extent in self.shape:
            size *= extent
        return size

    def __dlpack__(self, stream=None):
        return dlpack.give(self)

    def __dlpack_device__(self):
        return dlpack.CPU, 0

    def raw(self) -> memoryview:
        """The array's bytes, without a copy."""
        if self.nbytes == 0:
            return memoryview(b"")
        bytes_ = (ctypes.c_ubyte * self.nbytes).from_address(self.address)
        bytes_.owner = self.owner
        return memoryview(bytes_).cast("B")

    def __repr__(self) -> str:
        return f"<weir_tensor.Array kind={self.kind} bits={self.bits} lanes={self.lanes} shape={self.shape}>"


class _Interface:
    """An object that numpy.asarray turns into an array, and that the array keeps alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface, owner) -> None:
        self.__array_interface__ = interface
        self.owner = owner


try:
    import numpy
except ImportError:  # arrays are returned as Array
    numpy = None


def typestr_of(kind: int, bits: int, lanes: int):
    """numpy's name for the dtype; None if numpy has none."""
    if numpy is None or lanes != 1 or kind not in _LETTERS:
        return None
    letter = _LETTERS[kind]
    try:
        numpy.dtype(f"{letter}{bits // 8}")
    except TypeError:
        return None
    return f"{'|' if bits == 8 else '<' if sys.byteorder == 'little' else '>'}{letter}{bits // 8}"


def give(typestr, kind, bits, lanes, shape, address, owner, read_only=False):
    """Makes an array of the memory at `address`; the array keeps `owner` alive."""
    if typestr is None:
        return Array(kind, bits, lanes, shape, address, owner)
    if 0 in shape:
        return numpy.empty(shape, typestr)
    return numpy.asarray(_Interface({"typestr": typestr, "shape": shape, "data": (address, read_only), "version": 3}, owner))


class Run(NamedTuple):
    """Consecutive arrays of one dtype and shape, each `distance` bytes after the previous one; or a single array."""

    names: list
    first: tuple  # the first array's row
    distance: int
    dtype: object  # None: cannot be part of a longer run


def runs_of(rows) -> list:
    """Groups rows into runs, in order. numpy makes the views of a run as the rows of one array, in a fifth of the time."""
    runs = []
    for row in rows:
        name, offset, typestr, kind, bits, lanes, shape = row
        size = bits * lanes // 8 * prod(shape)
        last = runs[-1] if runs else None
        if last is not None and last.dtype is not None and (typestr, shape) == (last.first[2], last.first[6]):
            distance = offset - last.first[1] - last.distance * (len(last.names) - 1)
            if distance >= size and (distance == last.distance or len(last.names) == 1):
                last.names.append(name)
                runs[-1] = last._replace(distance=distance)
                continue
        # The rows of a one-dimensional array are numbers, not arrays, so scalars cannot form a run.
        alike = typestr is not None and size > 0 and len(shape) > 0
        runs.append(Run([name], row, 0, numpy.dtype(typestr) if alike else None))
    return runs


def _strides(shape, itemsize) -> tuple:
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


def give_many(runs, address, bytes_, owner, read_only=False) -> dict:
    """Makes the arrays that share one piece of memory, by name."""
    whole = give("|u1", 1, 8, 1, (bytes_,), address, owner, read_only) if numpy is not None and bytes_ else None
    tree = {}
    for names, (name, offset, typestr, kind, bits, lanes, shape), distance, dtype in runs:
        if whole is None or dtype is None:
            tree[name] = give(typestr, kind, bits, lanes, shape, address + offset, owner, read_only)
        elif len(names) == 1:
            tree[name] = numpy.ndarray(shape, dtype, whole, offset)
        else:
            strides = (distance, *_strides(shape, dtype.itemsize))
            tree.update(zip(names, numpy.ndarray((len(names), *shape), dtype, whole, offset, strides)))
    return tree
