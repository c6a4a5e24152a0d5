"""Arrays in CUDA's GPU memory: their bytes pass through pinned host memory (staging) before a publish or push, and after a
fetch. Copies wait for work that the array's producer has queued (DLPack's `stream`), and are done when the call returns.
"""
import ctypes
from collections import defaultdict

from .errors import check
from .library import Error, lib

DEVICES = (2, 13)  # DLPack's kDLCUDA, kDLCUDAManaged
NO_ORDER = -1  # DLPack: do not synchronise
_ALIGNMENT = 64


def stream_of(device: int) -> int:
    """The stream that copies run on, to pass to `__dlpack__(stream=)`."""
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
    """Gives GPU arrays a place in host memory; returns how many bytes they have."""
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
    """Copies GPU arrays to host memory, with one wait for each GPU, and lets go of the producers' memory; returns the number of
    bytes."""
    staged, error = _stage(described), Error()
    on_gpus = [each for each in described if each.gpu is not None]
    try:
        for each in on_gpus:
            check(lib.weir_tensor_gpu_read(each.gpu, each.place, each.address, each.nbytes, ctypes.byref(error)), error)
    finally:
        for device in {each.gpu for each in on_gpus}:  # also after an error: no copy may run into freed memory
            _wait(device)
    for each in on_gpus:
        each.holder = None
    return staged


def room(described) -> int:
    """Makes room in host memory for data that `send` will copy to GPUs."""
    return _stage(described)


def send(described) -> None:
    """Copies arrays from their places in host memory to their GPUs, and waits."""
    error = Error()
    on_gpus = [each for each in described if each.gpu is not None]
    try:
        for each in on_gpus:
            check(lib.weir_tensor_gpu_write(each.gpu, each.address, each.place, each.nbytes, ctypes.byref(error)), error)
    finally:
        for device in {each.gpu for each in on_gpus}:
            _wait(device)


def send_copies(pairs) -> int:
    """Copies from host memory that is not pinned to the arrays paired with it: the GPU reads one array while the next is copied
    to pinned memory. Returns the number of bytes."""
    staged, error = room([into for _, into in pairs]), Error()
    try:
        for source, into in pairs:
            ctypes.memmove(into.place, source, into.nbytes)
            check(lib.weir_tensor_gpu_write(into.gpu, into.address, into.place, into.nbytes, ctypes.byref(error)), error)
    finally:
        for device in {into.gpu for _, into in pairs}:
            _wait(device)
    return staged
