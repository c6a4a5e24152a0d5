"""Shared by the tests of rpc/python: the package, installed with pip, and the C++ example server.

A test's words: SOURCE LIBRARY RPC_SHOP EXAMPLE [unittest's words]
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE, LIBRARY, SHOP, EXAMPLE = sys.argv[1:5]
SCRATCH = tempfile.TemporaryDirectory(prefix="weir-python-")
HERE = pathlib.Path(SCRATCH.name)


def install():
    """pip builds in the source's folder, so it works on a copy."""
    shutil.copytree(SOURCE, HERE / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                    "--no-build-isolation", "--disable-pip-version-check", "--root-user-action=ignore",
                    "--target", HERE / "site", HERE / "source"], check=True)
    sys.path.insert(0, str(HERE / "site"))
    os.environ["WEIR_RPC_LIBRARY"] = LIBRARY


lacking = [name for name in ("msgpack", "pip", "setuptools", "wheel") if importlib.util.find_spec(name) is None]
if lacking:
    print(f"SKIPPED: {sys.executable} lacks {', '.join(lacking)}: install python3-{lacking[0]}")
    sys.exit(77)
install()
import weir_rpc  # noqa: E402

assert pathlib.Path(weir_rpc.__file__).is_relative_to(HERE), "not the one that pip installed"


def where(transport):
    return f"unix://{HERE}/{os.urandom(4).hex()}" if transport == "unix" else f"{transport}://127.0.0.1:0"


class Shop:
    """examples/rpc/shop.cpp."""

    def __init__(self, transport):
        self.process = subprocess.Popen([SHOP, "serve", where(transport)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("serving at "), line
        self.address = line.split()[-1]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
