#!/usr/bin/env python3
"""Runs a job of jobs/ in a virtual machine whose kernel has a Soft-RoCE device.

Exit status: the job's own; 77: this machine cannot (it says why); 124: time is up; 125: the guest died; 2: usage.
"""
import argparse
import pathlib
import sys

import kernel
import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main():
    jobs = {path.stem: path for path in sorted((HERE / "jobs").glob("*.sh"))}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="?", choices=sorted(jobs))
    parser.add_argument("--list", action="store_true", help="the jobs there are")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="the build to take (build/release)")
    parser.add_argument("--seconds", type=int, default=300, help="limit (300)")
    arguments = parser.parse_args()
    if arguments.list or not arguments.job:
        print("\n".join(jobs))
        return 0 if arguments.list else 2
    try:
        booted = kernel.prepare(ROOT / "build/vm")
    except kernel.Missing as why:
        print(f"SKIPPED: no virtual machine with Soft-RoCE: {why}")
        return 77
    return machine.run(*booted, jobs[arguments.job], ROOT, arguments.build.resolve(), arguments.seconds)


if __name__ == "__main__":
    sys.exit(main())
