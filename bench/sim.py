#!/usr/bin/env python3
"""Events a second of the simulator on one core: 320 hosts in a fat tree, WebSearch sizes at half load.

usage: bench/sim.py [BUILD ...] [--runs N] [--profile]

BUILD: build directories (default build/release). Several builds alternate, so that a slow phase of the machine affects
all alike. Counts processor time, including reading and planning, and says whether all builds give the same bytes.
--profile: the ten most expensive functions of the first build, by perf.
"""
import argparse
import hashlib
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "fabric/scenarios/websearch-320.toml"
# One sample at the end: this measures the simulation, not the drawing of its series.
OPTIONS = ["--quiet", "--json", "--set", "sample=2ms"]


def one_run(weir):
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([weir, "sim", SCENARIO, *OPTIONS, "-o", folder], check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        flows = pathlib.Path(folder, "flows.csv").read_bytes() + pathlib.Path(folder, "ports.csv").read_bytes()
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), seconds, hashlib.sha256(flows).hexdigest()


def profile(weir):
    if shutil.which("perf") is None:
        sys.exit("--profile needs perf (Debian: linux-perf)")
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        subprocess.run(["perf", "record", "-q", "-o", data, weir, "sim", SCENARIO, *OPTIONS], check=True,
                       stdout=subprocess.DEVNULL)
        report = subprocess.run(["perf", "report", "-i", data, "--stdio", "--no-children", "-F", "overhead,symbol"],
                                check=True, capture_output=True, text=True).stdout
    rows = [line for line in report.splitlines() if line.strip() and not line.startswith("#")]
    print("\n".join(row.replace("weir::fabric::sim::", "") for row in rows[:10]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="*", default=[str(ROOT / "build/release")])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    programs = [os.path.join(build, "bin/weir") for build in options.build]
    seconds, results, runs = {weir: [] for weir in programs}, set(), {}
    for _ in range(options.runs):
        for weir in programs:
            runs[weir], took, digest = one_run(weir)
            seconds[weir].append(took)
            results.add(digest)
    for weir, list_of_seconds in seconds.items():
        run = runs[weir]
        rate = [run["events"] / s / 1e6 for s in list_of_seconds]
        hops = [run["packet_hops"] / s / 1e6 for s in list_of_seconds]
        print(f"{weir}: {run['flows']} flows, {run['events'] / 1e6:.2f} M events, {run['packet_hops'] / 1e6:.2f} M hops; "
              f"median {statistics.median(list_of_seconds):.2f} s: {statistics.median(rate):.2f} M events/s, "
              f"{statistics.median(hops):.2f} M hops/s; best {max(rate):.2f} M events/s")
    if len(programs) > 1:
        print("results: " + ("the same bytes" if len(results) == 1 else "DIFFERENT"))
    if options.profile:
        profile(programs[0])


main()
