#!/usr/bin/env python3
"""The Debian packages, installed into a bare Debian with apt, and then used in each way as a newcomer would; after them the wheel.

  packages_test.py BUILD_DIRECTORY [SUITE]

SUITE is bookworm (Debian 12, on which they were built) unless told, or trixie (Debian 13).

Needs root (debootstrap, chroot) and a package mirror; ends with 77 (skipped) without. It mounts in a namespace of its own, so
that nothing stays mounted however it ends.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import ways_in

if os.geteuid() != 0:
    print("SKIPPED: needs root, for debootstrap and chroot")
    sys.exit(77)
if "WEIR_OWN_MOUNTS" not in os.environ:
    os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv], {**os.environ, "WEIR_OWN_MOUNTS": "1"})

BUILD = pathlib.Path(sys.argv[1])
SUITE = sys.argv[2] if len(sys.argv) > 2 else "bookworm"
HERE = pathlib.Path(tempfile.mkdtemp(prefix="weir-packages-"))
ROOT = HERE / "root"
APT = ["apt-get", "-qq", "-y", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends"]


def quietly(*words, **more):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **more)
    return done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def need(ok, what):
    if not ok:
        shutil.rmtree(HERE, ignore_errors=True)
        print(f"SKIPPED: {what}")
        sys.exit(77)


def mirror():
    """This system's own mirror as a list, empty if it has none."""
    done, said = quietly("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm")
    return said.split()[:1] if done else []


def make_root():
    need(shutil.which("debootstrap"), "debootstrap is not installed")
    done, said = quietly("debootstrap", "--variant=minbase", SUITE, ROOT, *mirror())
    need(done, "debootstrap made no root: " + said.strip()[-300:])
    shutil.copy("/etc/resolv.conf", ROOT / "etc/resolv.conf")
    shutil.copy("/etc/hosts", ROOT / "etc/hosts")
    (ROOT / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (ROOT / "usr/sbin/policy-rc.d").chmod(0o755)
    for mounted in ("proc", "dev", "sys"):
        subprocess.run(["mount", "--rbind", f"/{mounted}", ROOT / mounted], check=True)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make_root()
        cls.addClassCleanup(cls.clear)
        cls.debs = ways_in.make_packages(BUILD, HERE / "packages")
        (ROOT / "debs").mkdir()
        for path in cls.debs.values():
            shutil.copy(path, ROOT / "debs")
        shutil.copytree(ways_in.PROGRAMS, ROOT / "programs")
        cls.installed = ways_in.Installed("/usr", str(ROOT))
        cls.installed.run("apt-get", "-qq", "update")

    @classmethod
    def clear(cls):
        for mounted in ("proc", "dev", "sys"):
            subprocess.run(["umount", "-R", ROOT / mounted], check=True)
        shutil.rmtree(HERE)

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
        self.assertFalse([str(path) for path in (ROOT / "usr").rglob("*weir*")])

    def test_5_the_wheel_needs_none_of_them(self):
        done, said = quietly("chroot", ROOT, *APT, "install", "python3-venv", "python3-msgpack", "libzstd1", "liblz4-1")
        self.assertTrue(done, said)
        wheel = ways_in.make_wheel(BUILD, HERE / "wheel")
        shutil.copy(wheel, ROOT)
        self.installed.run("python3", "-m", "venv", "--system-site-packages", "/venv")
        self.installed.run("/venv/bin/pip", "install", "--no-index", f"/{wheel.name}")
        ways_in.tries_the_modules(self, self.installed, "/venv/bin/python", "/programs/by_wheel.py")
        self.assertIn('"weir0"', self.installed.run("/venv/bin/weir", "devices", "--json"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
