"""libweir_tensor.so.0 by ctypes: the declarations of weir_tensor.h, word for word.

ctypes releases the GIL during calls into the library.
"""
import ctypes
import os
from ctypes import (POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64,
                    c_void_p)


class Error(ctypes.Structure):
    _fields_ = [("generation", c_uint64), ("code", c_int32), ("message", c_char * 500)]


class Array(ctypes.Structure):
    _fields_ = [("kind", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("dimensions", c_uint32),
                ("shape", POINTER(c_uint64)), ("data", c_void_p), ("name", c_void_p), ("name_size", c_size_t)]


class Rows(ctypes.Structure):
    _fields_ = [("first", c_uint64), ("count", c_uint64)]


class Wish(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("newer_than", c_uint64), ("generation", c_uint64), ("timeout_us", c_int64),
                ("out", POINTER(Array)), ("rows", POINTER(Rows)), ("runs", c_size_t)]


HUB_STATS = ("connections", "connections_made", "requests", "written", "written_bytes", "located", "metadata_updates",
             "superseded", "broken", "live_bytes", "pushes", "pushed_bytes", "pushed_held_bytes", "tcp_connections",
             "private_bytes", "shared_bytes", "direct_bytes", "packed_bytes", "frames")
PEER_STATS = ("fetches", "fetched_bytes", "read_bytes", "metadata_updates", "connects", "pushes", "pushed_bytes", "fallbacks", "transport")


class HubStats(ctypes.Structure):
    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in HUB_STATS]


class PeerStats(ctypes.Structure):
    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in PEER_STATS]


