#!/usr/bin/env python3
"""Eight workers add their gradients to one array at a hub; the hub's program takes the sum and answers with new weights.

Run it from the build tree:
    WEIR_TENSOR_LIBRARY=build/release/lib/libweir_tensor.so.0 PYTHONPATH=tensor/python /usr/bin/python3 examples/tensor/sum_gradients.py

The hub adds what comes, one push after the other, so that no worker waits for another and none is lost. The number of the version
says how many were added; withdraw() begins the next sum.
"""
import multiprocessing

import numpy
import weir_tensor

WORKERS, STEPS, SHAPE = 8, 5, (256, 64)


def work(address: str, rank: int) -> None:
    with weir_tensor.connect(address) as peer:
        last = peer.fetch_version("weights", timeout=30)
        for _ in range(STEPS):
            peer.add("gradient", numpy.full(SHAPE, rank, "float32"))
            last = peer.fetch_version("weights", out=last.value, newer_than=last, timeout=30)


def main() -> None:
    with weir_tensor.listen("rdma://127.0.0.1:0", push_names="gradient", push_from="127.0.0.1") as hub:
        weights = numpy.zeros(SHAPE, "float32")
        hub.publish("weights", weights)
        workers = [multiprocessing.get_context("spawn").Process(target=work, args=(hub.address, rank)) for rank in range(WORKERS)]
        for each in workers:
            each.start()
        for step in range(1, STEPS + 1):
            sum_ = hub.get("gradient", newer_than=step * WORKERS - 1, timeout=30)  # all of this step were added
            weights = weights - sum_.value
            hub.withdraw("gradient")
            hub.publish("weights", weights)
        for each in workers:
            each.join()
            assert each.exitcode == 0
        expected = -STEPS * sum(range(WORKERS))
        assert (weights == expected).all(), weights
        print(f"{WORKERS} workers, {STEPS} steps: every weight is {expected}; {hub.stats()['pushes']} gradients were added")


if __name__ == "__main__":
    main()
