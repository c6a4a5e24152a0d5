#!/usr/bin/env python3
"""A server of a language model hands the key-value cache of one request to another server: some blocks of a paged cache.

Run it from the build tree:
    WEIR_TENSOR_LIBRARY=build/release/lib/libweir_tensor.so.0 PYTHONPATH=tensor/python /usr/bin/python3 examples/tensor/paged_cache.py

Each layer's cache is one array of blocks. The first server publishes its caches, without a copy, and a table that says which blocks
belong to the request; the second fetches these blocks alone, into free blocks of its own. All blocks of a layer are of one version.
"""
import asyncio

import numpy
import weir_tensor

LAYERS, BLOCKS, BLOCK = 4, 512, (2, 16, 8, 64)  # keys and values, 16 tokens, 8 heads of 64 numbers


def filled(layer: int) -> numpy.ndarray:
    """A cache in whose block b all numbers are b, but for the layer."""
    cache = weir_tensor.empty((BLOCKS, *BLOCK), "float16")
    for block in range(BLOCKS):
        cache[block] = block + layer / 8
    return cache


async def main() -> None:
    with weir_tensor.listen("rdma://127.0.0.1:0") as hub, weir_tensor.connect(hub.address) as peer:
        for layer in range(LAYERS):
            hub.publish(f"layer{layer}", filled(layer))
        hub.publish("request 7", numpy.array([500, 3, 4, 5, 77, 12]))  # in the order of its tokens

        blocks = peer.fetch("request 7")
        caches = await asyncio.gather(*(peer.fetch_async(f"layer{layer}", rows=blocks) for layer in range(LAYERS)))

        for layer, cache in enumerate(caches):
            assert cache.shape == (len(blocks), *BLOCK)
            assert all((cache[i] == block + layer / 8).all() for i, block in enumerate(blocks)), f"layer {layer}"
        whole = LAYERS * BLOCKS * int(numpy.prod(BLOCK)) * 2
        print(f"{LAYERS} layers, {len(blocks)} of {BLOCKS} blocks each: {peer.stats()['fetched_bytes']:,} of {whole:,} bytes")


if __name__ == "__main__":
    asyncio.run(main())
