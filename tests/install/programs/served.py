"""Serves add() with weir_rpc, and ends with its standard input. Usage: served.py ADDRESS"""
import sys

import weir_rpc
import weir_tensor  # noqa: F401, installed with it


def add(a: int, b: int) -> int:
    return a + b


with weir_rpc.Server() as server:
    server.add("add", add)
    address = server.listen(sys.argv[1])
    with weir_rpc.connect(address) as client:
        assert client.call("add", 2, 3) == 5
    print(address, flush=True)
    sys.stdin.read()
