#!/usr/bin/env python3
"""Runs a command in a network namespace of its own that has a wire (two_namespaces.py), so that no other program shares its ports.

usage: with_a_wire.py COMMAND [ARG...]     exit status: the command's; 77: this machine permits no such namespaces
"""
import subprocess
import sys

import two_namespaces

SKIPPED = 77


def main():
    if forbidden := two_namespaces.why_not():
        print(f"SKIPPED: {forbidden}")
        return SKIPPED
    namespaces = two_namespaces.TwoNamespaces()
    try:
        return subprocess.run([*namespaces.enter("server"), *sys.argv[1:]], stdin=subprocess.DEVNULL).returncode
    finally:
        namespaces.end()


if __name__ == "__main__":
    sys.exit(main())
