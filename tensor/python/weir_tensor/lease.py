"""What `Hub.lend` gives: how a version that was lent ended, and what its readers said."""
import asyncio
import ctypes
import time
from typing import NamedTuple, Optional

from .library import lib

_ENDS = (None, "done", "never came", "left", "closed")
_SLICE_US = 50_000  # a waiting program handles signals, such as Ctrl-C, so often


class LeaseEnd(NamedTuple):
    """`how`: "done", all readers said so; "never came", the time is over and nobody was sent it; "left", the time is over, it was
    sent, and not all said that they are done; "closed", the hub was closed. `words` are those of the readers that were done."""

    how: str
    words: list


class Lease:
    """A version that is lent. Letting go of this object does not end it."""

    def __init__(self, pointer, version: int) -> None:
        self._pointer = pointer
        self.version = version

    def __del__(self) -> None:
        lib.weir_tensor_lease_free(self._pointer)

    def _look(self, timeout_us: int) -> Optional[LeaseEnd]:
        how = _ENDS[lib.weir_tensor_lease_wait(self._pointer, timeout_us)]
        if how is None:
            return None
        words, size = [], ctypes.c_size_t()
        while (word := lib.weir_tensor_lease_word(self._pointer, len(words), ctypes.byref(size))) is not None:
            words.append(ctypes.string_at(word, size.value).decode("utf-8", "surrogateescape"))
        return LeaseEnd(how, words)

    def wait(self, timeout: Optional[float] = None) -> Optional[LeaseEnd]:
        """Waits for the end; None if it is not there after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_US if until is None else min(_SLICE_US, max(int((until - time.monotonic()) * 1e6), 0))
            end = self._look(left)
            if end is not None or left == 0:
                return end

    async def ended(self) -> LeaseEnd:
        """Waits for the end, in a thread of asyncio's executor."""
        loop = asyncio.get_running_loop()
        while True:
            end = await loop.run_in_executor(None, self._look, _SLICE_US)
            if end is not None:
                return end
