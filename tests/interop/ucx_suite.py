#!/usr/bin/env python3
"""Runs UCX's own unit tests of its verbs and rdma_cm transports on the software NIC, and compares with the expected results.

usage: WEIR_UCX_GTEST=PROGRAM ucx_suite.py --build DIR [FILTER ...]     FILTER: of gtest, instead of those below

PROGRAM is test/gtest/gtest of a build of UCX (github.com/openucx/ucx), with its assertions:

    ./autogen.sh
    ./configure --enable-gtest --with-verbs --with-rdmacm --enable-assertions --enable-params-check --without-cuda --without-rocm
    make -j 2

It is in no Debian package and not in this repository; without PROGRAM this says so and ends with 77, which CTest counts as
skipped. UCX's tests look at what a call leaves in public fields and which events it withholds, where documents are silent.

ucx-expected.toml lists every test that does not pass, with the reason; what UCX skips by itself is not looked at. A test that
does what is not expected of it fails the run, also when it is better than expected. Exit status 0: all as expected.
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

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
FILTERS = ("rc_verbs/*", "ud_verbs/*", "*rdmacm*")
LIMIT_S = 900  # for one filter


def expectations():
    """{test: (outcomes, reason)}"""
    rows = tomllib.loads((HERE / "ucx-expected.toml").read_text())["group"]
    return {test: (row["outcomes"], row["reason"]) for row in rows for test in row["tests"]}


def outcomes(report):
    """(test, outcome) of gtest's JSON."""
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if test.get("result") == "SKIPPED":
                yield name, "skipped"
            elif test["status"] == "RUN":
                yield name, "failed" if test.get("failures") else "passed"


def run(build, program, pattern, scratch):
    """({test: outcome}, the last lines of output). A run that dies leaves no report; the test that it was running has died."""
    report = scratch / "report.json"
    done, skip = {}, []
    while True:
        report.unlink(missing_ok=True)
        words = [str(build / "bin/weir"), "run", "--", program, f"--gtest_filter={pattern}-{':'.join(skip)}",
                 f"--gtest_output=json:{report}"]
        ended = subprocess.run(words, env={**os.environ, "WEIR_RUNTIME_DIR": str(scratch / "runtime")}, timeout=LIMIT_S,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        lines = ended.stdout.splitlines()
        if report.exists():
            return done | dict(outcomes(report)), lines[-40:]
        begun = [line.split("]", 1)[1].split()[0] for line in lines if line.startswith("[ RUN ")]
        if not begun:
            raise SystemExit("\n".join([*lines[-40:], f"{program} ran no test of {pattern} (exit status {ended.returncode})"]))
        done[begun[-1]] = "died"
        skip.append(begun[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("filters", nargs="*")
    arguments = parser.parse_args()
    program = os.environ.get("WEIR_UCX_GTEST")
    if not program:
        print("SKIPPED: WEIR_UCX_GTEST names no gtest program of UCX (this file says how it is built)")
        return SKIPPED
    done, output = {}, []
    with tempfile.TemporaryDirectory(prefix="weir-ucx-") as scratch:
        for pattern in arguments.filters or FILTERS:
            found, lines = run(arguments.build.resolve(), program, pattern, pathlib.Path(scratch))
            done |= found
            output += lines
    expected = expectations()
    for name, outcome in sorted(done.items()):
        if outcome not in ("passed", "skipped"):
            print(f"{outcome:8} {name}: {expected.get(name, ('', 'unexpected'))[1]}")
    surprises = [f"{name}: {outcome}" for name, outcome in sorted(done.items())
                 if outcome not in ("skipped", *expected.get(name, (["passed"],))[0])]
    count = collections.Counter(done.values())
    if surprises:
        print("\n".join([*output, "", "NOT AS EXPECTED", *surprises]))
    print(f"{len(done)} tests: " + ", ".join(f"{number} {outcome}" for outcome, number in count.most_common()))
    return 1 if surprises or not done else 0


if __name__ == "__main__":
    sys.exit(main())
