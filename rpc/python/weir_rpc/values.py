"""Python values as MessagePack and back.

Text of a C++ string need not be UTF-8: what is not comes as Python's surrogate escapes, as file names do, and goes back
as the bytes that it was. Keys of maps that are arrays come as tuples.
"""
import dataclasses
from typing import Any

import msgpack


def pack(value: Any) -> bytes:
    return msgpack.packb(value, use_bin_type=True, unicode_errors="surrogateescape", default=_packable)


def has_names(value: Any) -> bool:
    """Whether there are names in it that may be those of an aggregate's fields."""
    if isinstance(value, (list, tuple)):
        return any(has_names(each) for each in value)
    return isinstance(value, dict) or dataclasses.is_dataclass(value)


# A dataclass is an aggregate, its fields by name.
def _packable(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be sent: it has no form in MessagePack")


def unpack(packed: bytes) -> Any:
    settings = {"raw": False, "strict_map_key": False, "unicode_errors": "surrogateescape"}
    try:
        return msgpack.unpackb(packed, **settings)
    except TypeError:  # a key that is an array, which comes as a list
        return msgpack.unpackb(packed, object_pairs_hook=_with_tuples_for_keys, **settings)


def _with_tuples_for_keys(pairs) -> dict:
    return {_frozen(key): value for key, value in pairs}


def _frozen(key: Any) -> Any:
    return tuple(_frozen(each) for each in key) if isinstance(key, list) else key
