#!/usr/bin/env python3
"""Should the hub WRITE a tensor's bytes, or the reader READ them? By size and memory tier, in one run.

One hub, and one reader with two peers that differ in read_from_bytes: one never READs, the other always does. They fetch the same
array in turn, into the same memory, in rounds. The table has the best of all fetches, the medians in brackets, the ratio of the
bests, and the processor time that a fetch cost the hub and the reader. Private memory is numpy's, which the kernel copies; shared
memory is weir_tensor.empty(), which the other process's software NIC maps. The load of the machine before and after is printed at
the end. Prints Markdown. Nothing here passes or fails.

Debian's Python has numpy: /usr/bin/python3 bench/tensor_paths.py
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import nic

KIB = 1024
SIZES = [4 * KIB << i for i in range(15)]  # 4 KiB to 64 MiB
TIERS = ("private", "shared")
NEVER, ALWAYS = 1 << 62, 0


def load(build):
    os.environ["WEIR_TENSOR_LIBRARY"] = str(build / "lib/libweir_tensor.so.0")
    sys.path.insert(0, str(nic.ROOT / "tensor/python"))
    import weir_tensor
    return weir_tensor


def memory(weir_tensor, tier, size):
    import numpy
    array = weir_tensor.empty(size, "uint8") if tier == "shared" else numpy.empty(size, "uint8")
    array[:] = 1
    return array


def serve(build):
    weir_tensor = load(build)
    hub = weir_tensor.listen("rdma://127.0.0.1:0")
    for tier in TIERS:
        for size in SIZES:
            hub.publish(f"{tier}.{size}", memory(weir_tensor, tier, size))
    print(hub.address, flush=True)
    sys.stdin.read()


def processor_seconds(pid):
    """Processor time of all threads of a process, from the scheduler's nanoseconds."""
    return sum(int(task.joinpath("schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


class Measured:
    def __init__(self):
        self.took, self.of_hub, self.of_reader = [], 0.0, 0.0

    def best_us(self):
        return min(self.took) * 1e6

    def shown(self):
        return f"{nic.figure(self.best_us())} ({nic.figure(statistics.median(self.took) * 1e6)}) us"

    def hub_us(self):
        return self.of_hub / len(self.took) * 1e6

    def reader_us(self):
        return self.of_reader / len(self.took) * 1e6


def rows(weir_tensor, hub, address, repeat, scale):
    """(tier, size, by WRITE, by READ)"""
    peers = [weir_tensor.connect(address, read_from_bytes=each) for each in (NEVER, ALWAYS)]
    for tier in TIERS:
        for size in SIZES:
            into, name = memory(weir_tensor, tier, size), f"{tier}.{size}"
            count = max(int(scale * min(2000, (256 << 20) / size)), 8)
            both = Measured(), Measured()
            for round_ in range(repeat):
                for peer, seen in zip(peers, both) if round_ % 2 == 0 else reversed(list(zip(peers, both))):
                    for _ in range(3):
                        peer.fetch(name, out=into)
                    before = processor_seconds(hub), processor_seconds(os.getpid())
                    for _ in range(count):
                        begun = time.perf_counter()
                        peer.fetch(name, out=into)
                        seen.took.append(time.perf_counter() - begun)
                    seen.of_hub += processor_seconds(hub) - before[0]
                    seen.of_reader += processor_seconds(os.getpid()) - before[1]
            yield tier, size, *both


def words_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def measure(build, hub, address, repeat, scale):
    weir_tensor = load(build)
    print("| memory | bytes | WRITE by the hub | READ by the reader | READ / WRITE | hub's processor time, WRITE and READ | reader's |")
    print("|---|---|---|---|---|---|---|")
    for tier, size, write, read in rows(weir_tensor, hub, address, repeat, scale):
        print(f"| {tier} | {words_of(size)} | {write.shown()} | {read.shown()} | {read.best_us() / write.best_us():.2f} "
              f"| {write.hub_us():.1f} and {read.hub_us():.1f} us | {write.reader_us():.1f} and {read.reader_us():.1f} us |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=nic.ROOT / "build/release")
    parser.add_argument("--repeat", type=int, default=6, help="rounds of each (6)")
    parser.add_argument("--scale", type=float, default=1, help="of the number of fetches in a round (1)")
    parser.add_argument("--cores", default="0,1", help="reader's and hub's core (0,1)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if arguments.serve:
        return serve(build)
    before = os.getloadavg()[0]
    of_reader, of_hub = (int(core) for core in arguments.cores.split(","))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEIR_RUNTIME_DIR"] = folder
        hub = subprocess.Popen([sys.executable, "-B", __file__, "--build", str(build), "--serve"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {of_hub}))
        os.sched_setaffinity(0, {of_reader})
        try:
            measure(build, hub.pid, hub.stdout.readline().strip(), arguments.repeat, arguments.scale)
        finally:
            hub.kill()
            hub.wait()
    print(f"\nLoad before and after: {before:.1f} and {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
