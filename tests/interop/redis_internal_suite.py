#!/usr/bin/env python3
"""Runs the files of Redis's test suite that start their own servers, with weir-server in the place of redis-server.

usage: WEIR_REDIS_TESTS=REDIS redis_internal_suite.py --build DIR [FILE ...]     FILE: below tests/, such as integration/psync2

REDIS is a copy of Redis's repository (github.com/redis/redis) at tag 7.0.15, of which only tests/ is used; it needs tclsh and Debian's
redis-tools. Without REDIS this says so and ends with 77, which CTest counts as skipped.

redis_suite.py runs the other files, against a server that runs already. Here the suite starts servers, stops and kills them, and reads
their logs. It runs in a copy of tests/ in a scratch folder. Two things differ from Redis there: a server is taken to run when it logs
that it listens (the suite looks for Redis's logo), and redis-cli, redis-benchmark and redis-check-aof are Debian's.
redis-internal-expected.toml lists the files with the tests that do not pass, each with its reason. A file with other failures fails the
run, also with fewer, and so does one of which no test passes. Exit status 0: all as expected.
"""
import argparse
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib

from suite_output import read_results

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
LIMIT_S = 600  # of one file
PORTS = 2000  # that the suite chooses from
TOOLS = ("redis-cli", "redis-benchmark", "redis-check-aof")


def lay_out(redis, server, folder):
    """A copy of the suite in `folder` that starts `server`."""
    shutil.copytree(redis / "tests", folder / "tests", ignore=shutil.ignore_patterns("tmp"))
    (folder / "tests/tmp").mkdir()
    (folder / "src").mkdir()
    (folder / "src/redis-server").symlink_to(server)
    for tool in TOOLS:
        (folder / "src" / tool).symlink_to(shutil.which(tool))
    path = folder / "tests/support/server.tcl"
    text = path.read_text()
    started = '" PID: $pid"'
    if started not in text:
        raise SystemExit(f"{redis} is no copy of Redis 7.0.15: its tests start servers in another way")
    path.write_text(text.replace(started, r'"${pid}:M \[^\n\]*listening on"'))


def free_base():
    """A port below which the suite may listen itself: another run of it may be under way."""
    for base in range(21100, 60000, PORTS + 100):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", base - 32))  # the suite's own
            except OSError:
                continue
            return base
    raise SystemExit("no free ports")


def run(folder, name, skip, options):
    """(tests that passed, names of those that failed, whether the file went to its end)"""
    words = ["tclsh", "tests/test_helper.tcl", "--single", name, "--durable", "--baseport", str(free_base()),
             "--portcount", str(PORTS)]
    words += [word for test in skip for word in ("--skiptest", test)] + options
    try:
        ended = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", timeout=LIMIT_S, check=False)
        output, whole = ended.stdout, True
    except subprocess.TimeoutExpired as late:
        output, whole = (late.stdout or b"").decode(errors="replace"), False
    passed, failed, interruptions = read_results(output)
    if not passed:
        print(output[-2000:])
    return passed, failed, whole and passed and not interruptions


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    redis = os.environ.get("WEIR_REDIS_TESTS")
    if not redis:
        print("SKIPPED: WEIR_REDIS_TESTS names no copy of Redis's repository (this file says which)")
        return SKIPPED
    missing = [tool for tool in ("tclsh", *TOOLS) if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED: not installed: {' '.join(missing)}")
        return SKIPPED
    rows = {row["file"]: row for row in tomllib.loads((HERE / "redis-internal-expected.toml").read_text())["file"]}
    surprises, sum_passed, sum_failed = [], 0, 0
    for name in arguments.files or rows:
        row = rows.get(name, {})
        expected = sorted(test for reason in row.get("fails", []) for test in reason["tests"])
        with tempfile.TemporaryDirectory(prefix="weir-redis-") as scratch:
            folder = pathlib.Path(scratch)
            lay_out(pathlib.Path(redis), arguments.build.resolve() / "bin/weir-server", folder)
            skip = [test for reason in row.get("skips", []) for test in reason["tests"]]
            passed, failed, whole = run(folder, name, skip, row.get("options", []))
        sum_passed += passed
        sum_failed += len(failed)
        print(f"{name}: {passed} passed, {len(failed)} failed{'' if whole else ', not run to its end'}", flush=True)
        for test in failed:
            print(f"    {test}")
        if sorted(failed) != expected or not whole:
            surprises.append(f"{name}: expected to fail: {expected}")
    if surprises:
        print("\n".join(["NOT AS EXPECTED", *surprises]))
    print(f"{sum_passed + sum_failed} tests: {sum_passed} passed, {sum_failed} failed")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
