"""Fetching: `connect`, `Peer`, `Version`."""
import asyncio
import collections
import ctypes
import threading
import time
from typing import AsyncIterator, Iterable, Mapping, Optional, Union

from . import forks, gpu
from .arrays import describe, describe_for_reading, describe_tree
from .errors import Closed, PeerGone, ShapeMismatch, TimedOut, Unreachable, check
from .fetched import Fetched, Layout, Version, wish_for
from .library import PEER_STATS, Array, Error, Options, PeerStats, Wish, lib, word
from .waiting import Waiting


_SLICE_US = 50_000  # a waiting fetch lets Python handle signals, such as Ctrl-C, so often


class _Following:
    """Wraps the library's follower."""

    def __init__(self, peer, name, newer_than, ahead) -> None:
        self._lock = threading.Lock()
        self._follower = self._came = None
        follower, error, wish = ctypes.c_void_p(), Error(), wish_for(newer_than, None)
        check(lib.weir_tensor_follow(peer._open(), word("a name", name), ctypes.byref(wish), ahead, ctypes.byref(follower),
                                     ctypes.byref(error)), error)
        self._follower = follower

    def came(self) -> bool:
        """Whether there is something to take(). Called by whichever loop sees the signal."""
        with self._lock:
            while self._came is None:
                fetched, error = ctypes.c_void_p(), Error()
                if self._follower is None:
                    self._came = Closed("the follower is closed", Closed.code)
                elif lib.weir_tensor_follow_next(self._follower, 0, ctypes.byref(fetched), ctypes.byref(error)) == 0:
                    self._came = Fetched(fetched)
                elif error.code == TimedOut.code:
                    return False
                else:
                    self._came = error
            return True

    def take(self) -> Fetched:
        with self._lock:
            came, self._came = self._came, None
        if isinstance(came, Error):
            check(came.code, came)
        if isinstance(came, Closed):
            raise came
        return came

    def close(self) -> None:
        with self._lock:
            follower, self._follower = self._follower, None
        if follower is not None:
            lib.weir_tensor_follow_free(follower)


