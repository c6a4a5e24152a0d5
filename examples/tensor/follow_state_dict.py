#!/usr/bin/env python3
"""A trainer publishes its state_dict after each step, and eight readers in processes of their own follow it.

Run it from the build tree:
    WEIR_TENSOR_LIBRARY=build/release/lib/libweir_tensor.so.0 PYTHONPATH=tensor/python /usr/bin/python3 examples/tensor/follow_state_dict.py

Each reader gets only whole versions: all arrays of a version are from the same step. A reader that is slower than the trainer
skips steps.
"""
import asyncio
import concurrent.futures
import multiprocessing
import time

import numpy
import weir_tensor

READERS, LAYERS, LAST_STEP = 8, 20, 30


def state_dict(step: int) -> dict:
    """Makes new arrays each time, because published arrays must not change while they are being read."""
    layers = {f"layer{i}.weight": numpy.full((64, 10 * i + 1), step, "float32") for i in range(LAYERS)}
    return layers | {f"layer{i}.bias": numpy.full(64, step, "float32") for i in range(LAYERS)} | {"step": numpy.array(step)}


async def follow(address: str) -> int:
    """How many versions this reader got until it had the last one."""
    seen = 0
    with weir_tensor.connect(address) as peer:
        async for number, _, tree in peer.follow("model"):
            step = int(tree["step"])
            assert all((array == step).all() for array in tree.values()), f"version {number} is of several steps"
            seen += 1
            if step == LAST_STEP:
                return seen
    return seen


def reader(address: str) -> int:
    return asyncio.run(follow(address))


def main() -> None:
    processes = multiprocessing.get_context("spawn")  # a hub works only in the process that made it
    # The hub is closed first: readers that still follow get an error.
    with concurrent.futures.ProcessPoolExecutor(READERS, processes) as pool, weir_tensor.listen("rdma://127.0.0.1:0") as hub:
        readers = [pool.submit(reader, hub.address) for _ in range(READERS)]
        while hub.stats()["connections"] < READERS and not any(each.done() for each in readers):
            time.sleep(0.01)
        for step in range(1, LAST_STEP + 1):
            hub.publish_tree("model", state_dict(step))
        seen = [each.result() for each in readers]  # raises what went wrong in a reader
    print(f"{READERS} readers saw step {LAST_STEP}; none saw a mixture; versions they got: {min(seen)} to {max(seen)}")


if __name__ == "__main__":
    main()
