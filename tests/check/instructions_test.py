#!/usr/bin/env python3
"""`--check` and `--weak` that are not asked for cost nothing: what posting and polling a request takes, in instructions.

  instructions_test.py POST_AND_POLL LIBRARIES [--write]

Callgrind counts instructions, which do not depend on how busy the machine is. The committed figures are those of the reference system
(GCC 12, release); a count may be 2 % above its figure. A figure that has become smaller is written down with --write, in the commit that
made it so. Exit status 77: no valgrind.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ALLOWED = 1.02
ROUNDS = 2000  # of post_and_poll, with those that warm up
FIGURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.json")
OPERATIONS = "write", "read", "send"


def count(program, libraries, operation):
    """Instructions of one round."""
    with tempfile.TemporaryDirectory(prefix="weir-instructions-") as folder:
        out = os.path.join(folder, "callgrind.out")
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "WEIR_RUNTIME_DIR": folder}
        for variable in "WEIR_CHECK", "WEIR_WEAK", "LD_PRELOAD":
            environment.pop(variable, None)
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect=measure_{operation}", f"--callgrind-out-file={out}", program],
                              env=environment, capture_output=True, text=True, timeout=240)
        if done.returncode != 0:
            sys.exit(f"post_and_poll failed under valgrind with status {done.returncode}:\n{done.stderr}")
        with open(out) as file:
            return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)[1]) / ROUNDS


def main():
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind")
        return SKIPPED
    counted = {operation: round(count(*sys.argv[1:3], operation), 1) for operation in OPERATIONS}
    if "--write" in sys.argv:
        with open(FIGURES, "w") as file:
            file.write(json.dumps(counted, indent=2) + "\n")
    with open(FIGURES) as file:
        figures = json.load(file)
    failed = False
    for operation, now in counted.items():
        too_many = now > figures[operation] * ALLOWED
        failed |= too_many
        print(f"{operation} of 64 bytes, posted and polled: {now:.1f} instructions; committed: {figures[operation]:.1f}{': TOO MANY' if too_many else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
