"""DLPack's capsules (dlpack.h, version 0) by ctypes, for arrays in host memory or in that of CUDA's GPUs."""
import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

from . import gpu
from .errors import BadArray

CPU = 1
_HOST = (1, 3)  # kDLCPU, kDLCUDAHost


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("manager", c_void_p), ("deleter", _Deleter)]

_api = ctypes.pythonapi
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_NAME, _USED = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"used_dltensor")  # capsules keep these pointers


class Taken:
    """A tensor taken from a capsule; releases it to its producer when it is deleted."""

    def __init__(self, managed) -> None:
        self._managed = managed
        tensor = managed.contents.tensor
        self.kind, self.bits, self.lanes = tensor.code, tensor.bits, tensor.lanes
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.gpu = tensor.device_id if tensor.device_type in gpu.DEVICES else None

    def __del__(self) -> None:
        if self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


def device_of(array):
    """(kind, number), DLPack's device type and id."""
    kind, number = array.__dlpack_device__() if hasattr(array, "__dlpack_device__") else (CPU, 0)
    return int(kind), int(number)


def take(array, ordered=None) -> Taken:
    """Takes an array's capsule. `ordered` is a set shared by the arrays of one call, so that our stream waits for torch's current
    stream once, and not once for each array."""
    if getattr(array, "requires_grad", False):
        array = array.detach()
    try:
        kind, number = device_of(array)
        if kind in gpu.DEVICES:
            stream = gpu.stream_of(number)
            if ordered is not None and type(array).__module__.startswith("torch"):
                stream = stream if number not in ordered else gpu.NO_ORDER
                ordered.add(number)
            capsule = array.__dlpack__(stream=stream)
        elif kind in _HOST:
            capsule = array.__dlpack__()
        else:
            raise BadArray(f"the array is neither in host memory nor in CUDA's (DLPack device {kind}); copy it there first")
    except (BufferError, RuntimeError, TypeError, ValueError) as why:  # what producers raise if they cannot export an array
        raise BadArray(f"{type(array).__name__} exports no DLPack capsule: {why}") from why
    if not _api.PyCapsule_IsValid(capsule, _NAME):
        raise BadArray("not a DLPack capsule of version 0")
    managed = ctypes.cast(_api.PyCapsule_GetPointer(capsule, _NAME), POINTER(_Managed))
    _api.PyCapsule_SetName(capsule, _USED)
    return Taken(managed)


_given = {}  # address of a capsule's struct: what it keeps alive


@_Deleter
def _delete(managed) -> None:
    _given.pop(ctypes.addressof(managed.contents), None)


@ctypes.CFUNCTYPE(None, c_void_p)
def _drop_unused(capsule) -> None:
    # The capsule is being deallocated, so no new reference to it may be made.
    pointer = _raw_pointer(capsule, _NAME) if _raw_valid(capsule, _NAME) else None
    if pointer:
        _given.pop(pointer, None)


_raw_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_raw_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


def give(array):
    """Makes a capsule of a weir_tensor.Array."""
    shape = (c_int64 * max(len(array.shape), 1))(*array.shape)
    managed = _Managed()
    managed.tensor = _Tensor(array.address, CPU, 0, len(array.shape), array.kind, array.bits, array.lanes,
                             ctypes.cast(shape, POINTER(c_int64)), None, 0)
    managed.deleter = _delete
    address = ctypes.addressof(managed)
    _given[address] = (managed, shape, array)
    return _api.PyCapsule_New(address, _NAME, ctypes.cast(_drop_unused, c_void_p))
