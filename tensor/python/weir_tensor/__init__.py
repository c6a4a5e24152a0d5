"""Named, versioned arrays between processes over RDMA. Begin with `listen` and `connect`."""
from .arrays import Array
from .errors import (BadAddress, BadArray, Closed, NoGpu, NotPublished, PeerGone, Refused, ShapeMismatch, Superseded, TensorError,
                     TimedOut, TooMuch, Unreachable)
from .fetched import Version
from .hub import Hub, listen
from .lease import Lease, LeaseEnd
from .memory import empty
from .peer import Peer, connect

__all__ = ["Array", "BadAddress", "BadArray", "Closed", "Hub", "Lease", "LeaseEnd", "NoGpu", "NotPublished", "Peer", "PeerGone", "Refused",
           "ShapeMismatch", "Superseded", "TensorError", "TimedOut", "TooMuch", "Unreachable", "Version",
           "connect", "empty", "listen"]
