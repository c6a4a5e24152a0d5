"""Arrays in CUDA's GPU memory: their bytes pass through pinned host memory (staging), before a publish or push and after a
fetch. The copies wait for the work that the array's producer has begun (DLPack's `stream`), and are done when the call returns.
"""
import ctypes
from collections import defaultdict

from .errors import check
from .library import Error, lib

DEVICES = (2, 13)  # DLPack's kDLCUDA, kDLCUDAManaged
NO_ORDER = -1  # a stream that nothing is ordered behind
_ALIGNMENT = 64


def stream_of(device: int) -> int:
    """The stream that copies run on, for `__dlpack__(stream=)`."""
    stream, error = ctypes.c_void_p(), Error()
    check(lib.weir_tensor_gpu_stream(device, ctypes.byref(stream), ctypes.byref(error)), error)
    return stream.value


def _wait(device: int) -> None:
    error = Error()
    check(lib.weir_tensor_gpu_wait(device, ctypes.byref(error)), error)


class _Staging:
    __slots__ = ("address",)

    def __init__(self, device: int, bytes_: int) -> None:
        self.address = None
        memory, error = ctypes.c_void_p(), Error()
        check(lib.weir_tensor_staging_take(device, bytes_, ctypes.byref(memory), ctypes.byref(error)), error)
        self.address = memory.value

    def __del__(self) -> None:
        if self.address:
            lib.weir_tensor_staging_give_back(self.address)


def _stage(described) -> int:
    """Gives those that lie on a GPU places in host memory; how many bytes they are."""
    by_device, staged = defaultdict(list), 0
    for each in described:
        if each.gpu is not None and each.place is None:
            by_device[each.gpu].append(each)
    for device, arrays in by_device.items():
        at = 0
        for each in arrays:
            each.place = at
            at += -(-each.nbytes // _ALIGNMENT) * _ALIGNMENT
            staged += each.nbytes
        memory = _Staging(device, at)
        for each in arrays:
            each.place += memory.address
            each.staging = memory
    return staged


def bring(described) -> int:
    """What lies on a GPU is in host memory afterwards, all of it by one wait for each GPU; how many bytes that were. The
    producers' memory is theirs again."""
    staged, error = _stage(described), Error()
    on_gpus = [each for each in described if each.gpu is not None]
    try:
        for each in on_gpus:
            check(lib.weir_tensor_gpu_read(each.gpu, each.place, each.address, each.nbytes, ctypes.byref(error)), error)
    finally:
        for device in {each.gpu for each in on_gpus}:  # also after an error: nothing may be under way to memory that goes
            _wait(device)
    for each in on_gpus:
        each.holder = None
    return staged


def room(described) -> int:
    """Places in host memory for what is to go to GPUs; `send` brings it there."""
    return _stage(described)


def send(described) -> None:
    """From their places in host memory to where they lie; waits."""
    error = Error()
    on_gpus = [each for each in described if each.gpu is not None]
    try:
        for each in on_gpus:
            check(lib.weir_tensor_gpu_write(each.gpu, each.address, each.place, each.nbytes, ctypes.byref(error)), error)
    finally:
        for device in {each.gpu for each in on_gpus}:
            _wait(device)


def send_copies(pairs) -> int:
    """From addresses in host memory that is not pinned, to the arrays beside them: the GPU takes one while the next is copied to
    pinned memory. How many bytes that were."""
    staged, error = room([into for _, into in pairs]), Error()
    try:
        for source, into in pairs:
            ctypes.memmove(into.place, source, into.nbytes)
            check(lib.weir_tensor_gpu_write(into.gpu, into.address, into.place, into.nbytes, ctypes.byref(error)), error)
    finally:
        for device in {into.gpu for _, into in pairs}:
            _wait(device)
    return staged
