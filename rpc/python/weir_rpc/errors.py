"""An exception for each cause that programs tell apart; all are RpcError."""
from typing import Dict, Type

from .library import lib, text


class RpcError(Exception):
    """`code` is the cause's number, `name` its name, `message` what happened, `next_step` what to do about it."""

    code: int = 8

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code

    @property
    def name(self) -> str:
        return text(lib.weir_rpc_code_name(self.code))

    @property
    def next_step(self) -> str:
        return text(lib.weir_rpc_next_step(self.code))

    @property
    def did_not_run(self) -> bool:
        """True if the function certainly did not run, so that calling again cannot run it twice."""
        return lib.weir_rpc_did_not_run(self.code) == 1

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"

    @staticmethod
    def of(code: int, message: str) -> "RpcError":
        return _BY_CODE.get(code, RpcError)(message, code)


class UnknownMethod(RpcError):
    code = 1


class BadArguments(RpcError, TypeError):
    code = 2


class DeadlineExceeded(RpcError, TimeoutError):
    code = 4


class Cancelled(RpcError):
    code = 5


class Overloaded(RpcError):
    code = 6


class Denied(RpcError, PermissionError):
    code = 9


class Unauthenticated(RpcError, PermissionError):
    code = 12


class SchemaMismatch(RpcError):
    code = 13


class ConnectionLost(RpcError, ConnectionError):
    code = 65


class Closed(RpcError, ConnectionError):
    code = 66


class Unreachable(RpcError, ConnectionError):
    code = 69


_BY_CODE: Dict[int, Type[RpcError]] = {kind.code: kind for kind in RpcError.__subclasses__()}
