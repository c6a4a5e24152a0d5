#!/usr/bin/env python3
"""The Debian packages, installed into a bare Debian with apt, and then used in each way as a newcomer would; after them the wheel.

  packages_test.py BUILD_DIRECTORY [SUITE]

SUITE is bookworm (Debian 12, on which they were built) unless told, or trixie (Debian 13).

Needs root (debootstrap, chroot) and a package mirror; ends with 77 (skipped) without. It mounts in a namespace of its own, so
that nothing stays mounted however it ends.
"""
import os
import shutil
import sys
import unittest

import bare_root
import ways_in
from bare_root import quietly

bare_root.own_mounts()

BUILD = sys.argv[1]
SUITE = sys.argv[2] if len(sys.argv) > 2 else "bookworm"
try:
    BARE = bare_root.BareRoot(SUITE)
except bare_root.NoRoot as why:
    print(f"SKIPPED: {why}")
    sys.exit(77)
ROOT = BARE.path
APT = ["apt-get", "-qq", "-y", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends"]


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(BARE.clear)
        cls.addClassCleanup(bare_root.Mounted(ROOT).close)
        cls.debs = ways_in.make_packages(BUILD, BARE.folder / "packages")
        (ROOT / "debs").mkdir()
        for path in cls.debs.values():
            shutil.copy(path, ROOT / "debs")
        shutil.copytree(ways_in.PROGRAMS, ROOT / "programs")
        cls.installed = ways_in.Installed("/usr", str(ROOT))
        cls.installed.run("apt-get", "-qq", "update")

    def install(self, *packages, beside=()):
        done, said = quietly("chroot", ROOT, *APT, "install", *(f"/debs/{self.debs[p].name}" for p in packages), *beside,
                             env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        self.assertTrue(done, said)

    # In this order, each installs more.
    def test_1_the_nic_runs_somebody_elses_program(self):
        self.install("weir-nic", beside=["perftest"])
        ways_in.tries_the_nic(self, self.installed)
        command = ["weir", "run", "--", "ib_write_bw", "-n", "1000", "-p", ways_in.free_port()]
        server = self.installed.start(*command)
        try:
            for _ in range(50):  # until the server listens
                done, said = quietly("chroot", ROOT, *command, "127.0.0.1")
                if done:
                    break
            self.assertTrue(done, said)
            self.assertIn("BW average", said)
        finally:
            server.communicate(timeout=60)
        self.assertEqual(server.returncode, 0)

    def test_2_the_server_has_its_unit_and_configuration(self):
        self.install("weir-server", "weir")
        self.assertTrue((ROOT / "etc/weir/weir-server.conf").exists())
        self.assertIn("ExecStart=weir-server ${CREDENTIALS_DIRECTORY}/weir-server.conf",
                      (ROOT / "usr/lib/systemd/system/weir-server.service").read_text())
        self.assertIn("/etc/weir/weir-server.conf", (ROOT / "var/lib/dpkg/info/weir-server.conffiles").read_text())
        ways_in.tries_the_server(self, self.installed, "/etc/weir/weir-server.conf", ROOT / "data")
        self.assertIn("Usage: weir plan", self.installed.run("weir", "plan", "--help"))

    def test_3_programs_are_built_against_it(self):
        self.install("libweir0", "libweir-dev", "python3-weir",
                     beside=["g++", "cmake", "ninja-build", "pkg-config"])
        if SUITE == "bookworm":  # the C++ libraries want the compiler and the Asio with which they were built
            ways_in.tries_find_package(self, self.installed, "/programs", "/tmp/cmake")
            ways_in.tries_pkg_config(self, self.installed, "/programs", "/tmp/pkg")
        ways_in.tries_c_and_python(self, self.installed, "/programs", "/tmp/c")

    def test_4_they_go_again(self):
        done, said = quietly("chroot", ROOT, *APT, "purge", *(name for name in self.debs if name != "weir-modules"))
        self.assertTrue(done, said)
        self.assertFalse((ROOT / "etc/weir/weir-server.conf").exists())
        # test_3 imported the modules as root, so that Python compiled them.
        self.assertFalse([str(path) for path in (ROOT / "usr").rglob("*weir*")])

    def test_5_the_wheel_needs_none_of_them(self):
        done, said = quietly("chroot", ROOT, *APT, "install", "python3-venv", "python3-msgpack", "libzstd1", "liblz4-1")
        self.assertTrue(done, said)
        wheel = ways_in.make_wheel(BUILD, BARE.folder / "wheel")
        shutil.copy(wheel, ROOT)
        self.installed.run("python3", "-m", "venv", "--system-site-packages", "/venv")
        self.installed.run("/venv/bin/pip", "install", "--no-index", f"/{wheel.name}")
        ways_in.tries_the_modules(self, self.installed, "/venv/bin/python", "/programs/by_wheel.py")
        self.assertIn('"weir0"', self.installed.run("/venv/bin/weir", "devices", "--json"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
