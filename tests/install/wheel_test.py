#!/usr/bin/env python3
"""The Python wheel that carries its libraries: made from the build, installed by pip into a virtual environment without a network,
and used there. Nothing of the build is used but the wheel.

  wheel_test.py BUILD_DIRECTORY
"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import ways_in

SCRATCH = tempfile.TemporaryDirectory(prefix="weir-wheel-test-")
HERE = pathlib.Path(SCRATCH.name)
VENV = HERE / "venv"

lacking = [name for name in ("ensurepip", "msgpack", "pip", "setuptools", "wheel") if importlib.util.find_spec(name) is None]
if lacking:
    print(f"SKIPPED: {sys.executable} lacks {', '.join(lacking)}: tools/install-packages.sh installs them")
    sys.exit(77)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wheel = ways_in.make_wheel(sys.argv[1], HERE)
        # msgpack, which weir_rpc needs, is the system's.
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", VENV], check=True)
        subprocess.run([VENV / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", cls.wheel], check=True)
        cls.installed = ways_in.VirtualEnvironment(str(VENV))

    def test_is_for_this_machine_and_any_python_3(self):
        self.assertRegex(self.wheel.name, r"^weir-[0-9.]+-py3-none-manylinux_2_[0-9]+_\w+\.whl$")

    def test_has_each_library_once(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = {name for name in wheel.namelist() if ".so" in name}
        self.assertEqual(names, {"weir/lib/libweir_rpc.so.0", "weir/lib/libweir_tensor.so.0"} | {f"weir/lib/weir/{name}" for name in (
            "libibverbs.so.1", "librdmacm.so.1", "librspreload.so", "libweir_check.so", "libweir_heap.so", "libweir_look.so", "libweir_sockets.so", "libweir_twin.so",
            "libweir_view.so")})

    def test_calls_and_fetches_with_its_own_libraries(self):
        ways_in.tries_the_modules(self, self.installed, VENV / "bin/python", ways_in.PROGRAMS / "by_wheel.py")
        asked = ("import weir_rpc, weir_tensor; weir_rpc.Server().listen('rdma://127.0.0.1:0'); "
                 "print({line.split()[-1] for line in open('/proc/self/maps') if 'libweir_' in line or 'libibverbs' in line})")
        loaded = eval(self.installed.run(VENV / "bin/python", "-c", asked))
        self.assertEqual({path.split("/")[-1] for path in loaded}, {"libweir_rpc.so.0", "libweir_tensor.so.0", "libibverbs.so.1"})
        self.assertTrue(all(path.startswith(f"{VENV}/lib/") for path in loaded), loaded)

    def test_runs_a_program_on_its_nic(self):
        ways_in.tries_the_nic(self, self.installed)
        self.assertIn("weir0", self.installed.run("weir", "run", "--", VENV / "bin/python", "-m", "weir", "devices"))

    def test_needs_nothing_else_for_the_nic_and_arrays(self):
        alone = HERE / "alone"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", alone], check=True)
        subprocess.run([sys.executable, "-m", "pip", "--python", alone, "install", "--quiet", "--no-index", "--no-deps",
                        "--disable-pip-version-check", self.wheel], check=True)
        installed = ways_in.VirtualEnvironment(str(alone))
        self.assertRegex(installed.run("weir", "version"), r"^weir [0-9.]+\n$")
        listens = "import weir_tensor; print(weir_tensor.listen('rdma://127.0.0.1:0').address)"
        self.assertRegex(installed.run(alone / "bin/python", "-c", listens), r"^rdma://127\.0\.0\.1:[0-9]+\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
