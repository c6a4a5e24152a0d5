"""A server of Python functions, which run in a pool of threads.

    server = weir_rpc.Server()
    server.add("shop.add", lambda a, b: a + b, types="(i32, i32) -> i32")
    print(server.listen("tcp://127.0.0.1:0"))

A function that takes a keyword `call` gets a Call: the attachment, the caller, whether anybody still waits. An exception
that leaves it reaches the caller: an RpcError with its code and text, others as code `failed` with their type. Their text,
which may hold what the caller is not to see, goes to the logger "weir_rpc", and to the caller only with
`Server(exceptions_to_callers=True)`.
"""
import ctypes
import inspect
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, Optional

from .errors import BadArguments, Closed, Denied, RpcError, Unauthenticated
from .library import (Authenticate, Authorise, Buffer, Error, Handler, Options, Release, http_settings, lib, rdma_settings,
                      text, tls_settings, word)
from .values import pack, unpack

_log = logging.getLogger("weir_rpc")


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


def _told(failure: BaseException) -> bytes:
    """What the caller is told; nothing that an exception does keeps it from being told."""
    try:
        words = failure.message if isinstance(failure, RpcError) else f"{type(failure).__name__}: {failure}"
        return str(words).encode("utf-8", errors="replace")
    except BaseException:  # pylint: disable=broad-except
        return type(failure).__name__.encode()


def _refuse(error, failure: BaseException, otherwise: int) -> int:
    error.contents.message = _told(failure)[:507]
    return failure.code if isinstance(failure, RpcError) and failure.code > 0 else otherwise


# A check that fails lets nobody in, whatever it raised: what leaves a callback counts as 0, which would.


def _authenticator(ask: Callable):
    @Authenticate
    def authenticate(_, caller, identity, error) -> int:
        shown = caller.contents
        try:
            answer = ask(text(shown.token), text(shown.certificate), text(shown.peer))
            name, valid = answer if isinstance(answer, tuple) else (answer, 0)
            identity.contents.name = str(name).encode()[:255]
            identity.contents.valid_us = round(valid * 1e6) or (-1 if valid else 0)  # 0 means for ever
            return 0
        except BaseException as failure:  # pylint: disable=broad-except
            return _refuse(error, failure, Unauthenticated.code)

    return authenticate


def _authoriser(ask: Callable):
    @Authorise
    def authorise(_, identity, method, error) -> int:
        try:
            if ask(text(identity), text(method)):
                return 0
            failure: BaseException = Denied(f"{text(identity) or 'an anonymous caller'} may not call {text(method)}")
        except BaseException as raised:  # pylint: disable=broad-except
            failure = raised
        return _refuse(error, failure, Denied.code)

    return authorise


class Server:
    """`authenticate(token, certificate, peer)` gives the caller's name, or (name, seconds that it is valid), or raises;
    `authorise(name, method)` says whether that caller may. Both run in the server's thread: quick ones only.
    `exceptions_to_callers`: callers get the text of any exception that leaves a function, and not its type alone.
    `http`: HTTP/1.1 with JSON is answered on the same ports (docs/rpc.md): True, or {"origins": ["https://shop.example"]} and
    the like. `rdma`: settings of connections over rdma://, such as {"receive_blocks": 128}. weir_rpc.h has the names of both."""

    def __init__(self, *, threads: int = 8, certificate=None, key=None, authority=None,
                 rdma_provider: Optional[str] = None, authenticate: Optional[Callable] = None,
                 authorise: Optional[Callable] = None, compression: Optional[str] = None,
                 exceptions_to_callers: bool = False, http=False, rdma: Optional[dict] = None) -> None:
        self._exceptions_to_callers = exceptions_to_callers
        settings = tls_settings(certificate, key, authority)
        settings.update(rdma_settings(rdma_provider, rdma), **http_settings(http))
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
        self._process = os.getpid()
        self._handlers: List[Any] = []  # the library calls them as long as it lives
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="weir-rpc-serve")

    def add(self, name: str, function: Callable, types: str = "") -> None:
        """Before listen(). `types` is what reflection tells, such as "(i32, i32) -> i32"."""
        if not callable(function):
            raise TypeError(f"{name} is to be a function, not {function!r}")
        try:
            signature = inspect.signature(function)
        except ValueError:  # some of those that are written in C
            signature = inspect.Signature([inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)])

        @Handler
        def handler(_, request: int) -> None:
            self._pool.submit(_serve, function, signature, request, self._exceptions_to_callers)

        error = Error()
        if lib.weir_rpc_server_add(self._mine(), word("a method's name", name), word("types", types), handler, None,
                                   ctypes.byref(error)):
            raise RpcError.of(error.code, text(error.message))
        self._handlers.append(handler)

    def listen(self, address: str) -> str:
        """The address with the port that the kernel chose where 0 was asked for."""
        bound, error = ctypes.create_string_buffer(512), Error()
        if lib.weir_rpc_server_listen(self._mine(), word("an address", address), bound, len(bound),
                                      ctypes.byref(error)):
            raise RpcError.of(error.code, text(error.message))
        return text(bound.value)

    def renew_certificates(self) -> None:
        """Reads the TLS files again: new connections begin with them, and none ends."""
        error = Error()
        if lib.weir_rpc_server_renew_certificates(self._mine(), ctypes.byref(error)):
            raise RpcError.of(error.code, text(error.message))

    def drain(self) -> None:
        """Takes no new calls, answers those under way."""
        lib.weir_rpc_server_drain(self._mine())

    @property
    def open(self) -> int:
        """Connections."""
        return lib.weir_rpc_server_open(self._mine())

    def _mine(self) -> int:
        if self._handle is None:
            raise Closed("the server is closed")
        if self._process != os.getpid():
            raise Closed(f"this server is of process {self._process}, which forked this one: make another here")
        return self._handle

    def close(self) -> None:
        if self._handle is not None and self._process == os.getpid():
            handle, self._handle = self._handle, None
            lib.weir_rpc_server_free(handle)
            self._pool.shutdown(wait=True)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _serve(function: Callable, signature: inspect.Signature, request: int, exceptions_to_callers: bool) -> None:
    try:
        size = ctypes.c_size_t()
        address = lib.weir_rpc_request_arguments(request, ctypes.byref(size))
        arguments = unpack(ctypes.string_at(address, size.value))
        call = Call(request)
        try:
            bound = signature.bind(*arguments, **({"call": call} if "call" in signature.parameters else {}))
        except TypeError as why:
            raise BadArguments(str(why)) from why
        packed = pack(function(*bound.args, **bound.kwargs))
        attachment = _lend(call.reply_attachment) if call.reply_attachment is not None else None
    except RpcError as failure:  # meant for the caller
        return lib.weir_rpc_refuse(request, failure.code, _told(failure))
    except BaseException as failure:  # pylint: disable=broad-except  # sys.exit() in it, say: the caller is told
        _log.error("a function raised", exc_info=failure)
        return lib.weir_rpc_refuse(request, RpcError.code,
                                   _told(failure) if exceptions_to_callers else type(failure).__name__.encode())
    if attachment is None:
        return lib.weir_rpc_respond(request, packed, len(packed), None, 0, None, None)
    return lib.weir_rpc_respond(request, packed, len(packed), attachment.address, attachment.size,
                                ctypes.cast(_give_back, ctypes.c_void_p), id(attachment))
