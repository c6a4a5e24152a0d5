"""`empty`: memory that the software NIC transfers fastest."""
import ctypes

from .arrays import give, numpy
from .errors import BadArray, TooMuch
from .library import lib


class _Shared:
    __slots__ = ("address",)

    def __init__(self, bytes_: int) -> None:
        self.address = lib.weir_tensor_empty(max(bytes_, 1))
        if not self.address:
            raise TooMuch(f"cannot allocate {bytes_} bytes of shared memory", TooMuch.code)

    def __del__(self) -> None:
        if self.address:
            lib.weir_tensor_empty_free(self.address)


def empty(shape, dtype="float32"):
    """A zeroed array in shared memory: data published from it or fetched into it are copied without the kernel's help. Needs
    numpy."""
    if numpy is None:
        raise BadArray("empty() needs numpy", BadArray.code)
    kind_of = numpy.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    bytes_ = kind_of.itemsize
    for extent in shape:
        bytes_ *= extent
    held = _Shared(bytes_)
    return give(kind_of.str, 0, 0, 1, shape, held.address, held)
