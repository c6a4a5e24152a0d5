#!/usr/bin/env python3
"""Runs the tests that meet Debian's redis-server with Valkey's server in its place.

usage: WEIR_VALKEY_SERVER=PROGRAM valkey_suite.py --build DIR [TEST ...]     TEST: a test program, such as kv_sentinel_test

PROGRAM is a valkey-server (github.com/valkey-io/valkey). It is in no package of Debian 12 and not in this repository; without PROGRAM
this says so and ends with 77, which CTest counts as skipped. Tests over TLS are left out if it was built without. Exit status 0:
all others pass.
"""
import argparse
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
LIMIT_S = 300  # of one test program
TESTS = ("kv_redis_replica_test", "kv_redis_dump_test", "kv_redis_cluster_test", "kv_sentinel_test")
OVER_TLS = ["RedisClusterConnections.are_made_with_tls", "RedisTlsReplication.*"]


def has_tls(program):
    return "libssl" in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    valkey = os.environ.get("WEIR_VALKEY_SERVER")
    if not valkey:
        print("SKIPPED: WEIR_VALKEY_SERVER names no valkey-server")
        return SKIPPED
    left_out = [] if has_tls(valkey) else OVER_TLS
    for name in left_out:
        print(f"left out: {name}: {valkey} was built without TLS")
    failed = 0
    for test in arguments.tests or TESTS:
        command = [arguments.build.resolve() / "bin" / test, "--gtest_brief=1", "--gtest_filter=-" + ":".join(left_out)]
        try:
            failed += subprocess.run(command, env=os.environ | {"WEIR_REDIS_SERVER": valkey}, timeout=LIMIT_S, check=False).returncode != 0
        except subprocess.TimeoutExpired:
            print(f"{test}: not over after {LIMIT_S} s")
            failed += 1
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
