"""Calls a function and fetches an array over RDMA. Usage: by_wheel.py, with nothing but the wheel of Weir"""
import array

import weir_rpc
import weir_tensor


def add(a: int, b: int) -> int:
    return a + b


with weir_rpc.Server() as server:
    server.add("add", add)
    with weir_rpc.connect(server.listen("rdma://127.0.0.1:0")) as client:
        print("sum", client.call("add", 2, 3))
with weir_tensor.listen("rdma://127.0.0.1:0") as hub, weir_tensor.connect(hub.address) as peer:
    hub.publish("w", array.array("d", [1.5, 2.5]))
    print("bytes", peer.fetch("w").nbytes, peer.stats()["transport"])
