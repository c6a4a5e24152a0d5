"""A server of Python functions, which run in a pool of threads.

    server = weir_rpc.Server()
    server.add("shop.add", lambda a, b: a + b, types="(i32, i32) -> i32")
    print(server.listen("tcp://127.0.0.1:0"))

A function that takes a keyword `call` gets a Call: the attachment, the caller, whether anybody still waits. An exception
that leaves it reaches the caller: an RpcError with its code, others as code `failed`.
"""
import ctypes
import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, Optional

import msgpack

from .errors import BadArguments, Denied, RpcError, Unauthenticated
from .library import (Authenticate, Authorise, Buffer, Error, Handler, Options, Release, lib, text,
                      tls_settings)


class Call:
    """One call that is served. The properties are there until its function returns."""

    def __init__(self, request: int) -> None:
        self._request = request
        self.reply_attachment = None  # anything with a buffer; sent without a copy
        size = ctypes.c_size_t()
        address = lib.weir_rpc_request_attachment(request, ctypes.byref(size))
        self.attachment: bytes = ctypes.string_at(address, size.value)  # a copy: the library's ends with the call

    @property
    def peer(self) -> str:
        return text(lib.weir_rpc_request_peer(self._request))

    @property
    def certificate(self) -> str:
        """Whom the caller's certificate names, "CN=..."; empty without one."""
        return text(lib.weir_rpc_request_certificate(self._request))

    @property
    def identity(self) -> str:
        """Who the server's `authenticate` said that the caller is; empty without one."""
        return text(lib.weir_rpc_request_identity(self._request))

    @property
    def remaining(self) -> Optional[float]:
        """Seconds that the caller still waits; None: for ever."""
        left = lib.weir_rpc_request_remaining_us(self._request)
        return None if left < 0 else left / 1e6

    @property
    def cancelled(self) -> bool:
        return lib.weir_rpc_request_cancelled(self._request) == 1


# Attachments that the library still reads, by the number it gives back.
_lent = {}


@Release
def _give_back(number: int) -> None:
    _lent.pop(number).release()


def _lend(data) -> Buffer:
    buffer = Buffer(data)
    _lent[id(buffer)] = buffer
    return buffer


def _refuse(error, failure: Exception) -> int:
    error.contents.message = str(getattr(failure, "message", failure)).encode()[:507]
    return failure.code if isinstance(failure, RpcError) else Denied.code


def _authenticator(ask: Callable):
    @Authenticate
    def authenticate(_, caller, identity, error) -> int:
        shown = caller.contents
        try:
            answer = ask(text(shown.token), text(shown.certificate), text(shown.peer))
            name, valid = answer if isinstance(answer, tuple) else (answer, 0)
            identity.contents.name = str(name).encode()[:255]
            identity.contents.valid_us = round(valid * 1e6)
            return 0
        except RpcError as failure:
            return _refuse(error, failure)
        except Exception as failure:  # pylint: disable=broad-except  # a check that fails lets nobody in
            return _refuse(error, Unauthenticated(f"{type(failure).__name__}: {failure}"))

    return authenticate


def _authoriser(ask: Callable):
    @Authorise
    def authorise(_, identity, method, error) -> int:
        try:
            return 0 if ask(text(identity), text(method)) else _refuse(error, Denied(
                f"{text(identity) or 'an anonymous caller'} may not call {text(method)}"))
        except Exception as failure:  # pylint: disable=broad-except
            return _refuse(error, failure)

    return authorise


class Server:
    """`authenticate(token, certificate, peer)` gives the caller's name, or (name, seconds that it is valid), or raises;
    `authorise(name, method)` says whether that caller may. Both run in the server's thread: quick ones only."""

    def __init__(self, *, threads: int = 8, certificate=None, key=None, authority=None,
                 rdma_provider: Optional[str] = None, authenticate: Optional[Callable] = None,
                 authorise: Optional[Callable] = None, compression: Optional[str] = None) -> None:
        settings = tls_settings(certificate, key, authority)
        settings["rdma.provider"] = rdma_provider
        settings["compression"] = compression
        handle, error = ctypes.c_void_p(), Error()
        # The library calls them as long as the server lives.
        self._checks = [_authenticator(authenticate) if authenticate else None,
                        _authoriser(authorise) if authorise else None]
        with Options(settings) as options:
            if self._checks[0]:
                lib.weir_rpc_options_authenticate(options, self._checks[0], None)
            if self._checks[1]:
                lib.weir_rpc_options_authorise(options, self._checks[1], None)
            code = lib.weir_rpc_server_new(ctypes.byref(handle), options, ctypes.byref(error))
        if code != 0:
            raise RpcError.of(code, text(error.message))
        self._handle: Optional[int] = handle.value
        self._handlers: List[Any] = []  # the library calls them as long as it lives
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="weir-rpc-serve")

    def add(self, name: str, function: Callable, types: str = "") -> None:
        """Before listen(). `types` is what reflection tells, such as "(i32, i32) -> i32"."""
        takes_call = "call" in inspect.signature(function).parameters

        @Handler
        def handler(_, request: int) -> None:
            self._pool.submit(_serve, function, takes_call, request)

        error = Error()
        if lib.weir_rpc_server_add(self._handle, name.encode(), types.encode(), handler, None, ctypes.byref(error)):
            raise RpcError.of(error.code, text(error.message))
        self._handlers.append(handler)

    def listen(self, address: str) -> str:
        """The address with the port that the kernel chose where 0 was asked for."""
        bound, error = ctypes.create_string_buffer(512), Error()
        if lib.weir_rpc_server_listen(self._handle, address.encode(), bound, len(bound), ctypes.byref(error)):
            raise RpcError.of(error.code, text(error.message))
        return text(bound.value)

    def drain(self) -> None:
        """Takes no new calls, answers those under way."""
        lib.weir_rpc_server_drain(self._handle)

    @property
    def open(self) -> int:
        """Connections."""
        return lib.weir_rpc_server_open(self._handle)

    def close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            lib.weir_rpc_server_free(handle)
            self._pool.shutdown(wait=True)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _serve(function: Callable, takes_call: bool, request: int) -> None:
    try:
        size = ctypes.c_size_t()
        address = lib.weir_rpc_request_arguments(request, ctypes.byref(size))
        arguments = msgpack.unpackb(ctypes.string_at(address, size.value), raw=False, strict_map_key=False)
        call = Call(request)
        try:
            bound = inspect.signature(function).bind(*arguments, **({"call": call} if takes_call else {}))
        except TypeError as why:
            raise BadArguments(str(why)) from why
        packed = msgpack.packb(function(*bound.args, **bound.kwargs), use_bin_type=True)
        attachment = _lend(call.reply_attachment) if call.reply_attachment is not None else None
    except RpcError as failure:
        return lib.weir_rpc_refuse(request, failure.code, failure.message.encode())
    except Exception as failure:  # pylint: disable=broad-except  # the caller is told, whatever it was
        return lib.weir_rpc_refuse(request, RpcError.code, f"{type(failure).__name__}: {failure}".encode())
    if attachment is None:
        return lib.weir_rpc_respond(request, packed, len(packed), None, 0, None, None)
    return lib.weir_rpc_respond(request, packed, len(packed), attachment.address, attachment.size,
                                ctypes.cast(_give_back, ctypes.c_void_p), id(attachment))
