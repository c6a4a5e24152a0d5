#!/usr/bin/env python3
"""Calls the functions of rpc_shop (shop.cpp) from Python.

    build/release/bin/rpc_shop serve rdma://127.0.0.1:9000 & sleep 1
    make wheel && pip install build/release/packages/weir-*.whl      # Debian's pip wants a virtual environment: rpc/python/README.md
    examples/rpc/client.py rdma://127.0.0.1:9000
"""
import asyncio
import sys

import weir_rpc


def calls(address: str) -> None:
    with weir_rpc.connect(address, timeout=5) as client:
        for method in client.methods():
            print(method.name + method.types)
        print("2 + 3 =", client.call("shop.add", 2, 3))
        print("bolts:", client.call("shop.Stock.find", "bolt"))  # an aggregate comes as the list of its fields
        try:
            client.call("shop.Stock.take", {"name": "nut", "count": 100})  # and goes as that, or by names
        except weir_rpc.RpcError as failure:
            print(failure)
        try:
            client.call("shop.brew", "tea", deadline=0.001)
        except weir_rpc.DeadlineExceeded as failure:
            print(failure, "-", failure.next_step)


async def many_at_once(address: str) -> None:
    async with await weir_rpc.aconnect(address) as client:
        sums = await asyncio.gather(*(client.acall("shop.add", i, i) for i in range(64)))
        print("64 calls on one connection:", sum(sums))


if __name__ == "__main__":
    calls(sys.argv[1])
    asyncio.run(many_at_once(sys.argv[1]))
