"""The ways to use an installed Weir, tried as a newcomer would: by prefix_test.py, wheel_test.py, tarball_test.py,
unpacked_test.py and packages_test.py.

An `Installed` runs commands where Weir is: in this system with another prefix, or in another root.
"""
import os
import pathlib
import socket
import subprocess

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
SECONDS = 240  # for one command; compiling is the longest


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def pack(build, folder, *arguments):
    done = subprocess.run(["cpack", "--config", f"{build}/CPackConfig.cmake", "-B", folder, *arguments], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def make_packages(build, folder):
    """The path of each Debian package, by name."""
    pack(build, folder, "-G", "DEB", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
    return {path.name.split("_")[0]: path for path in sorted(pathlib.Path(folder).glob("*.deb"))}


def make_tarball(build, folder):
    """The path of the tarball."""
    pack(build, folder, "-G", "TGZ")
    tarball, = pathlib.Path(folder).glob("*.tar.gz")
    return tarball


def make_wheel(build, folder):
    """The path of the Python wheel."""
    maker = pathlib.Path(__file__).resolve().parents[2] / "tools/make-wheel.py"
    done = subprocess.run(["/usr/bin/python3", "-B", maker, build, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return pathlib.Path(done.stdout.strip())


class Installed:
    """`prefix`: as the commands see it. `root`: the commands run there, by chroot; None: in this system."""

    def __init__(self, prefix, root=None):
        self.prefix, self.root = prefix, root

    def bare_environment(self):
        variables = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": f"{self.prefix}/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "WEIR_RPC_LIBRARY", "WEIR_TENSOR_LIBRARY", "WEIR_RDMA_PROVIDER"):
            variables.pop(name, None)
        return variables

    def environment(self):
        variables = self.bare_environment()
        if self.prefix != "/usr":
            python, = (pathlib.Path(self.prefix) / "lib").glob("python3*/dist-packages")
            variables |= {"LD_LIBRARY_PATH": f"{self.prefix}/lib", "PYTHONPATH": str(python),
                          "PKG_CONFIG_PATH": f"{self.prefix}/lib/pkgconfig", "CMAKE_PREFIX_PATH": self.prefix}
        return variables

    def words(self, words):
        return ["chroot", self.root, *map(str, words)] if self.root else list(map(str, words))

    def run(self, *words, fails=False):
        done = subprocess.run(self.words(words), env=self.environment(), capture_output=True, text=True, timeout=SECONDS,
                              cwd="/")
        assert (done.returncode != 0) == fails, (words, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout + done.stderr

    def shell(self, script):
        return self.run("sh", "-ec", script)

    def start(self, *words):
        return subprocess.Popen(self.words(words), env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True, cwd="/")


class VirtualEnvironment(Installed):
    """A Python virtual environment, whose programs find the rest by where they are."""

    environment = Installed.bare_environment


def tries_find_package(test, installed, programs, scratch):
    """With CMake: weir::rpc and weir::rdma."""
    installed.shell(f"cmake -G Ninja -S {programs} -B {scratch} -DCMAKE_BUILD_TYPE=Debug && cmake --build {scratch} -j2")
    calls(test, installed, f"{scratch}/rpc")
    test.assertIn("hello, stranger\n", installed.run("weir", "run", "--", f"{scratch}/rdma"))


def tries_pkg_config(test, installed, programs, scratch):
    installed.shell(f"mkdir -p {scratch} && "
                    f"g++ -std=c++23 {programs}/rpc.cpp $(pkg-config --cflags --libs weir-rpc-cpp) -o {scratch}/rpc_by_pkg")
    calls(test, installed, f"{scratch}/rpc_by_pkg")
    include = f"{installed.prefix}/include"
    said = installed.run("g++", "-std=c++23", "-E", "-o", "/dev/null", f"-I{include}", f"-I{include}/weir", f"{programs}/rpc.cpp",
                         fails=True)
    test.assertIn("pkg-config --cflags weir-rpc-cpp", said)  # how to get what is missing


def calls(test, installed, program):
    test.assertIn("hello, stranger\n", installed.run(program, "tcp://127.0.0.1:0"))
    test.assertIn("hello, stranger\n", installed.run("weir", "run", "--", program, "rdma://127.0.0.1:0"))


def tries_c_and_python(test, installed, programs, scratch):
    installed.shell(f"mkdir -p {scratch} && "
                    f"gcc {programs}/rpc_c.c $(pkg-config --cflags --libs weir-rpc) -o {scratch}/rpc_c")
    for address in ("tcp://127.0.0.1:0", "rdma://127.0.0.1:0"):
        served = installed.start("/usr/bin/python3", f"{programs}/served.py", address)
        try:
            where = served.stdout.readline().strip()
            test.assertTrue(where.startswith(address[:-1]), where)
            test.assertIn(" 5\n", installed.run(f"{scratch}/rpc_c", where))
            test.assertIn("5\n", installed.run("weir", "rpc", "call", where, "add", "[2, 3]"))
        finally:
            served.communicate(timeout=30)
        test.assertEqual(served.returncode, 0)


def tries_the_server(test, installed, configuration, data):
    """`data`: a folder, as seen from outside the root."""
    data.mkdir()
    inside = "/" / data.relative_to(installed.root) if installed.root else data
    for command, answer in ((["SET", "kept", "yes"], "OK\n"), (["GET", "kept"], "yes\n")):
        server = installed.start("weir-server", configuration, "--port", "0", "--unixsocket", inside / "s", "--dir", inside)
        try:
            said = []
            for line in server.stdout:
                said.append(line)
                if "Ready to accept" in line:
                    break
            test.assertIsNone(server.poll(), "".join(said))
            test.assertEqual(installed.run("weir-cli", "-s", inside / "s", *command), answer)
        finally:
            server.terminate()
            server.communicate()
        test.assertEqual(server.returncode, 0)


def tries_the_modules(test, installed, python, program):
    """With Python; `program` is by_wheel.py."""
    printed = installed.run(python, program)
    test.assertIn("sum 5\n", printed)
    test.assertIn("bytes 16 rdma\n", printed)


def tries_the_nic(test, installed):
    test.assertRegex(installed.run("weir", "version"), r"^weir [0-9.]+\n$")
    test.assertIn('"weir0"', installed.run("weir", "devices", "--json"))
    test.assertIn("PROGRAM", installed.run("weir", "sockets"))
    test.assertIn("COMMAND", installed.run("weir", "stat", "--once"))
    test.assertEqual(installed.run("weir", "run", "--sockets", "--share-memory", "--", "echo", "runs"), "runs\n")
