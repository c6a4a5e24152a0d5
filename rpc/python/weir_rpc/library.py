"""libweir_rpc.so.0 by ctypes: the declarations of weir_rpc.h, word for word.

ctypes lets other Python threads run while a function of the library does.
"""
import ctypes
import numbers
import os
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p


class Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("message", c_char * 508)]


class Call(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("method", c_char_p), ("arguments", c_char_p), ("arguments_size", c_size_t),
                ("attachment", c_void_p), ("attachment_size", c_size_t), ("reply_into", c_void_p),
                ("reply_into_size", c_size_t), ("timeout_us", c_int64), ("flags", c_uint32), ("codec", c_uint32)]


IDEMPOTENT = 1
MOST_SECONDS = 1e9
Done = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
Handler = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)


class Caller(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("token", c_char_p), ("token_size", c_size_t), ("certificate", c_char_p),
                ("peer", c_char_p)]


class Identity(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char * 256), ("valid_us", c_int64)]


Authenticate = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Caller), POINTER(Identity), POINTER(Error))
Authorise = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p, POINTER(Error))
Release = ctypes.CFUNCTYPE(None, c_void_p)

# name: (result, arguments...)
_FUNCTIONS = {
    "weir_rpc_code_name": (c_char_p, c_int),
    "weir_rpc_next_step": (c_char_p, c_int),
    "weir_rpc_did_not_run": (c_int, c_int),
    "weir_rpc_version": (c_char_p,),
    "weir_rpc_options_new": (c_void_p,),
    "weir_rpc_options_free": (None, c_void_p),
    "weir_rpc_options_set": (c_int, c_void_p, c_char_p, c_char_p, POINTER(Error)),
    "weir_rpc_options_authenticate": (None, c_void_p, Authenticate, c_void_p),
    "weir_rpc_options_authorise": (None, c_void_p, Authorise, c_void_p),
    "weir_rpc_connect": (c_int, POINTER(c_void_p), c_char_p, c_void_p, POINTER(Error)),
    "weir_rpc_shutdown": (None, c_void_p),
    "weir_rpc_close": (None, c_void_p),
    "weir_rpc_is_open": (c_int, c_void_p),
    "weir_rpc_run": (c_void_p, c_void_p, POINTER(Call)),
    "weir_rpc_start": (c_uint64, c_void_p, POINTER(Call), c_void_p, c_void_p),
    "weir_rpc_cancel": (None, c_void_p, c_uint64),
    "weir_rpc_fd": (c_int, c_void_p),
    "weir_rpc_take": (c_void_p, c_void_p, POINTER(c_void_p)),
    "weir_rpc_reply_code": (c_int, c_void_p),
    "weir_rpc_reply_message": (c_char_p, c_void_p),
    "weir_rpc_reply_body": (c_void_p, c_void_p, POINTER(c_size_t)),
    "weir_rpc_reply_attachment": (c_void_p, c_void_p, POINTER(c_size_t)),
    "weir_rpc_reply_free": (None, c_void_p),
    "weir_rpc_server_new": (c_int, POINTER(c_void_p), c_void_p, POINTER(Error)),
    "weir_rpc_server_add": (c_int, c_void_p, c_char_p, c_char_p, Handler, c_void_p, POINTER(Error)),
    "weir_rpc_server_listen": (c_int, c_void_p, c_char_p, c_char_p, c_size_t, POINTER(Error)),
    "weir_rpc_server_renew_certificates": (c_int, c_void_p, POINTER(Error)),
    "weir_rpc_server_drain": (None, c_void_p),
    "weir_rpc_server_open": (c_uint32, c_void_p),
    "weir_rpc_server_free": (None, c_void_p),
    "weir_rpc_request_arguments": (c_void_p, c_void_p, POINTER(c_size_t)),
    "weir_rpc_request_attachment": (c_void_p, c_void_p, POINTER(c_size_t)),
    "weir_rpc_request_peer": (c_char_p, c_void_p),
    "weir_rpc_request_certificate": (c_char_p, c_void_p),
    "weir_rpc_request_identity": (c_char_p, c_void_p),
    "weir_rpc_request_remaining_us": (c_int64, c_void_p),
    "weir_rpc_request_cancelled": (c_int, c_void_p),
    "weir_rpc_respond": (None, c_void_p, c_char_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p),
    "weir_rpc_refuse": (None, c_void_p, c_int, c_char_p),
}