class Peer:
    """A reader of a hub. Threads may share a peer; after a fork, connect another in the child."""

    def __init__(self, address: str, **settings) -> None:
        self._peer = None
        self._forks = forks.generation
        self._layouts = collections.OrderedDict()
        self._waiting, self._waiting_lock = None, threading.Lock()
        self._gpu_bytes = 0
        peer, error = ctypes.c_void_p(), Error()
        with Options(settings) as options:
            check(lib.weir_tensor_connect(ctypes.byref(peer), word("an address", address), options, ctypes.byref(error)),
                  error)
        self._peer = peer

    def _open(self):
        if self._peer is None or self._forks != forks.generation:
            raise Closed("the peer is closed, or another process made it", Closed.code)
        return self._peer

    @property
    def generation(self) -> int:
        """The generation of the hub; 0 while not connected."""
        return lib.weir_tensor_peer_generation(self._open())

    def _fetch(self, name, out, newer_than, timeout, rows=None):
        wish = wish_for(newer_than, timeout, rows)
        if out is not None:
            array = out.write(Array())
            wish.out = ctypes.pointer(array)
        fetched, error = ctypes.c_void_p(), Error()
        if timeout is None:
            code = lib.weir_tensor_fetch(self._open(), word("a name", name), ctypes.byref(wish), ctypes.byref(fetched),
                                         ctypes.byref(error))
        else:
            pending = lib.weir_tensor_start(self._open(), word("a name", name), ctypes.byref(wish))
            self._await(pending, name, timeout)
            code = lib.weir_tensor_finish(self._open(), pending, ctypes.byref(fetched), ctypes.byref(error))
        if code != 0:
            check(code, error)
        return Fetched(fetched)

    def _await(self, pending, name, timeout):
        """Returns when the fetch is over. If it is not in time, or interrupted, it is cancelled: afterwards nothing
        is written to `out` any more."""
        until = time.monotonic() + timeout
        try:
            while not lib.weir_tensor_wait(self._open(), pending, min(_SLICE_US, max(int((until - time.monotonic()) * 1e6), 0))):
                if time.monotonic() >= until:
                    raise TimedOut(f"'{name}' did not come in time", TimedOut.code)
        except BaseException:
            lib.weir_tensor_cancel(self._open(), pending)
            raise

    def _loops(self) -> Waiting:
        with self._waiting_lock:
            if self._waiting is None:
                self._waiting = Waiting(self._open())
            return self._waiting

    def _layout(self, name, fetched):
        if lib.weir_tensor_fetched_metadata_id(fetched.pointer) == 0:  # rows: each fetch may have another shape
            return Layout(fetched.pointer, fetched.place()[0])
        key = (name, lib.weir_tensor_fetched_generation(fetched.pointer),
               lib.weir_tensor_fetched_metadata_id(fetched.pointer))
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = Layout(fetched.pointer, fetched.place()[0])
            while len(self._layouts) > 1024:
                self._layouts.popitem(last=False)
        return layout

    def fetch_version(self, name: str, out=None, newer_than: Union[int, Version, None] = None,
                      timeout: Optional[float] = None, rows=None) -> Version:
        """Like `fetch`, with the version's number and its hub's generation."""
        into = describe(out, writable=True) if out is not None else None
        if into is not None and into.gpu is not None:
            self._gpu_bytes += gpu.room([into])
        fetched = self._fetch(name, into, newer_than, timeout, rows)
        if out is not None:
            if into.gpu is not None:
                gpu.send([into])
            return fetched.version(out)
        return fetched.array(name, self._layout(name, fetched))

    def fetch(self, name: str, out=None, newer_than: Union[int, Version, None] = None, timeout: Optional[float] = None,
              rows=None):
        """The newest version of an array, whole: in `out`, which must have its dtype and shape, or in new memory. `out` may be
        in CUDA's memory: the bytes pass through host memory, and have arrived when this returns.

        `newer_than` accepts only a version above it. With `timeout` (seconds) it waits for such a version, or for the name's
        first; without, it raises NotPublished or TimedOut if there is none. Ctrl-C ends the wait.

        `rows` fetches a part: a row, slice(3, 7), or rows in any order such as the blocks [9, 3, 7] of a paged cache, all of one
        version. Rows are elements of the first dimension, which the result keeps; at most 1024 runs of neighbours.
        """
        return self.fetch_version(name, out, newer_than, timeout, rows).value

    async def fetch_async(self, name: str, out=None, newer_than: Union[int, Version, None] = None,
                          timeout: Optional[float] = None, rows=None):
        """Like `fetch`, and other tasks run meanwhile. If the task is cancelled it ends when the fetch has, within a second:
        afterwards nothing is written to `out`."""
        into = describe(out, writable=True) if out is not None else None
        if into is not None and into.gpu is not None:
            self._gpu_bytes += gpu.room([into])
        wish, array = wish_for(newer_than, timeout, rows), Array()
        if into is not None:
            wish.out = ctypes.pointer(into.write(array))
        peer, waiting = self._open(), self._loops()
        pending = lib.weir_tensor_start(peer, word("a name", name), ctypes.byref(wish))
        try:
            if not await waiting.until(lambda: lib.weir_tensor_wait(self._open(), pending, 0) == 1, 30.0 if timeout is None else timeout):
                raise TimedOut(f"'{name}' did not come in time", TimedOut.code)
        except BaseException:
            await self._cancel(pending)
            raise
        fetched, error = ctypes.c_void_p(), Error()
        check(lib.weir_tensor_finish(peer, pending, ctypes.byref(fetched), ctypes.byref(error)), error)
        got = Fetched(fetched)
        if into is not None:
            if into.gpu is not None:
                gpu.send([into])
            return out
        return got.array(name, self._layout(name, got)).value

    async def _cancel(self, pending) -> None:
        """Ends a fetch, also if the task is cancelled again meanwhile: what it writes to must stay until then."""
        ending = asyncio.get_running_loop().run_in_executor(None, lib.weir_tensor_cancel, self._open(), pending)
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                pass

    def fetch_tree_version(self, name: str, out: Optional[Mapping[str, object]] = None,
                           newer_than: Union[int, Version, None] = None, timeout: Optional[float] = None) -> Version:
        """Like `fetch_tree`, with the version's number and its hub's generation."""
        fetched = self._fetch(name, None, newer_than, timeout)
        layout = self._layout(name, fetched)
        if out is None:
            return fetched.tree(layout)
        base, targets, ordered = fetched.place()[0], [], set()
        for key, offset, _, kind, bits, lanes, shape in layout.rows:
            if key not in out:
                raise ShapeMismatch(f"out lacks '{key}', which the tree has", ShapeMismatch.code)
            into = describe(out[key], True, ordered)
            if (into.kind, into.bits, into.lanes, into.shape) != (kind, bits, lanes, shape):
                raise ShapeMismatch(f"out['{key}'] has another dtype or shape than the tree's, {shape}",
                                    ShapeMismatch.code)
            targets.append((into, offset))
        for into, offset in targets:
            if into.gpu is None:
                ctypes.memmove(into.address, base + offset, into.nbytes)
        self._gpu_bytes += gpu.send_copies([(base + offset, into) for into, offset in targets if into.gpu is not None])
        return fetched.version(out)

    def fetch_tree(self, name: str, out: Optional[Mapping[str, object]] = None,
                   newer_than: Union[int, Version, None] = None, timeout: Optional[float] = None):
        """A tree's newest version, as a dict of arrays that share one piece of memory. With `out` it is copied into those
        arrays once all of it has arrived."""
        return self.fetch_tree_version(name, out, newer_than, timeout).value

    def fetch_many(self, names: Iterable[str], out: Optional[Mapping[str, object]] = None,
                   timeout: Optional[float] = None) -> dict:
        """The newest versions of many arrays at once, by name; with `out`, in its arrays. Requests share messages, so many
        small arrays cost a fraction of what `fetch` costs one by one. Each array is whole but, unlike the arrays of a tree,
        they need not be from one moment. With `timeout` it waits for names that are not published yet. If one fails its error
        is raised, and the contents of `out` are unspecified."""
        names = list(dict.fromkeys(names))
        wishes, each_wish, kept, ordered = None, [], [], set()
        if out is not None or timeout is not None:
            wishes = (ctypes.POINTER(Wish) * len(names))()
            for name in names:
                wish = wish_for(None, timeout)
                if out is not None:
                    kept.append(describe(out[name], True, ordered))
                each_wish.append(wish)
            self._gpu_bytes += gpu.room(kept)
            for wish, into in zip(each_wish, kept):
                wish.out = ctypes.pointer(into.write(Array()))
            for i, wish in enumerate(each_wish):
                wishes[i] = ctypes.pointer(wish)
        fetched, errors = (ctypes.c_void_p * len(names))(), (Error * len(names))()
        code = lib.weir_tensor_fetch_many(self._open(), (ctypes.c_char_p * len(names))(*[word("a name", each) for each in names]),
                                          wishes, len(names), fetched, errors)
        got = [each and Fetched(each) for each in fetched]
        if code != 0:
            check(code, next((error for error, each in zip(errors, got) if each is None and error.code), Error()))
        if out is not None:
            gpu.send(kept)
            return {name: out[name] for name in names}
        return {name: each.array(name, self._layout(name, each)).value for name, each in zip(names, got)}

    def push(self, name: str, array, timeout: float = 30.0) -> int:
        """Makes a new version of `name` at the hub, as if the hub had published it; returns its number. The array may change
        again when this returns. Raises Refused if the hub does not allow it (its `push_names`, `push_from`), and TooMuch beyond
        its budgets; after PeerGone or TimedOut the version may or may not exist."""
        described, from_gpu = describe_for_reading(array)
        self._gpu_bytes += from_gpu
        return self._push(lib.weir_tensor_push, name, described.write(Array()), 1, False, described, timeout)

    def push_tree(self, name: str, tree: Mapping[str, object], timeout: float = 30.0) -> int:
        """Like `push`, with all arrays of a mapping as one version."""
        arrays, count, keep, from_gpus = describe_tree(tree)
        self._gpu_bytes += from_gpus
        return self._push(lib.weir_tensor_push, name, arrays, count, True, keep, timeout)

    def add(self, name: str, array, timeout: float = 30.0) -> int:
        """Adds `array` to the newest version of `name` at the hub, element by element, and makes the sum a new version; where
        there is none, the array becomes the first. Returns the version's number. Sums of one name are made one after the other:
        none is lost, and readers see whole ones. Floats (bfloat16 too) and integers, which wrap. Raises what `push` raises;
        ShapeMismatch if the version there has another dtype or shape; Superseded if somebody published under the name
        meanwhile, in which case nothing was added."""
        described, from_gpu = describe_for_reading(array)
        self._gpu_bytes += from_gpu
        return self._push(lib.weir_tensor_add, name, described.write(Array()), 1, False, described, timeout)

    def add_tree(self, name: str, tree: Mapping[str, object], timeout: float = 30.0) -> int:
        """Like `add`, with all arrays of a mapping."""
        arrays, count, keep, from_gpus = describe_tree(tree)
        self._gpu_bytes += from_gpus
        return self._push(lib.weir_tensor_add, name, arrays, count, True, keep, timeout)

    def _push(self, function, name, arrays, count, as_tree, keep, timeout) -> int:
        error, version = Error(), ctypes.c_uint64()
        check(function(self._open(), word("a name", name), ctypes.byref(arrays), count, as_tree, max(int(timeout * 1e6), 1),
                       ctypes.byref(version), ctypes.byref(error)), error)
        del keep  # keeps the arrays alive until here
        return version.value

    def done(self, name: str, version: Version, said: str = "", timeout: float = 30.0) -> None:
        """Says to the hub that this reader is done with a version that was lent (`Hub.lend`), and leaves a word of at most 1024
        bytes for its publisher. Superseded: it is not lent any more, so that what was read since may have changed."""
        error, left = Error(), said.encode("utf-8", "surrogateescape")
        check(lib.weir_tensor_done(self._open(), word("a name", name), version.number, version.generation, left, len(left),
                                   max(int(timeout * 1e6), 1), ctypes.byref(error)), error)

    def list(self) -> dict:
        """Lists what the hub has: name -> (version, bytes, description), at most 65536 names."""
        entries = {}
        for entry in bytes(self.fetch("weir.names")).split(b"\0")[:-1]:
            numbers, what, name = entry.split(b"\t", 2)
            version, bytes_ = map(int, numbers.split())
            entries[name.decode("utf-8", "surrogateescape")] = (version, bytes_, what.decode())
        return entries

    async def follow(self, name: str, newer_than: Union[int, Version, None] = None, patience: float = 30.0,
                     ahead: int = 2) -> AsyncIterator[Version]:
        """Each newer version of a tree, as (number, generation, tree), without a request for each: memory for the next
        `ahead` versions is at the hub before there are any, so they come while the caller is busy with the one before.
        What is published beyond that meanwhile is skipped. When the hub goes it waits for the next one, `patience`
        seconds, and begins anew with that one's."""
        loop, waiting = asyncio.get_running_loop(), self._loops()
        following, alone_since = _Following(self, name, newer_than, ahead), None
        try:
            while True:
                try:
                    await waiting.until(following.came, None)
                    fetched = following.take()
                except (PeerGone, Unreachable):
                    alone_since = alone_since or loop.time()
                    if loop.time() - alone_since > patience:
                        raise
                    await asyncio.sleep(0.05)
                    continue
                alone_since = None
                yield fetched.tree(self._layout(name, fetched))
        finally:
            following.close()

    def stats(self) -> dict:
        stats = PeerStats(size=ctypes.sizeof(PeerStats))
        lib.weir_tensor_peer_get_stats(self._open(), ctypes.byref(stats))
        counted = {name: getattr(stats, name) for name in PEER_STATS}
        counted["transport"] = ("none", "rdma", "tcp", "tls")[counted["transport"]]
        counted["gpu_staged_bytes"] = self._gpu_bytes
        return counted

    def close(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None and self._forks == forks.generation:
            lib.weir_tensor_peer_free(peer)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def connect(address: str, **settings) -> Peer:
    """A reader of the hub at rdma://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT. rdma://HOST:PORT?fallback=tcp uses TCP if
    RDMA does not answer, and says so on stderr and in `stats()["transport"]`. token="..." is that of a hub that has one.
    For tls://: authority= (a file in PEM form; default: the system's), server_name= (default: the address's host), and
    certificate= and key= for a hub that asks for them. Further settings: max_bytes, read_from_bytes, spare_bytes,
    connect_timeout_ms."""
    return Peer(address, **settings)
