#!/usr/bin/env python3
"""Runs a test unless everything it depends on is as it was when it passed.

usage: run-if-changed.py INPUT [INPUT ...] -- COMMAND [WORD ...]

INPUT is a file or folder of the tree, or a pattern of files of one folder ('rdma/*.hpp'). Exit status: the command's, or 77
(CTest: skipped) when it was not run. With WEIR_TEST_ALL=1, as `make test-all` sets it, the command always runs.
"""
import os
import pathlib
import subprocess
import sys

from remembered import Remembered, digest_of_files

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77


def main():
    if "--" not in sys.argv[2:]:
        sys.exit(__doc__)
    at = sys.argv.index("--")
    inputs, command = sys.argv[1:at], sys.argv[at + 1:]
    here = [word.replace(str(ROOT), "TREE") for word in command]
    digest = digest_of_files(ROOT, [*inputs, "tools/packages.txt"], *here)
    passed = Remembered("passed-tests")
    if passed.good(digest) and os.environ.get("WEIR_TEST_ALL") != "1":
        print(f"SKIPPED: it has passed with these {' '.join(inputs)}; WEIR_TEST_ALL=1 runs it all the same")
        return SKIPPED
    status = subprocess.run(command).returncode
    if status == 0:
        passed.remember(digest)
        passed.forget_old()
    return status


if __name__ == "__main__":
    sys.exit(main())
