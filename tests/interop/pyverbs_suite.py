#!/usr/bin/env python3
"""Runs rdma-core's own pyverbs test suite on the software NIC and compares the results with the expected ones.

usage: WEIR_PYVERBS_TESTS=DIR pyverbs_suite.py --build DIR [--packets] [WORD ...]     WORD: only tests whose name has it

--packets: all of it over RoCEv2 packets (weir run --packets), as between two hosts, in a network namespace of its own. Then the
run also fails if hardly any packets went.

DIR is rdma-core's tests/ folder at the tag of the installed library (Debian 12: v44.0). The suite is in no Debian package
and not in this repository; without DIR this says so and ends with 77, which CTest counts as skipped. Only the generic tests
are run: those for one vendor's devices (mlx5, efa) have nothing to run on.

pyverbs-expected.toml lists every test that does not pass, with the reason. A test that does what is not expected of it
fails the run, also when it is better than expected: then the list is out of date.
Exit status 0: all as expected.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

import two_namespaces

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # Debian's pyverbs is built only for this one
SKIPPED = 77
FEW_PACKETS = 10_000  # a whole run sends five times as many
VENDORS = ("mlx5", "efa")


def expectations():
    """{test: (outcome, reason, whether passing is fine, too)}"""
    rows = tomllib.loads((HERE / "pyverbs-expected.toml").read_text())["group"]
    return {test: (row["outcome"], row["reason"], row.get("may_pass", False)) for row in rows for test in row["tests"]}


class Suite:
    def __init__(self, build, tests, scratch, namespaces):
        self.tests, self.scratch = tests, scratch
        around, options = (namespaces.enter("server"), ["--packets"]) if namespaces else ([], [])
        self.launcher = [*around, str(build / "bin/weir"), "run", *options, "--", PYTHON, str(HERE / "pyverbs_child.py"), str(tests)]
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": str(scratch / "runtime")}
        self.output = []

    def child(self, *arguments):
        """Returns what one process reported, and its exit status."""
        results = self.scratch / "results"
        results.write_text("")
        words = [*self.launcher, str(results), *arguments]
        ended = subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
        self.output += ended.stdout.splitlines()
        return [json.loads(line) for line in results.read_text().splitlines()], ended.returncode

    def names(self):
        reports, _ = self.child("--list")
        return [report["test"] for report in reports if not any(vendor in report["test"] for vendor in VENDORS)]

    def run(self, names):
        """{test: report}. A process that dies loses one test; the next process continues with the rest."""
        done = {}
        by_module = collections.defaultdict(list)
        for name in names:
            by_module[name.split(".")[1]].append(name)
        for waiting in by_module.values():
            while waiting:
                reports, status = self.child(*waiting)
                done |= {report["test"]: report for report in reports if report["outcome"] != "started"}
                victim = reports[-1]["test"] if reports else waiting[0]
                if victim not in done:
                    done[victim] = {"test": victim, "outcome": "died", "why": f"exit status {status}"}
                waiting = [name for name in waiting if name not in done]
        return done


def surprises(done, expected):
    for name, report in sorted(done.items()):
        outcome, _, may_pass = expected.get(name, ("passed", "", False))
        if report["outcome"] == outcome or (may_pass and report["outcome"] == "passed"):
            continue
        yield f"{name}: {report['outcome']}, expected: {outcome}\n    {report['why'].strip()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--packets", action="store_true")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    tests = os.environ.get("WEIR_PYVERBS_TESTS")
    if not tests:
        print("SKIPPED: WEIR_PYVERBS_TESTS names no copy of rdma-core's tests/ folder (tag v44.0, github.com/linux-rdma/rdma-core)")
        return SKIPPED
    if arguments.packets and (forbidden := two_namespaces.why_not()):
        print(f"SKIPPED: {forbidden}")
        return SKIPPED
    namespaces = two_namespaces.TwoNamespaces() if arguments.packets else None
    try:
        with tempfile.TemporaryDirectory(prefix="weir-pyverbs-") as scratch:
            suite = Suite(arguments.build.resolve(), os.path.realpath(tests), pathlib.Path(scratch), namespaces)
            names = [name for name in suite.names() if all(word in name for word in arguments.words)]
            done = suite.run(names)
        packets = namespaces.packets_in("server") if namespaces else 0
    finally:
        if namespaces:
            namespaces.end()
    expected = expectations()
    for name, report in sorted(done.items()):
        if report["outcome"] != "passed":
            print(f"{report['outcome']:8} {name}: {expected.get(name, ('', 'unexpected', ''))[1]}")
    found = list(surprises(done, expected))
    if not arguments.words:
        found += [f"{name}: expected, but the suite has no such test" for name in expected if name not in done]
        if namespaces and packets < FEW_PACKETS:
            found.append(f"only {packets} packets arrived")
    count = collections.Counter(report["outcome"] for report in done.values())
    if found:
        print("\n".join(suite.output[-60:]))
        print("\n".join(["", "NOT AS EXPECTED", *found]))
    print(f"{len(done)} generic tests: " + ", ".join(f"{number} {outcome}" for outcome, number in count.most_common()) + (f"; {packets} packets" if namespaces else ""))
    return 1 if found or not done else 0


if __name__ == "__main__":
    sys.exit(main())
