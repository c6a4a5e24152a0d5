#!/usr/bin/env python3
"""The programs and libraries are position-independent, bind all symbols at start, watch their stacks, and cannot execute them.

  hardening_test.py BUILD_DIRECTORY

What is not built is not looked at; ends with 77 (skipped) if nothing is. A debug build's stacks are not watched.
"""
import pathlib
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv[1])
PROGRAMS = [BUILD / "bin" / name for name in ("weir", "weir-server", "weir-cli", "weir-benchmark", "weir-check", "weir-fabric", "weir-plan", "weir-sim",
                                              "weir-collector", "weir-rpc", "weir-tensor")]
BUILT = [file for file in [*PROGRAMS, *(BUILD / "lib/verbs").glob("lib*.so*"), *(BUILD / "lib").glob("libweir_*.so*")]
         if file.is_file() and not file.is_symlink()]
OPTIMISED = "CMAKE_BUILD_TYPE:STRING=Rel" in (BUILD / "CMakeCache.txt").read_text()
if not BUILT:
    print("SKIPPED: nothing is built")
    sys.exit(77)


def readelf(*words):
    return subprocess.run(["readelf", "-W", *map(str, words)], check=True, capture_output=True, text=True).stdout


class Hardening(unittest.TestCase):
    def of_each(self, check):
        for file in BUILT:
            with self.subTest(file=file.name):
                check(file)

    def test_is_position_independent(self):
        self.of_each(lambda file: self.assertRegex(readelf("-h", file), r"Type:\s+DYN"))

    def test_binds_all_symbols_at_start(self):
        self.of_each(lambda file: self.assertRegex(readelf("-d", file), r"\((FLAGS|FLAGS_1|BIND_NOW)\).*NOW"))

    def test_protects_what_it_has_bound(self):
        self.of_each(lambda file: self.assertIn("GNU_RELRO", readelf("-l", file)))

    @unittest.skipUnless(OPTIMISED, "not an optimised build")
    def test_watches_its_stack_and_checks_lengths(self):
        for program in filter(pathlib.Path.is_file, PROGRAMS):
            with self.subTest(program=program.name):
                imported = readelf("--dyn-syms", program)
                self.assertIn("__stack_chk_fail", imported)
                self.assertRegex(imported, r"__\w+_chk@")

    def test_has_no_executable_stack(self):
        self.of_each(lambda file: self.assertRegex(readelf("-l", file), r"GNU_STACK.* RW "))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
