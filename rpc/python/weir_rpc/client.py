"""A connection to a server, and calls through it: `call` waits, `acall` is awaited.

A client may be used from any thread of the process that made it. asyncio: one event loop at a time; it hears of replies
by a descriptor.
"""
import asyncio
import contextlib
import ctypes
import itertools
import os
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .errors import Closed, RpcError
from .library import (IDEMPOTENT, Buffer, Call, Done, Error, Options, lib, memory_of, rdma_settings, seconds, text,
                      tls_settings, word)
from .schema import Function
from .values import has_names, pack, unpack


class Reply(NamedTuple):
    result: Any
    attachment: memoryview  # empty if none came


class Method(NamedTuple):
    name: str
    types: str  # "(i32, i32) -> i32"; empty if the server does not tell
    codec: str = "msgpack"


class _OwnedReply:
    def __init__(self, address: int) -> None:
        self.address = address
        self._process = os.getpid()

    def __del__(self) -> None:
        if self._process == os.getpid():
            lib.weir_rpc_reply_free(self.address)

    def unpack(self) -> Reply:
        code = lib.weir_rpc_reply_code(self.address)
        if code != 0:
            raise RpcError.of(code, text(lib.weir_rpc_reply_message(self.address)))
        size = ctypes.c_size_t()
        body = lib.weir_rpc_reply_body(self.address, ctypes.byref(size))
        result = unpack(ctypes.string_at(body, size.value))
        attachment = lib.weir_rpc_reply_attachment(self.address, ctypes.byref(size))
        return Reply(result, memory_of(attachment, size.value, self))


class _Request:
    """What a call points at; to be kept until it ended."""

    def __init__(self, method: str, arguments: Tuple, deadline: Optional[float], attachment, into,
                 idempotent: bool) -> None:
        self._buffers = []
        packed = pack(arguments)
        self.call = Call(ctypes.sizeof(Call), word("a method's name", method), packed, len(packed))
        if attachment is not None:
            self.call.attachment, self.call.attachment_size = self._hold(attachment, False)
        if into is not None:
            self.call.reply_into, self.call.reply_into_size = self._hold(into, True)
        if deadline is not None:
            self.call.timeout_us = max(1, round(seconds("a deadline", deadline) * 1e6))
        self.call.flags = IDEMPOTENT if idempotent else 0

    def _hold(self, data, writable: bool) -> Tuple[int, int]:
        buffer = Buffer(data, writable)
        self._buffers.append(buffer)
        return buffer.address, buffer.size

    def release(self) -> None:
        for buffer in self._buffers:
            buffer.release()


def _ask_for_methods() -> _Request:
    return _Request("weir.methods", (), 5.0, None, None, True)


class _Waiter:
    """A call that the main thread waits for in Python, where signals (Ctrl-C) interrupt it; in the library they do not."""

    _all: Dict[int, "_Waiter"] = {}
    _keys = itertools.count(1)

    def __init__(self) -> None:
        self._key = next(_Waiter._keys)
        self._here = threading.Lock()
        self._here.acquire()  # released when the reply is here
        self._reply = 0
        _Waiter._all[self._key] = self

    @staticmethod
    @Done
    def arrived(key: int, reply: int) -> None:
        waiter = _Waiter._all.pop(key)
        waiter._reply = reply
        waiter._here.release()

    def run(self, handle: int, request: _Request) -> int:
        number, call = None, ctypes.byref(request.call)
        try:
            number = lib.weir_rpc_start(handle, call, _ARRIVED, self._key)
            self._here.acquire()
            return self._reply
        except BaseException:  # a signal's handler raised it
            if number is not None:
                lib.weir_rpc_cancel(handle, number)
            while self._key in _Waiter._all:  # the buffers are the call's until then
                with contextlib.suppress(KeyboardInterrupt):
                    self._here.acquire(timeout=1)
            lib.weir_rpc_reply_free(self._reply)
            raise


_UNKNOWN = Function("")
_ARRIVED = ctypes.cast(_Waiter.arrived, ctypes.c_void_p)


class _Awaited:
    """A call that an event loop waits for; its task may be gone, and the loop."""

    def __init__(self, future: Optional[asyncio.Future], request: _Request) -> None:
        self.future = future
        self.request = request
        self.number = 0


