#!/usr/bin/env python3
"""What `make install` does below another prefix: each way to use Weir works, and no test is installed.

  prefix_test.py BUILD_DIRECTORY
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import ways_in

BUILD = sys.argv[1]
SCRATCH = tempfile.TemporaryDirectory(prefix="weir-install-")
HERE = pathlib.Path(SCRATCH.name)
PREFIX = HERE / "opt/weir"
TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", PREFIX], check=True, stdout=subprocess.DEVNULL)
        cls.installed = ways_in.Installed(str(PREFIX))

    def names(self, folder):
        return {path.name for path in (PREFIX / folder).iterdir()}

    def test_has_the_programs_and_no_tests(self):
        self.assertEqual(self.names("bin"), {"weir", *(f"weir-{name}" for name in (
            "fabric", "plan", "sim", "collector", "rpc", "tensor", "cli", "benchmark", "server", "check"))})
        self.assertLessEqual({"libibverbs.so.1", "librdmacm.so.1", "libweir_view.so", "libweir_look.so", "libweir_sockets.so"},
                             self.names("lib/weir"))
        self.assertFalse([str(path) for path in PREFIX.rglob("*test*")])

    def test_no_two_libraries_share_a_name(self):
        stems = [path.name.removesuffix(".a") for path in (PREFIX / "lib").glob("*.a")]
        self.assertIn("libweir_rpc_cpp", stems)
        shared = {path.name.split(".so")[0] for path in (PREFIX / "lib").glob("*.so*")}
        self.assertFalse(shared & set(stems))

    def test_nic_and_subcommands(self):
        ways_in.tries_the_nic(self, self.installed)
        for subcommand in ("fabric", "plan", "sim", "collector", "rpc", "tensor"):
            self.assertIn(f"Usage: weir {subcommand}", self.installed.run("weir", "help", subcommand))

    def test_a_component_comes_alone(self):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", HERE / "nic", "--component", "nic"], check=True,
                       stdout=subprocess.DEVNULL)
        self.assertEqual({path.name for path in (HERE / "nic/bin").iterdir()}, {"weir", "weir-fabric"})
        alone = subprocess.run([HERE / "nic/bin/weir", "plan"], capture_output=True, text=True)
        self.assertEqual(alone.returncode, 127)
        self.assertIn("weir-plan is not there", alone.stderr)

    def test_uninstall_leaves_nothing(self):
        prefix = HERE / "gone/weir"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        manifest = HERE / "install_manifest.txt"
        shutil.copy(f"{BUILD}/install_manifest.txt", manifest)
        python, = prefix.glob("lib/python3*/dist-packages/weir_rpc")
        (python / "__pycache__").mkdir()
        (prefix / "bin/somebody-elses").touch()
        subprocess.run([TOOLS / "uninstall.sh", manifest], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual([path.name for path in prefix.rglob("*")], ["bin", "somebody-elses"])
        self.assertEqual(subprocess.run([TOOLS / "uninstall.sh", manifest], capture_output=True).returncode, 1)

    def test_find_package(self):
        ways_in.tries_find_package(self, self.installed, ways_in.PROGRAMS, HERE / "cmake")

    def test_pkg_config(self):
        ways_in.tries_pkg_config(self, self.installed, ways_in.PROGRAMS, HERE / "pkg")

    def test_c_and_python(self):
        ways_in.tries_c_and_python(self, self.installed, ways_in.PROGRAMS, HERE / "c")

    def test_server_takes_its_example_configuration(self):
        ways_in.tries_the_server(self, self.installed, PREFIX / "share/doc/weir-server/examples/weir-server.conf", HERE / "data")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