def _where() -> str:
    """A wheel of Weir's carries the library; otherwise the loader looks for it."""
    carried = os.path.join(os.path.dirname(os.path.dirname(__file__)), "weir", "lib", "libweir_rpc.so.0")
    return os.environ.get("WEIR_RPC_LIBRARY") or (carried if os.path.exists(carried) else "libweir_rpc.so.0")


def _load() -> ctypes.CDLL:
    path = _where()
    try:
        library = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(f"cannot load {path}: {why}; install Weir, or set WEIR_RPC_LIBRARY to libweir_rpc.so.0 of "
                          "a build tree") from why
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()


def text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def word(what: str, value: str) -> bytes:
    """For the library, which takes a zero for the end."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is text, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{what} has no NUL in it, as {value!r} does")
    return value.encode()


def seconds(what: str, value: float) -> float:
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{what} is a number of seconds, not {value!r}")
    if not -MOST_SECONDS <= value <= MOST_SECONDS:  # nor a nan
        raise ValueError(f"{what} is a number of seconds, not {value}")
    return value


class Buffer:
    """Any object with the buffer protocol, held still: `address` and `size` are valid until release()."""

    class _View(ctypes.Structure):  # Py_buffer
        _fields_ = [("buf", c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                    ("itemsize", ctypes.c_ssize_t), ("readonly", c_int), ("ndim", c_int), ("format", c_char_p),
                    ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]

    def __init__(self, data, writable: bool = False) -> None:
        self._view = Buffer._View()
        flags = 1 if writable else 0  # PyBUF_WRITABLE, PyBUF_SIMPLE
        self._held = False
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(data), ctypes.byref(self._view), c_int(flags))
        self._held = True
        self.address = self._view.buf
        self.size = self._view.len

    def release(self) -> None:
        if self._held:
            self._held = False
            ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self._view))

    def __del__(self) -> None:
        self.release()


def memory_of(address, size: int, owner) -> memoryview:
    """The memory there, without a copy; `owner` lives as long as the view."""
    if size == 0:
        return memoryview(b"")
    array = (ctypes.c_ubyte * size).from_address(address)
    array.owner = owner
    return memoryview(array).cast("B")


class Options:
    """Settings by name for the time of a `with`."""

    def __init__(self, settings: dict) -> None:
        self._settings = {name: value for name, value in settings.items() if value is not None}

    def __enter__(self):
        from .errors import RpcError
        words = {name: word(name, str(int(value)) if isinstance(value, (bool, int, float)) else os.fspath(value))
                 for name, value in self._settings.items()}
        self._options = lib.weir_rpc_options_new()
        error = Error()
        for name, value in words.items():
            if lib.weir_rpc_options_set(self._options, name.encode(), value, ctypes.byref(error)):
                lib.weir_rpc_options_free(self._options)
                raise RpcError.of(error.code, text(error.message))
        return self._options

    def __exit__(self, *_) -> None:
        lib.weir_rpc_options_free(self._options)


def rdma_settings(provider, settings) -> dict:
    """`settings`: names of weir_rpc.h without "rdma.", such as {"receive_blocks": 128}."""
    return {"rdma.provider": provider, **{f"rdma.{name}": value for name, value in (settings or {}).items()}}


def http_settings(http) -> dict:
    """True, or names of weir_rpc.h without "http.", such as {"origins": ["https://shop.example"]}."""
    if not http:
        return {}
    given = {} if http is True else dict(http)
    return {"http": True, **{f"http.{name}": value if isinstance(value, (str, int)) else ",".join(value) for name, value in given.items()}}


def tls_settings(certificate, key, authority, server_name=None, check_certificate=None) -> dict:
    return {"tls.certificate": certificate, "tls.key": key, "tls.authority": authority,
            "tls.server_name": server_name, "tls.check_certificate": check_certificate}
