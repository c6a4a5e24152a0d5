"""An exception for each cause that programs distinguish; all derive from TensorError."""
from .library import Error, lib, text


class TensorError(Exception):
    """`code` is the cause's number, `name` its name, `message` says what happened, and `next_step` what to do about it."""

    code: int = 0

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code

    @property
    def name(self) -> str:
        return text(lib.weir_tensor_code_name(self.code))

    @property
    def next_step(self) -> str:
        return text(lib.weir_tensor_next_step(self.code))

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


class NotPublished(TensorError, KeyError):
    code = 1
    __str__ = TensorError.__str__


class Superseded(TensorError):
    code = 2


class ShapeMismatch(TensorError, ValueError):
    code = 3


class PeerGone(TensorError, ConnectionError):
    """The hub with that `generation` is gone; the next fetch connects again."""

    code = 4
    generation: int = 0


class TimedOut(TensorError, TimeoutError):
    code = 5


class Unreachable(TensorError, ConnectionError):
    code = 6


class BadAddress(TensorError, ValueError):
    code = 7


class BadArray(TensorError, ValueError):
    code = 8


class TooMuch(TensorError):
    code = 9


class Refused(TensorError, PermissionError):
    """The hub does not accept pushes of this name, or from this address."""

    code = 11


class Closed(TensorError, ConnectionError):
    code = 12


class NoGpu(TensorError):
    """An array is in GPU memory, and the GPU or NVIDIA's driver cannot be used."""

    code = 14


_BY_CODE = {kind.code: kind for kind in TensorError.__subclasses__()}


def check(code: int, error: Error) -> None:
    if code == 0:
        return
    raised = _BY_CODE.get(code, TensorError)(text(error.message), code)
    if code == PeerGone.code:
        raised.generation = error.generation
    raise raised
