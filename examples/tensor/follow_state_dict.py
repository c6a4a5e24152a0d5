#!/usr/bin/env python3
"""A trainer publishes its state_dict after each step, and eight readers in processes of their own follow it.

Run it from the build tree:
    WEIR_TENSOR_LIBRARY=build/release/lib/libweir_tensor.so.0 PYTHONPATH=tensor/python examples/tensor/follow_state_dict.py

Each reader gets whole versions only: all arrays of what it gets are of the same step. One that is slower than the trainer
skips steps.
"""
import asyncio
import multiprocessing

import numpy
import weir_tensor

READERS, LAYERS, LAST_STEP = 8, 20, 30


def state_dict(step: int) -> dict:
    """New arrays each time: what was published must not change while somebody reads it."""
    layers = {f"layer{i}.weight": numpy.full((64, 10 * i + 1), step, "float32") for i in range(LAYERS)}
    return layers | {f"layer{i}.bias": numpy.full(64, step, "float32") for i in range(LAYERS)} | {"step": numpy.array(step)}


async def follow(address: str) -> int:
    seen = 0
    with weir_tensor.connect(address) as peer:
        async for number, _, tree in peer.follow("model"):
            step = int(tree["step"])
            assert all((array == step).all() for array in tree.values()), f"version {number} is of several steps"
            seen += 1
            if step == LAST_STEP:
                return seen
    return seen


def reader(address: str, ready, done) -> None:
    ready.release()
    done.put(asyncio.run(follow(address)))


def main() -> None:
    with weir_tensor.listen("rdma://127.0.0.1:0") as hub:
        processes = multiprocessing.get_context("spawn")  # a hub is of the process that made it
        ready, done = processes.Semaphore(0), processes.SimpleQueue()
        readers = [processes.Process(target=reader, args=(hub.address, ready, done)) for _ in range(READERS)]
        for each in readers:
            each.start()
        for _ in readers:
            ready.acquire()
        for step in range(1, LAST_STEP + 1):
            hub.publish_tree("model", state_dict(step))
        seen = [done.get() for _ in readers]
        for each in readers:
            each.join()
    print(f"{READERS} readers saw step {LAST_STEP}; none saw a mixture; versions they got: {min(seen)} to {max(seen)}")


if __name__ == "__main__":
    main()
