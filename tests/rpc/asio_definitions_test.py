#!/usr/bin/env python3
"""A program that sees another Asio than the library does must not compile, and must say why.

  asio_definitions_test.py COMPILER SOURCE_DIRECTORY DEFINITIONS

DEFINITIONS: those that the library is compiled with, NAME or NAME=VALUE, with commas between them.
"""
import subprocess
import sys
import unittest

COMPILER, SOURCE, DEFINITIONS = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
HEADERS = ("rpc/client.hpp", "rpc/server.hpp")
MISSING, TOO_MANY, OTHER = "Link weir::rpc in CMake", "Leave it out", "another version of Asio"


def compiled(definitions, *includes):
    """Runs the preprocessor, which is enough, since it decides. Returns its message, or nothing if all is well."""
    done = subprocess.run([COMPILER, "-std=c++23", "-E", "-o", "/dev/null", "-x", "c++", "-", f"-I{SOURCE}",
                           *(f"-D{definition}" for definition in definitions)],
                          input="".join(f"#include {name}\n" for name in includes), capture_output=True, text=True)
    assert (done.returncode == 0) == (done.stderr == ""), done
    return done.stderr


class AsioDefinitions(unittest.TestCase):
    def test_those_of_the_library_are_taken(self):
        self.assertIn("ASIO_NO_DEPRECATED", DEFINITIONS)
        for header in HEADERS:
            for includes in ((f'"{header}"',), ("<asio/io_context.hpp>", f'"{header}"')):
                self.assertEqual(compiled(DEFINITIONS, *includes), "")

    def test_without_one_of_them_it_says_how_to_have_them_all(self):
        for header in HEADERS:
            self.assertIn(MISSING, compiled([], f'"{header}"'))
        for left_out in ("ASIO_NO_DEPRECATED", "ASIO_SEPARATE_COMPILATION"):
            rest = [definition for definition in DEFINITIONS if definition != left_out]
            self.assertEqual(len(rest), len(DEFINITIONS) - 1)
            said = compiled(rest, "<asio/io_context.hpp>", f'"{HEADERS[0]}"')
            self.assertIn(MISSING, said, left_out)
            self.assertIn("pkg-config --cflags weir-rpc-cpp", said)

    def test_with_others_it_says_to_leave_them_out(self):
        for more in ("ASIO_HEADER_ONLY", "ASIO_ENABLE_HANDLER_TRACKING", "ASIO_DISABLE_THREADS"):
            self.assertIn(TOO_MANY, compiled([*DEFINITIONS, more], f'"{HEADERS[1]}"'), more)

    def test_another_version_of_asio_is_named(self):
        self.assertIn(OTHER, compiled([*DEFINITIONS, "WEIR_ASIO_VERSION=100000"], f'"{HEADERS[0]}"'))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
