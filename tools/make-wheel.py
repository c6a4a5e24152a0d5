#!/usr/bin/env python3
"""Makes the Python wheel that carries its libraries: weir_rpc, weir_tensor, the software NIC and weir.

usage: make-wheel.py BUILD_DIRECTORY FOLDER

Needs python3-setuptools and python3-wheel, and no network. Prints the wheel's path in FOLDER. What it takes from the build is stripped, and
searched for in the wheel's own folder, so it runs wherever pip puts it; OpenSSL, zstd, lz4 and libstdc++ are the system's.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD_WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def version_of(build):
    return re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)[1]


def links(folder, names):
    return [name for name in names if (pathlib.Path(folder) / name).is_symlink()]


def gather(build, source):
    """Fills `source` with what pyproject.toml names."""
    shutil.copytree(ROOT / "cmake/packages/wheel", source, ignore=shutil.ignore_patterns("README.md", "__*"))
    (source / "VERSION").write_text(version_of(build) + "\n")
    for package in ("rpc/python/weir_rpc", "tensor/python/weir_tensor"):
        shutil.copytree(ROOT / package, source / pathlib.Path(package).name, ignore=shutil.ignore_patterns("__pycache__", "*.md"))
    weir = source / "weir"
    for component in ("nic", "lib"):
        subprocess.run(["cmake", "--install", build, "--prefix", source / "installed", "--component", component, "--strip"],
                       check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(source / "installed/bin", weir / "bin")
    # A wheel has no links, and a copy by another name would be a second library in the process that loads it.
    shutil.copytree(source / "installed/lib/weir", weir / "lib/weir", ignore=links)
    for library in ("libweir_rpc.so.0", "libweir_tensor.so.0"):
        shutil.copy(source / "installed/lib" / library, weir / "lib" / library)
    shutil.rmtree(source / "installed")
    for module in ("__init__.py", "__main__.py"):
        shutil.copy(ROOT / "cmake/packages/wheel" / module, weir / module)


def main():
    build, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    for needed in ("bin/weir", "lib/verbs/libibverbs.so.1", "lib/libweir_rpc.so.0", "lib/libweir_tensor.so.0"):
        if not (build / needed).exists():
            sys.exit(f"make-wheel: {build / needed} is not built; first: make wheel (or make programs)")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="weir-wheel-") as scratch:
        source = pathlib.Path(scratch) / "source"
        gather(build, source)
        done = subprocess.run([sys.executable, "-c", BUILD_WHEEL, scratch], cwd=source, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"make-wheel: {(done.stdout + done.stderr)[-3000:]}")
        wheel, = pathlib.Path(scratch).glob("*.whl")
        print(shutil.copy(wheel, folder / wheel.name))


if __name__ == "__main__":
    main()