class Client:
    """Made by connect(). Close it, or use it in a `with`."""

    def __init__(self, handle: int) -> None:
        self._handle: Optional[int] = handle
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._users = 0
        self._closing = False
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._keys = itertools.count(1)
        self._awaited: Dict[int, _Awaited] = {}
        self._functions: Optional[Dict[str, Function]] = None  # asked for when names are needed first

    # -- calls that wait

    def call(self, method: str, *arguments: Any, deadline: Optional[float] = None, attachment=None,
             idempotent: bool = False) -> Any:
        """The function's result. `deadline` in seconds; `attachment` is bytes or anything with a buffer."""
        return self.exchange(method, *arguments, deadline=deadline, attachment=attachment, idempotent=idempotent).result

    def exchange(self, method: str, *arguments: Any, deadline: Optional[float] = None, attachment=None, into=None,
                 idempotent: bool = False) -> Reply:
        """The result and the attachment that came with it, without a copy; written to `into` if it fits there."""
        if has_names(arguments):
            arguments = self._function(method).check(arguments)
        reply = self._exchange(_Request(method, arguments, deadline, attachment, into, idempotent))
        if not isinstance(reply.result, (list, dict)):
            return reply
        return reply._replace(result=self._function(method).named(reply.result))

    def _exchange(self, request: _Request) -> Reply:
        try:
            with self._use() as handle:
                if threading.current_thread() is threading.main_thread():  # the one that signals interrupt
                    return _OwnedReply(_Waiter().run(handle, request)).unpack()
                return _OwnedReply(lib.weir_rpc_run(handle, ctypes.byref(request.call))).unpack()
        finally:
            request.release()

    def _function(self, method: str) -> Function:
        if self._functions is None:
            try:
                self._learn(self._exchange(_ask_for_methods()))
            except RpcError:  # a server that does not tell its types is called without
                self._functions = {}
        return self._functions.get(method, _UNKNOWN)

    async def _afunction(self, method: str) -> Function:
        if self._functions is None:
            try:
                self._learn(await self._aexchange(_ask_for_methods()))
            except RpcError:
                self._functions = {}
        return self._functions.get(method, _UNKNOWN)

    def _learn(self, listed: Reply) -> None:
        self._functions = {row[0]: Function(row[1]) for row in listed.result}

    def methods(self) -> List[Method]:
        """What the server has, by name."""
        return [Method(*row[:3]) for row in self._exchange(_ask_for_methods()).result]

    # -- calls that are awaited

    async def acall(self, method: str, *arguments: Any, deadline: Optional[float] = None, attachment=None,
                    idempotent: bool = False) -> Any:
        reply = await self.aexchange(method, *arguments, deadline=deadline, attachment=attachment,
                                     idempotent=idempotent)
        return reply.result

    async def aexchange(self, method: str, *arguments: Any, deadline: Optional[float] = None, attachment=None,
                        into=None, idempotent: bool = False) -> Reply:
        """As exchange(). Cancelling the task cancels the call at the server, too; the buffers are the call's until
        the next turns of the loop even so."""
        if has_names(arguments):
            arguments = (await self._afunction(method)).check(arguments)
        reply = await self._aexchange(_Request(method, arguments, deadline, attachment, into, idempotent))
        if not isinstance(reply.result, (list, dict)):
            return reply
        return reply._replace(result=(await self._afunction(method)).named(reply.result))

    async def _aexchange(self, request: _Request) -> Reply:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._use() as handle:
            self._watch(loop, handle)
            key = next(self._keys)
            awaited = self._awaited[key] = _Awaited(future, request)
            awaited.number = lib.weir_rpc_start(handle, ctypes.byref(request.call), None, key)
        try:
            reply = await future
        except asyncio.CancelledError:
            with contextlib.suppress(Closed), self._use() as handle:
                lib.weir_rpc_cancel(handle, awaited.number)
            raise
        return reply.unpack()

    async def amethods(self) -> List[Method]:
        return [Method(*row[:3]) for row in (await self._aexchange(_ask_for_methods())).result]

    def _watch(self, loop: asyncio.AbstractEventLoop, handle: int) -> None:
        if self._loop is loop:
            return
        if self._loop is not None and self._awaited and not self._loop.is_closed():
            raise RuntimeError("this client has calls under way in another event loop")
        self._unwatch(handle)
        for left in self._awaited.values():  # by tasks of a loop that was closed; the buffers are the call's until it ends
            left.future = None
            lib.weir_rpc_cancel(handle, left.number)
        loop.add_reader(lib.weir_rpc_fd(handle), self._on_replies)
        self._loop = loop

    def _unwatch(self, handle: int) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(lib.weir_rpc_fd(handle))
        self._loop = None

    def _on_replies(self) -> None:
        for number, reply in self._taken():
            awaited = self._awaited.pop(number)
            awaited.request.release()
            if awaited.future is not None and not awaited.future.done():
                awaited.future.set_result(reply)
        if self._closing and not self._awaited:
            self._free()

    def _taken(self) -> List[Tuple[int, _OwnedReply]]:
        key, replies = ctypes.c_void_p(), []
        with self._lock:
            while self._handle is not None:
                address = lib.weir_rpc_take(self._handle, ctypes.byref(key))
                if not address:
                    break
                replies.append((key.value, _OwnedReply(address)))
        return replies

    # -- its end

    @property
    def is_open(self) -> bool:
        """False once the connection is lost or closed, or the server asked to leave: connect another."""
        with contextlib.suppress(Closed), self._use() as handle:
            return lib.weir_rpc_is_open(handle) == 1
        return False

    def close(self) -> None:
        """Ends all calls with Closed. What other threads and tasks wait for ends a moment later."""
        if self._is_parents():
            return
        with self._lock:
            if self._closing:
                return
            self._closing = True
            lib.weir_rpc_shutdown(self._handle)
        self._free_if_unused()

    async def aclose(self) -> None:
        self.close()
        if waiting := [awaited.future for awaited in self._awaited.values() if awaited.future is not None]:
            await asyncio.wait(waiting)

    def _is_parents(self) -> bool:
        """The connection, its thread and the locks are those of the process that forked this one: hands off."""
        return self._process != os.getpid()

    @contextlib.contextmanager
    def _use(self) -> Iterator[int]:
        if self._is_parents():
            raise Closed(f"this client is of process {self._process}, which forked this one: connect another here")
        with self._lock:
            if self._closing or self._handle is None:
                raise Closed("the client is closed")
            self._users += 1
        try:
            yield self._handle
        finally:
            with self._lock:
                self._users -= 1
                last = self._closing and self._users == 0
            if last:
                self._free_if_unused()

    def _free_if_unused(self) -> None:
        loop = self._loop
        if loop is None or not loop.is_running():
            return self._free()
        if self._awaited:
            return None  # _on_replies does it after the last
        with contextlib.suppress(RuntimeError):  # in no loop at all
            if asyncio.get_running_loop() is loop:
                return self._free()
        loop.call_soon_threadsafe(self._free)
        return None

    def _free(self) -> None:
        with self._lock:
            if self._users > 0 or self._handle is None:
                return
            handle, self._handle = self._handle, None
        self._unwatch(handle)
        lib.weir_rpc_close(handle)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._handle is not None and not self._is_parents():
            self._closing = True
            self._free()
            self._awaited.clear()


