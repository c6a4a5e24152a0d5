"""Runs a test program again in a network namespace of its own, in which it may use any port, packets and an address (ADDRESS).

    if __name__ == "__main__":
        own_namespace.run_tests()     # unittest; the program's first word is its own, more words are unittest's

Exit status 77: this machine permits no network namespaces.
"""
import os
import subprocess
import sys
import unittest

ADDRESS = "192.0.2.7"
INSIDE = "WEIR_TEST_INSIDE_NAMESPACE"
SKIPPED = 77


def run_tests():
    if INSIDE in os.environ:
        unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
    namespace = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
    if subprocess.run([*namespace, "true"], capture_output=True).returncode:
        print("SKIPPED: this machine permits no network namespaces")
        sys.exit(SKIPPED)
    prepare = f"ip link set lo up && ip addr add {ADDRESS}/32 dev lo || exit {SKIPPED}"
    done = subprocess.run([*namespace, "sh", "-c", f'{prepare}; exec "$@"', "sh", sys.executable, "-B", *sys.argv],
                          env={**os.environ, INSIDE: "1"})
    sys.exit(done.returncode)
