"""Waiting in asyncio's event loops for what a peer works on, without a thread for each."""
import asyncio
import ctypes
import os
import threading
from typing import Callable, Optional

from .errors import check
from .library import Error, lib


class Waiting:
    """All that tasks wait for at one peer. Several event loops may share it, each in its thread."""

    def __init__(self, peer) -> None:
        descriptor, error = ctypes.c_int(), Error()
        check(lib.weir_tensor_descriptor(peer, ctypes.byref(descriptor), ctypes.byref(error)), error)
        self._descriptor = descriptor.value
        self._lock = threading.Lock()
        self._waiting = {}  # future: (its loop, what it waits for)

    async def until(self, done: Callable[[], bool], timeout: Optional[float]) -> bool:
        """Whether done() within `timeout` seconds."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            first = all(each is not loop for each, _ in self._waiting.values())
            self._waiting[future] = (loop, done)
            if first:
                loop.add_reader(self._descriptor, self._look)
        try:
            if done():  # after it was entered, so that no signal is missed
                return True
            await asyncio.wait((future,), timeout=timeout)
            return done()
        finally:
            with self._lock:
                del self._waiting[future]
                if all(each is not loop for each, _ in self._waiting.values()):
                    loop.remove_reader(self._descriptor)

    def _look(self) -> None:
        """In the thread of one of the loops. Whoever reads the signal looks for all."""
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            return
        with self._lock:
            waiting = list(self._waiting.items())
        for future, (loop, done) in waiting:
            if not future.done() and done():
                loop.call_soon_threadsafe(lambda future=future: future.done() or future.set_result(None))
