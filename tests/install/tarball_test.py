#!/usr/bin/env python3
"""The tarball of `make packages`, unpacked into a folder of its own: it works there, wherever that is.

  tarball_test.py BUILD_DIRECTORY
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ways_in

SCRATCH = tempfile.TemporaryDirectory(prefix="weir-tarball-")
HERE = pathlib.Path(SCRATCH.name)


class Tarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tarball = ways_in.make_tarball(sys.argv[1], HERE / "packages")
        (HERE / "unpacked").mkdir()
        subprocess.run(["tar", "-xf", tarball, "-C", HERE / "unpacked"], check=True)
        cls.folders = list((HERE / "unpacked").iterdir())
        cls.installed = ways_in.Installed(str(cls.folders[0]))

    def test_is_one_folder_named_like_the_version(self):
        version = self.installed.run("weir", "version").split()[1]
        self.assertRegex(self.folders[0].name, rf"^weir-{version}-\w+$")
        self.assertEqual(len(self.folders), 1)

    def test_the_nic_runs_there(self):
        ways_in.tries_the_nic(self, self.installed)

    def test_programs_build_against_it_and_call_over_rdma(self):
        ways_in.tries_find_package(self, self.installed, ways_in.PROGRAMS, HERE / "cmake")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
