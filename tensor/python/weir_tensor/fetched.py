"""The result of a fetch: its memory, its layout, and the arrays in it."""
import ctypes
import functools
import operator
from typing import NamedTuple

from .arrays import give, give_many, runs_of, typestr_of
from .errors import BadArray, check
from .library import Array, Error, Rows, Wish, lib


class Version(NamedTuple):
    """A fetched value and its version; can be passed as `newer_than`."""

    number: int
    generation: int
    value: object


def row_runs(rows) -> list:
    """[(first, count)] of a row, a slice or range of rows, or rows in any order."""
    if isinstance(rows, slice):
        if rows.stop is None or rows.step not in (None, 1):
            raise ValueError(f"rows must end somewhere and follow each other, as in slice(3, 7), not {rows}")
        rows = range(rows.start or 0, rows.stop)
    elif hasattr(rows, "__index__") and not hasattr(rows, "__len__"):
        rows = (rows,)
    runs = []
    for row in map(operator.index, rows):
        if row < 0:
            raise ValueError(f"rows count from the front, from 0; {row} is negative")
        if runs and row == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((row, 1))
    if not runs:
        raise ValueError("rows names no row")
    return runs


def wish_for(newer_than, timeout, rows=None) -> Wish:
    wish = Wish(size=ctypes.sizeof(Wish))
    if isinstance(newer_than, Version):
        wish.newer_than, wish.generation = newer_than.number, newer_than.generation
    elif newer_than is not None:
        wish.newer_than = newer_than
    if timeout is not None:
        wish.timeout_us = max(int(timeout * 1e6), 0)
    if rows is not None:
        runs = row_runs(rows)
        wish.kept = (Rows * len(runs))(*runs)
        wish.rows, wish.runs = ctypes.cast(wish.kept, ctypes.POINTER(Rows)), len(runs)
    return wish


class Layout:
    """A version's metadata, decoded once for all versions that share them. `runs`: see arrays.runs_of."""

    @functools.cached_property
    def runs(self) -> list:
        return runs_of(self.rows)

    def __init__(self, pointer, base: int) -> None:
        self.rows = []
        array = Array()
        for i in range(lib.weir_tensor_fetched_count(pointer)):
            check(lib.weir_tensor_fetched_array(pointer, i, ctypes.byref(array)), Error())
            name = ctypes.string_at(array.name, array.name_size).decode("utf-8", "surrogateescape")
            shape = tuple(array.shape[:array.dimensions]) if array.dimensions else ()
            self.rows.append((name, (array.data or 0) - base, typestr_of(array.kind, array.bits, array.lanes), array.kind,
                              array.bits, array.lanes, shape))


class Fetched:
    """Owns the memory of a fetch."""

    __slots__ = ("pointer",)

    def __init__(self, pointer) -> None:
        self.pointer = pointer

    def __del__(self) -> None:
        lib.weir_tensor_fetched_free(self.pointer)

    def place(self):
        """(address, bytes)."""
        bytes_ = ctypes.c_size_t()
        return lib.weir_tensor_fetched_data(self.pointer, ctypes.byref(bytes_)) or 0, bytes_.value

    def version(self, value) -> Version:
        return Version(lib.weir_tensor_fetched_version(self.pointer), lib.weir_tensor_fetched_generation(self.pointer), value)

    def array(self, name, layout, read_only=False) -> Version:
        if len(layout.rows) != 1:
            raise BadArray(f"'{name}' is a tree of {len(layout.rows)}; use fetch_tree", BadArray.code)
        _, offset, typestr, kind, bits, lanes, shape = layout.rows[0]
        return self.version(give(typestr, kind, bits, lanes, shape, self.place()[0] + offset, self, read_only))

    def tree(self, layout, read_only=False) -> Version:
        base, bytes_ = self.place()
        return self.version(give_many(layout.runs, base, bytes_, self, read_only))
