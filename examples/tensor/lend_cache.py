#!/usr/bin/env python3
"""A server of a language model lends the key-value cache of requests: it knows when a block is free again, whatever readers do.

Run it from the build tree:
    WEIR_TENSOR_LIBRARY=build/release/lib/libweir_tensor.so.0 PYTHONPATH=tensor/python /usr/bin/python3 examples/tensor/lend_cache.py

The cache is one array of blocks, which the server goes on filling. What it lends is the table of a request's blocks: while the lease
lasts it leaves these blocks alone. The reader of request 1 says that it is done, and how far it came; that of request 2 fetches the
table and stops; that of request 3 never comes.
"""
import asyncio

import numpy
import weir_tensor

BLOCKS, BLOCK = 64, (2, 16, 8, 64)  # keys and values, 16 tokens, 8 heads of 64 numbers


async def serve(hub: weir_tensor.Hub, request: int, blocks: list, seconds: float) -> str:
    lease = hub.lend(f"request {request}", numpy.array(blocks), timeout=seconds)
    end = await lease.ended()
    return f"request {request}: {end.how}{', '.join(['', *end.words])}; blocks {blocks} are free"


async def read(peer: weir_tensor.Peer, request: int) -> None:
    table = await asyncio.to_thread(peer.fetch_version, f"request {request}", timeout=10)
    if request == 2:
        return
    cache = await peer.fetch_async("cache", rows=table.value)
    assert all((cache[i] == block).all() for i, block in enumerate(table.value))
    await asyncio.to_thread(peer.done, f"request {request}", table, "decoded 7 tokens")


async def main() -> None:
    with weir_tensor.listen("rdma://127.0.0.1:0") as hub, weir_tensor.connect(hub.address) as peer:
        hub.publish("cache", numpy.broadcast_to(numpy.arange(BLOCKS, dtype="float16")[:, None, None, None, None], (BLOCKS, *BLOCK)))
        ends = [asyncio.ensure_future(serve(hub, request, blocks, seconds))
                for request, blocks, seconds in ((1, [50, 3, 4], 60), (2, [5, 6], 3), (3, [60], 1))]
        await asyncio.gather(read(peer, 1), read(peer, 2))
        for each in ends:
            print(await each)


if __name__ == "__main__":
    asyncio.run(main())
