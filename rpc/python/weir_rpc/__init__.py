"""Calls between programs over TCP, unix sockets, TLS and RDMA: the client and server of Weir's rpc for Python."""
from .client import Client, Method, Reply, aconnect, connect
from .errors import (BadArguments, Cancelled, Closed, ConnectionLost, DeadlineExceeded, Denied, Overloaded, RpcError,
                     Unauthenticated, UnknownMethod, Unreachable)
from .server import Call, Server

__all__ = ["BadArguments", "Call", "Cancelled", "Client", "Closed", "ConnectionLost", "DeadlineExceeded", "Denied",
           "Method", "Overloaded", "Reply", "RpcError", "Server", "Unauthenticated",
           "UnknownMethod", "Unreachable", "aconnect", "connect"]
