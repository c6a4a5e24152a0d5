#!/usr/bin/env python3
"""NCCL's network plugin compared with perftest, both on the software NIC, in one run.

Each row runs nccl_bench and perftest alternately, REPEAT times, with the same kind of memory: private memory, which the other
process reaches through the kernel, or shared memory (`weir run --share-memory`). Shows the best of each, with the medians in
brackets. Prints Markdown. Nothing here passes or fails. Requires perftest.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import nic

TIERS = {"private": [], "shared": nic.SHARED}


def ours(bench, build, tier, words):
    """Returns what nccl_bench prints."""
    command = [*bench.weir, *TIERS[tier], "--", str(build / "bin/nccl_bench"), "--plugin", str(build / "lib/libnccl-net-weir.so"),
               "--cores", *map(str, bench.cores), *words.split()]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=bench.environment, timeout=300).stdout)


def rows(build, scale):
    """(name, unit, goal, ours, peer's name, peer, best)"""
    for tier, options in TIERS.items():
        def of(words, tier=tier):
            return lambda bench: ours(bench, build, tier, words)

        def perftest(words, column, factor=1.0, options=options):
            return lambda bench: bench.perftest(options, words.split(), column) * factor

        count = int(2000 * scale)
        yield (f"1 MiB, {tier} memory", "MB/s", ">= 0.9", of(f"--test bw --bytes 1048576 --outstanding 8 --count {count}"), "ib_write_bw",
               perftest(f"ib_write_bw -s 1048576 -n {count} -F", nic.BANDWIDTH_MIB, 1.048576), max)
        count = int(50000 * scale)
        yield (f"8 B there and back, half of it, {tier} memory", "us", "<= 3", of(f"--test lat --bytes 8 --outstanding 1 --count {count}"),
               "ib_write_lat", perftest(f"ib_write_lat -s 8 -n {count} -F", nic.LATENCY_US), min)
        count = int(500000 * scale)
        for group in (1, 8):
            yield (f"512 B, 32 under way, groups of {group}, {tier} memory", "million/s", ">= 1",
                   lambda bench, run=of(f"--test rate --bytes 512 --outstanding 32 --group {group} --count {count}"): run(bench) / 1e6, "", None,
                   max)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=nic.ROOT / "build/release")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--scale", type=float, default=1, help="of the number of messages (1)")
    parser.add_argument("--cores", default="0,1", help="receiver's and sender's core (0,1)")
    parser.add_argument("--only", default="", help="rows whose name has this word")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    print("| what | plugin | perftest | ratio | goal |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        bench = nic.Bench(build, tuple(int(core) for core in arguments.cores.split(",")), folder)
        for name, unit, goal, mine, peer_name, peer, best in rows(build, arguments.scale):
            if arguments.only not in name:
                continue
            print(f"{name} ...", file=sys.stderr, flush=True)
            of_us, of_peer = [], []
            for _ in range(arguments.repeat):
                of_us.append(mine(bench))
                if peer:
                    of_peer.append(peer(bench))

            def shown(values, best=best):
                return f"{nic.figure(best(values))} ({nic.figure(statistics.median(values))})"

            peer_shown = f"{shown(of_peer)} {unit}, {peer_name}" if peer else ""
            ratio = f"{best(of_us) / best(of_peer):.2f}" if peer else ""
            print(f"| {name} | {shown(of_us)} {unit} | {peer_shown} | {ratio} | {goal} |", flush=True)


if __name__ == "__main__":
    main()
