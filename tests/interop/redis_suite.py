#!/usr/bin/env python3
"""Runs Redis's own test suite against weir-server, one file after the other, and compares with what is expected.

usage: WEIR_REDIS_TESTS=REDIS ... redis_suite.py --build DIR [FILE ...]     FILE: below tests/, such as unit/type/hash

REDIS is a copy of Redis's repository (github.com/redis/redis) at tag 7.0.15, of which only tests/ is used; it needs tclsh.
Redis's suite is in no Debian package and not in this repository; without REDIS this says so and ends with 77, which CTest
counts as skipped.

The suite runs in its external mode: it uses a server that runs already, and leaves out tests that start their own. Each file gets
a fresh server. redis-expected.toml lists the files, how many of their tests pass, why others do not, and which are left out because
the suite would stop at them. A file with other numbers fails the run, also when they are better. Exit status 0: all as expected.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
LIMIT_S = 600  # of one file


def started(server, folder):
    """(the process, the port that it listens on)"""
    log = folder / "log"
    words = [server, "--port", "-1", "--bind", "127.0.0.1", "--dir", folder, "--logfile", log, "--enable-debug-command", "yes",
             "--enable-protected-configs", "yes", "--save", ""]
    process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1000):
        found = re.search(r"tcp 127\.0\.0\.1:(\d+)", log.read_text() if log.exists() else "")
        if found:
            return process, found[1]
        if process.poll() is not None:
            break
        time.sleep(0.01)
    process.kill()
    raise SystemExit(f"{server} does not start")


def run(server, redis, name, skip, options):
    """(tests that passed, names of those that failed, whether the file went to its end)"""
    with tempfile.TemporaryDirectory(prefix="weir-redis-") as scratch:
        process, port = started(server, pathlib.Path(scratch))
        words = ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", port, "--tags", "-needs:repl", "--single", name]
        words += [word for test in skip for word in ("--skiptest", test)] + options
        try:
            ended = subprocess.run(words, cwd=redis, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", timeout=LIMIT_S, check=False)
            output, whole = ended.stdout, True
        except subprocess.TimeoutExpired as late:
            output, whole = (late.stdout or b"").decode(errors="replace"), False
        finally:
            process.kill()
            process.wait()
    plain = re.sub(r"\x1b\[[\d;]*m", "", output)
    passed = len(re.findall(r"^\[ok\]: ", plain, re.M))
    failed = re.findall(r"^\[err\]: (.*?)(?: in tests/\S+)?$", plain, re.M)
    stopped = re.findall(r"^\[exception\]: (.*)$", plain, re.M)
    return passed, failed + stopped, whole and not stopped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    redis = os.environ.get("WEIR_REDIS_TESTS")
    if not redis:
        print("SKIPPED: WEIR_REDIS_TESTS names no copy of Redis's repository (this file says which)")
        return SKIPPED
    rows = {row["file"]: row for row in tomllib.loads((HERE / "redis-expected.toml").read_text())["file"]}
    surprises, sum_passed, sum_failed = [], 0, 0
    for name in arguments.files or rows:
        row = rows.get(name, {"passed": 0, "failed": 0})
        passed, failed, whole = run(arguments.build.resolve() / "bin/weir-server", redis, name, row.get("skip", []), row.get("options", []))
        sum_passed += passed
        sum_failed += len(failed)
        print(f"{name}: {passed} passed, {len(failed)} failed{'' if whole else ', not run to its end'}", flush=True)
        for test in failed:
            print(f"    {test}")
        if (passed, len(failed)) != (row["passed"], row["failed"]):
            surprises.append(f"{name}: expected {row['passed']} passed, {row['failed']} failed")
    if surprises:
        print("\n".join(["NOT AS EXPECTED", *surprises]))
    print(f"{sum_passed + sum_failed} tests: {sum_passed} passed, {sum_failed} failed")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
