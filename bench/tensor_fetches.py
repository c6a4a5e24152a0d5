#!/usr/bin/env python3
"""One end of fetches of an array between two hosts, for between_hosts.py.

usage: bench/tensor_fetches.py BUILD hub ADDRESS BYTES
       bench/tensor_fetches.py BUILD peer ADDRESS COUNT BYTES        prints the median of a fetch in us
"""
import os
import pathlib
import signal
import statistics
import sys
import time

BUILD, ROLE, ADDRESS, *REST = sys.argv[1:]
os.environ.update(WEIR_TENSOR_LIBRARY=f"{BUILD}/lib/libweir_tensor.so.0", WEIR_RDMA_PROVIDER="weir")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tensor/python"))
import numpy  # noqa: E402
import weir_tensor  # noqa: E402


def hub(size):
    with weir_tensor.listen(ADDRESS, open=True) as served:
        served.publish("a", numpy.zeros(size, "uint8"))
        signal.sigwait({signal.SIGTERM})


def peer(count, size):
    out = numpy.empty(size, "uint8")
    times = []
    with weir_tensor.connect(ADDRESS) as connected:
        connected.fetch("a", out=out)
        for _ in range(count):
            began = time.perf_counter()
            connected.fetch("a", out=out)
            times.append(time.perf_counter() - began)
    print(statistics.median(times) * 1e6)


if ROLE == "hub":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    hub(int(REST[0]))
else:
    peer(*map(int, REST))