# name: (result, arguments...)
_FUNCTIONS = {
    "weir_tensor_code_name": (c_char_p, c_int),
    "weir_tensor_next_step": (c_char_p, c_int),
    "weir_tensor_version": (c_char_p,),
    "weir_tensor_options_new": (c_void_p,),
    "weir_tensor_options_free": (None, c_void_p),
    "weir_tensor_options_set": (c_int, c_void_p, c_char_p, c_char_p, POINTER(Error)),
    "weir_tensor_listen": (c_int, POINTER(c_void_p), c_char_p, c_void_p, POINTER(Error)),
    "weir_tensor_hub_free": (None, c_void_p),
    "weir_tensor_hub_address": (c_char_p, c_void_p),
    "weir_tensor_hub_generation": (c_uint64, c_void_p),
    "weir_tensor_publish": (c_int, c_void_p, c_char_p, c_void_p, c_size_t, c_int, c_uint64, POINTER(c_uint64),
                            POINTER(Error)),
    "weir_tensor_lend": (c_int, c_void_p, c_char_p, c_void_p, c_size_t, c_int, c_uint64, c_uint32, c_int64, POINTER(c_void_p),
                         POINTER(c_uint64), POINTER(Error)),
    "weir_tensor_lease_wait": (c_int, c_void_p, c_int64),
    "weir_tensor_lease_word": (c_void_p, c_void_p, c_size_t, POINTER(c_size_t)),
    "weir_tensor_lease_free": (None, c_void_p),
    "weir_tensor_done": (c_int, c_void_p, c_char_p, c_uint64, c_uint64, c_char_p, c_size_t, c_int64, POINTER(Error)),
    "weir_tensor_released": (c_size_t, c_void_p, POINTER(c_uint64), c_size_t),
    "weir_tensor_withdraw": (c_int, c_void_p, c_char_p),
    "weir_tensor_hub_get_stats": (None, c_void_p, POINTER(HubStats)),
    "weir_tensor_hub_get": (c_int, c_void_p, c_char_p, POINTER(Wish), POINTER(c_void_p), POINTER(Error)),
    "weir_tensor_push": (c_int, c_void_p, c_char_p, c_void_p, c_size_t, c_int, c_int64, POINTER(c_uint64), POINTER(Error)),
    "weir_tensor_add": (c_int, c_void_p, c_char_p, c_void_p, c_size_t, c_int, c_int64, POINTER(c_uint64), POINTER(Error)),
    "weir_tensor_connect": (c_int, POINTER(c_void_p), c_char_p, c_void_p, POINTER(Error)),
    "weir_tensor_peer_free": (None, c_void_p),
    "weir_tensor_peer_generation": (c_uint64, c_void_p),
    "weir_tensor_fetch": (c_int, c_void_p, c_char_p, POINTER(Wish), POINTER(c_void_p), POINTER(Error)),
    "weir_tensor_fetch_many": (c_int, c_void_p, POINTER(c_char_p), POINTER(POINTER(Wish)), c_size_t, POINTER(c_void_p),
                               POINTER(Error)),
    "weir_tensor_gpu_stream": (c_int, c_int, POINTER(c_void_p), POINTER(Error)),
    "weir_tensor_gpu_read": (c_int, c_int, c_void_p, c_void_p, c_size_t, POINTER(Error)),
    "weir_tensor_gpu_write": (c_int, c_int, c_void_p, c_void_p, c_size_t, POINTER(Error)),
    "weir_tensor_gpu_wait": (c_int, c_int, POINTER(Error)),
    "weir_tensor_staging_take": (c_int, c_int, c_size_t, POINTER(c_void_p), POINTER(Error)),
    "weir_tensor_staging_give_back": (None, c_void_p),
    "weir_tensor_start": (c_void_p, c_void_p, c_char_p, POINTER(Wish)),
    "weir_tensor_finish": (c_int, c_void_p, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "weir_tensor_wait": (c_int, c_void_p, c_void_p, c_int64),
    "weir_tensor_descriptor": (c_int, c_void_p, POINTER(c_int), POINTER(Error)),
    "weir_tensor_cancel": (None, c_void_p, c_void_p),
    "weir_tensor_follow": (c_int, c_void_p, c_char_p, POINTER(Wish), c_uint32, POINTER(c_void_p), POINTER(Error)),
    "weir_tensor_follow_next": (c_int, c_void_p, c_int64, POINTER(c_void_p), POINTER(Error)),
    "weir_tensor_follow_free": (None, c_void_p),
    "weir_tensor_fetched_version": (c_uint64, c_void_p),
    "weir_tensor_fetched_generation": (c_uint64, c_void_p),
    "weir_tensor_fetched_metadata_id": (c_uint64, c_void_p),
    "weir_tensor_fetched_data": (c_void_p, c_void_p, POINTER(c_size_t)),
    "weir_tensor_fetched_count": (c_size_t, c_void_p),
    "weir_tensor_fetched_array": (c_int, c_void_p, c_size_t, POINTER(Array)),
    "weir_tensor_fetched_free": (None, c_void_p),
    "weir_tensor_peer_get_stats": (None, c_void_p, POINTER(PeerStats)),
    "weir_tensor_empty": (c_void_p, c_size_t),
    "weir_tensor_empty_free": (None, c_void_p),
}


def _where() -> str:
    """A wheel of Weir's carries the library; otherwise the loader looks for it."""
    carried = os.path.join(os.path.dirname(os.path.dirname(__file__)), "weir", "lib", "libweir_tensor.so.0")
    return os.environ.get("WEIR_TENSOR_LIBRARY") or (carried if os.path.exists(carried) else "libweir_tensor.so.0")


def _load() -> ctypes.CDLL:
    path = _where()
    try:
        library = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(f"cannot load {path}: {why}; install Weir, or set WEIR_TENSOR_LIBRARY to libweir_tensor.so.0 "
                          "of a build tree") from why
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()


def text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def word(what: str, value: str) -> bytes:
    """Encodes a string for the library, which expects it to be zero-terminated."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{what} must not contain NUL, as {value!r} does")
    return value.encode()


# Settings whose names in C have a dot.
TLS_SETTINGS = {name: "tls." + name for name in ("certificate", "key", "authority", "server_name")}


class Options:
    """Holds the C options for the duration of a `with`."""

    def __init__(self, settings: dict) -> None:
        self._settings = {name: value for name, value in settings.items() if value is not None}

    def __enter__(self):
        from .errors import check
        self._options = lib.weir_tensor_options_new()
        error = Error()
        try:
            for name, value in self._settings.items():
                said = word(name, str(int(value)) if isinstance(value, (int, float)) else os.fspath(value))
                check(lib.weir_tensor_options_set(self._options, TLS_SETTINGS.get(name, name).encode(), said, ctypes.byref(error)), error)
        except BaseException:
            lib.weir_tensor_options_free(self._options)
            raise
        return self._options

    def __exit__(self, *_) -> None:
        lib.weir_tensor_options_free(self._options)
