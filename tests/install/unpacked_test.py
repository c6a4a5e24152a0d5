#!/usr/bin/env python3
"""The Debian packages, unpacked below one folder: their contents, their metadata, and whether they run there.

  unpacked_test.py BUILD_DIRECTORY

packages_test.py installs them with apt into a bare system, which takes root and a mirror; this takes neither.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ways_in

SCRATCH = tempfile.TemporaryDirectory(prefix="weir-unpacked-")
HERE = pathlib.Path(SCRATCH.name)


def field(deb, name):
    return subprocess.run(["dpkg-deb", "--field", deb, name], check=True, capture_output=True, text=True).stdout.strip()


class Unpacked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.debs = ways_in.make_packages(sys.argv[1], HERE / "packages")
        for deb in cls.debs.values():
            subprocess.run(["dpkg-deb", "--extract", deb, HERE / "root"], check=True)
        cls.installed = ways_in.Installed(str(HERE / "root/usr"))

    def test_each_says_what_it_needs(self):
        self.assertLessEqual({"weir-nic", "weir", "weir-server", "libweir0", "libweir-dev", "python3-weir"}, set(self.debs))
        for name, deb in self.debs.items():
            version = field(deb, "Version")
            needs = field(deb, "Depends")
            self.assertRegex(needs, r"libc6 \(>= " if name not in ("libweir-dev", "python3-weir") else "libweir0")
            for other in {"weir-server": ["weir-nic"], "weir": ["weir-nic"], "libweir-dev": ["libweir0"]}.get(name, []):
                self.assertIn(f"{other} (= {version})", needs)
            self.assertNotIn("weir-server", needs)
        self.assertNotIn("grpc", field(self.debs["weir"], "Depends"))  # only weir-modules does

    def test_each_says_whose_it_is_as_the_build_was_told(self):
        cache = (pathlib.Path(sys.argv[1]) / "CMakeCache.txt").read_text()
        told = {name: re.search(rf"^{name}:STRING=(.*)$", cache, re.M)[1] for name in ("WEIR_MAINTAINER", "WEIR_HOMEPAGE")}
        for deb in self.debs.values():
            self.assertRegex(field(deb, "Maintainer"), r"^.+ <.+@.+>$")
            self.assertEqual(field(deb, "Maintainer"), told["WEIR_MAINTAINER"])
            self.assertEqual(field(deb, "Homepage"), told["WEIR_HOMEPAGE"])

    def test_no_file_is_in_two_and_no_test_in_any(self):
        seen = {}
        for name, deb in self.debs.items():
            listed = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], check=True, capture_output=True).stdout
            files = subprocess.run(["tar", "-t"], input=listed, check=True, capture_output=True).stdout.decode().split("\n")
            for file in files:
                if file and not file.endswith("/"):
                    self.assertNotIn(file, seen, f"{name}, {seen.get(file)}")
                    self.assertNotIn("test", file)
                    seen[file] = name
        self.assertEqual(seen["./etc/weir/weir-server.conf"], "weir-server")
        self.assertEqual(seen["./usr/lib/systemd/system/weir-server.service"], "weir-server")

    def test_only_root_reads_the_servers_configuration(self):
        listed = subprocess.run(["dpkg-deb", "--contents", self.debs["weir-server"]], check=True, capture_output=True, text=True).stdout
        line = next(line for line in listed.splitlines() if line.endswith("/etc/weir/weir-server.conf"))
        self.assertRegex(line, r"^-rw-r----- root/root ")
        unit = (HERE / "root/usr/lib/systemd/system/weir-server.service").read_text()
        self.assertIn("LoadCredential=weir-server.conf:/etc/weir/weir-server.conf", unit)

    def test_the_nic_runs_there(self):
        ways_in.tries_the_nic(self, self.installed)
        self.assertIn("Usage: weir plan", self.installed.run("weir", "help", "plan"))

    def test_the_server_keeps_its_keys_when_it_is_stopped(self):
        ways_in.tries_the_server(self, self.installed, HERE / "root/etc/weir/weir-server.conf", HERE / "data")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