def connect(address: str, *, timeout: Optional[float] = None, connect_timeout: Optional[float] = None,
            certificate=None, key=None, authority=None, server_name: Optional[str] = None,
            check_certificate: Optional[bool] = None, token: Optional[str] = None, rdma_provider: Optional[str] = None,
            compression: Optional[str] = None, rdma: Optional[dict] = None) -> Client:
    """Connects to tcp://HOST:PORT, unix:///PATH, tls://HOST:PORT, rdma://IP:PORT or rdma+tls://IP:PORT.

    `timeout`: seconds of calls that have no deadline of their own (default 30; 0: for ever). `certificate`, `key`,
    `authority`: files in PEM form. `token` goes to the server's authentication. `compression`: "lz4" or
    "zstd", where the server compresses, too. `rdma`: settings of a connection over rdma://, such as {"receive_blocks": 128};
    weir_rpc.h has their names."""
    settings = tls_settings(certificate, key, authority, server_name, check_certificate)
    for name, value in (("timeout", timeout), ("connect_timeout", connect_timeout)):
        settings[f"{name}_ms"] = None if value is None else round(seconds(name, value) * 1000)
    settings["token"] = token
    settings.update(rdma_settings(rdma_provider, rdma))
    settings["compression"] = compression
    handle, error = ctypes.c_void_p(), Error()
    with Options(settings) as options:
        code = lib.weir_rpc_connect(ctypes.byref(handle), word("an address", address), options, ctypes.byref(error))
    if code != 0:
        raise RpcError.of(code, text(error.message))
    return Client(handle.value)


async def aconnect(address: str, **options: Any) -> Client:
    """connect() without holding up the event loop."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: connect(address, **options))
