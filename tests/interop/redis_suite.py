#!/usr/bin/env python3
"""Runs the test suite of Redis or Valkey against weir-server, one file after the other, and compares with what is expected.

usage: WEIR_REDIS_TESTS=REDIS redis_suite.py --build DIR [FILE ...]             FILE: below tests/, such as unit/type/hash
       WEIR_VALKEY_TESTS=VALKEY redis_suite.py --valkey --build DIR [FILE ...]

REDIS is a copy of Redis's repository (github.com/redis/redis) at tag 7.0.15, VALKEY one of Valkey's (github.com/valkey-io/valkey) at
branch 9.1, of which only tests/ is used; both need tclsh. The suites are in no Debian package and not in this repository; without a copy
this says so and ends with 77, which CTest counts as skipped.

The suite runs in its external mode: it uses a server that runs already, and leaves out tests that start their own. Each file gets
a fresh server, with the settings that are the suite's server's defaults. redis-expected.toml and valkey-expected.toml list the files, how
many of their tests pass, why others do not, and which are left out because the suite would stop at them. A file with other numbers fails
the run, also when they are better. Exit status 0: all as expected.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

from suite_output import read_results

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
LIMIT_S = 600  # of one file


class Suite:
    """Whose tests they are."""

    def __init__(self, name, copy, expected, options, settings):
        self.name, self.copy, self.options, self.settings = name, os.environ.get(copy), options, settings
        self.copy_variable, self.expected = copy, HERE / expected

    def environment(self, server, folder):
        """Valkey's suite looks for the programs that it would start."""
        programs = folder / "programs"
        programs.mkdir()
        (programs / "valkey-server").symlink_to(server)
        for tool in ("cli", "benchmark", "check-aof", "check-rdb"):
            (programs / f"valkey-{tool}").symlink_to(shutil.which(f"redis-{tool}") or "/bin/false")
        return os.environ | {"VALKEY_BIN_DIR": str(programs)}


REDIS = Suite("Redis", "WEIR_REDIS_TESTS", "redis-expected.toml", ["--tags", "-needs:repl"], [])
# A test that fails does not end its file. Valkey says UNLINK to replicas where Redis says DEL.
VALKEY = Suite("Valkey", "WEIR_VALKEY_TESTS", "valkey-expected.toml", ["--durable"],
               ["--lazyfree-lazy-expire", "yes", "--lazyfree-lazy-eviction", "yes", "--lazyfree-lazy-server-del", "yes"])


def started(server, folder, settings):
    """(the process, the port that it listens on)"""
    log = folder / "log"
    words = [server, "--port", "-1", "--bind", "127.0.0.1", "--dir", folder, "--logfile", log, "--enable-debug-command", "yes",
             "--enable-protected-configs", "yes", "--save", "", *settings]
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


def run(server, suite, name, skip, options):
    """(tests that passed, names of those that failed, whether the file went to its end)"""
    with tempfile.TemporaryDirectory(prefix="weir-redis-") as scratch:
        process, port = started(server, pathlib.Path(scratch), suite.settings)
        words = ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", port, "--single", name, *suite.options]
        words += [word for test in skip for word in ("--skiptest", test)] + options
        try:
            ended = subprocess.run(words, cwd=suite.copy, env=suite.environment(server, pathlib.Path(scratch)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", timeout=LIMIT_S, check=False)
            output, whole = ended.stdout, True
        except subprocess.TimeoutExpired as late:
            output, whole = (late.stdout or b"").decode(errors="replace"), False
        finally:
            process.kill()
            process.wait()
    passed, failed, interruptions = read_results(output)
    return passed, failed, whole and not interruptions


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--valkey", action="store_const", const=VALKEY, default=REDIS, dest="suite")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    suite = arguments.suite
    if not suite.copy:
        print(f"SKIPPED: {suite.copy_variable} names no copy of {suite.name}'s repository (this file says which)")
        return SKIPPED
    rows = {row["file"]: row for row in tomllib.loads(suite.expected.read_text())["file"]}
    surprises, sum_passed, sum_failed = [], 0, 0
    for name in arguments.files or rows:
        row = rows.get(name, {"passed": 0, "failed": 0})
        passed, failed, whole = run(arguments.build.resolve() / "bin/weir-server", suite, name, row.get("skip", []), row.get("options", []))
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
