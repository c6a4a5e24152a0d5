#!/usr/bin/env python3
"""Six readers of one hub, which sends each version twice only: each reader hands what it has to two others.

Run it from the build tree:
    WEIR_TENSOR_LIBRARY=build/release/lib/libweir_tensor.so.0 PYTHONPATH=tensor/python /usr/bin/python3 examples/tensor/relay_tree.py

A reader follows the one above it and publishes at a hub of its own what comes, where it lies. Each hub counts its versions itself, so
the step is an array of the tree. A reader that is slow skips steps; all end with the last one.
"""
import asyncio
import multiprocessing

import numpy
import weir_tensor

READERS, BELOW, STEPS, NUMBERS = 6, 2, 10, 1 << 18


async def relay(above: str, address) -> int:
    last = 0
    with weir_tensor.listen("rdma://127.0.0.1:0", keep=4) as mine, weir_tensor.connect(above) as peer:
        address.send(mine.address)
        async for _, _, model in peer.follow("model"):
            step = int(model["step"][0])
            assert step > last and (model["w"] == step).all(), "torn or stale"
            last = step
            mine.publish_tree("model", model)  # no copy: the fetched memory stays until nobody reads it
            if step == STEPS:
                break
        address.send(step)
        await asyncio.to_thread(address.recv)  # those below may still be reading
    return last


def reader(above: str, address) -> None:
    asyncio.run(relay(above, address))


def main() -> None:
    with weir_tensor.listen("rdma://127.0.0.1:0", keep=4) as hub:
        spawn = multiprocessing.get_context("spawn")
        addresses, ends = [hub.address], []
        for i in range(READERS):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=reader, args=(addresses[i // BELOW], theirs))
            process.start()
            addresses.append(ours.recv())
            ends.append((process, ours))
        for step in range(1, STEPS + 1):
            hub.publish_tree("model", {"step": numpy.array([step]), "w": numpy.full(NUMBERS, step, "float32")})
        assert all(end.recv() == STEPS for _, end in ends)
        sent = hub.stats()["written_bytes"] / (4 * NUMBERS)
        for process, end in ends:
            end.send("end")
            process.join()
            assert process.exitcode == 0
        assert sent < BELOW * STEPS + 1, sent
        print(f"{READERS} readers saw step {STEPS}; the hub served {BELOW} of them")


if __name__ == "__main__":
    main()
