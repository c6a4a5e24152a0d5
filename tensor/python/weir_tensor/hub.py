"""Publishing: `listen` and `Hub`."""
import ctypes
import threading
from typing import Mapping, Optional, Union

from . import forks
from .arrays import describe_for_reading, describe_tree
from .errors import Closed, check
from .fetched import Fetched, Layout, Version, wish_for
from .lease import Lease
from .library import HUB_STATS, Array, Error, HubStats, Options, lib, text, word


class Hub:
    """Arrays under names. Threads may share a hub; after a fork, make another in the child."""

    def __init__(self, address: str, **settings) -> None:
        self._hub = None
        self._forks = forks.generation
        self._lock = threading.Lock()
        self._held = {}  # token: what keeps the published memory alive
        self._tokens = 0
        self._staged_bytes = self._gpu_bytes = 0
        hub, error = ctypes.c_void_p(), Error()
        with Options(settings) as options:
            check(lib.weir_tensor_listen(ctypes.byref(hub), word("an address", address), options, ctypes.byref(error)),
                  error)
        self._hub = hub

    def _open(self):
        if self._hub is None or self._forks != forks.generation:
            raise Closed("the hub is closed, or another process made it", Closed.code)
        return self._hub

    @property
    def address(self) -> str:
        return text(lib.weir_tensor_hub_address(self._open()))

    @property
    def generation(self) -> int:
        return lib.weir_tensor_hub_generation(self._open())

    def publish(self, name: str, array) -> int:
        """Publishes a new version of `name` and returns its number. The array is not copied: do not change it until a newer
        version exists and this one has no readers left (`released()`), or publish a copy. An array in CUDA's memory is copied
        to host memory first, after the work queued on its current stream, and may change again when this returns."""
        described, from_gpu = describe_for_reading(array)
        return self._publish(name, described.write(Array()), 1, False, described, [described], from_gpu)

    def publish_tree(self, name: str, tree: Mapping[str, object]) -> int:
        """Publishes all arrays of a mapping as one version: a reader gets all or none."""
        arrays, count, keep, from_gpus = describe_tree(tree)
        return self._publish(name, arrays, count, True, keep, keep[0], from_gpus)

    def lend(self, name: str, array, timeout: float = 30.0, readers: int = 1) -> Lease:
        """Publishes a version that ends by itself: when `readers` have said that they are done with it (`Peer.done`), or after
        `timeout` seconds. The lease tells which of these it was. Afterwards nobody is sent the version, and `released()` lets go
        of the array."""
        described, from_gpu = describe_for_reading(array)
        return self._lend(name, described.write(Array()), 1, False, described, [described], from_gpu, timeout, readers)

    def lend_tree(self, name: str, tree: Mapping[str, object], timeout: float = 30.0, readers: int = 1) -> Lease:
        """Like `lend`, with all arrays of a mapping as one version."""
        arrays, count, keep, from_gpus = describe_tree(tree)
        return self._lend(name, arrays, count, True, keep, keep[0], from_gpus, timeout, readers)

    def _lend(self, *what_timeout_readers) -> Lease:
        *what, timeout, readers = what_timeout_readers
        lease = ctypes.c_void_p()
        version = self._publish(*what, lend=(readers, max(int(timeout * 1e6), 0), ctypes.byref(lease)))
        return Lease(lease, version)

    def _publish(self, name, arrays, count, as_tree, keep, described, from_gpus, lend=None) -> int:
        hub, error, version = self._open(), Error(), ctypes.c_uint64()
        self.released()
        with self._lock:
            self._tokens += 1
            token = self._tokens
            self._held[token] = keep
        function, more = (lib.weir_tensor_publish, ()) if lend is None else (lib.weir_tensor_lend, lend)
        code = function(hub, word("a name", name), ctypes.byref(arrays), count, as_tree, token, *more, ctypes.byref(version),
                        ctypes.byref(error))
        if code != 0:
            with self._lock:
                del self._held[token]
        check(code, error)
        self._staged_bytes += sum(each.nbytes for each in described if each.staged)
        self._gpu_bytes += from_gpus
        return version.value

    def released(self) -> int:
        """Lets go of arrays that have no readers left, as `publish` does too; returns how many are still held."""
        tokens = (ctypes.c_uint64 * 64)()
        while True:
            count = lib.weir_tensor_released(self._open(), tokens, 64)
            with self._lock:
                for token in tokens[:count]:
                    self._held.pop(token, None)
                if count < 64:
                    return len(self._held)

    def _get(self, name, newer_than, timeout):
        wish, fetched, error = wish_for(newer_than, timeout), ctypes.c_void_p(), Error()
        check(lib.weir_tensor_hub_get(self._open(), word("a name", name), ctypes.byref(wish), ctypes.byref(fetched),
                                      ctypes.byref(error)), error)
        kept = Fetched(fetched)
        return kept, Layout(fetched, kept.place()[0])

    def get(self, name: str, newer_than: Union[int, Version, None] = None, timeout: Optional[float] = None) -> Version:
        """The newest version of an array, published here or pushed: (number, generation, value), read-only and not copied. With
        `timeout` it waits for the first version, or for one above `newer_than`."""
        kept, layout = self._get(name, newer_than, timeout)
        return kept.array(name, layout, read_only=True)

    def get_tree(self, name: str, newer_than: Union[int, Version, None] = None, timeout: Optional[float] = None) -> Version:
        """Like `get`, for a tree."""
        kept, layout = self._get(name, newer_than, timeout)
        return kept.tree(layout, read_only=True)

    def withdraw(self, name: str) -> bool:
        return lib.weir_tensor_withdraw(self._open(), word("a name", name)) == 1

    def stats(self) -> dict:
        """Counters. Published data are sent from where they lie (`direct_bytes`) or, for small tensors of trees, copied
        together (`packed_bytes`). Before that, `staged_bytes` of them were made contiguous and `gpu_staged_bytes` were copied
        from a GPU's memory. Live versions have `shared_bytes` in memory that the reader's software NIC maps, and
        `private_bytes` that the kernel copies."""
        stats = HubStats(size=ctypes.sizeof(HubStats))
        lib.weir_tensor_hub_get_stats(self._open(), ctypes.byref(stats))
        return {name: getattr(stats, name) for name in HUB_STATS} | {"staged_bytes": self._staged_bytes,
                                                                          "gpu_staged_bytes": self._gpu_bytes}

    def close(self) -> None:
        hub, self._hub = self._hub, None
        if hub is not None and self._forks == forks.generation:
            lib.weir_tensor_hub_free(hub)
            self._held.clear()

    def __enter__(self) -> "Hub":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def listen(address: str, **settings) -> Hub:
    """Opens a hub at rdma://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or several separated by commas;
    rdma://HOST:PORT?fallback=tcp listens for both at one port. Port 0 picks a free one: see `hub.address`. Without
    token="..." the hub serves programs of this host, and others only with open=True. tls:// needs certificate= and key=, files
    in PEM form; with authority= it serves peers whose certificate that authority signed. Further settings: keep,
    max_connections; for pushes by peers:
    push_names ("grad/*,status"; default none), push_from ("10.0.0.0/8"; default all peers), push_bytes, push_bytes_per_peer."""
    return Hub(address, **settings)
