#!/usr/bin/env python3
"""What a newcomer does with the sources on a bare Debian 12: README's ways to install, and each guide from its first command.

  from_source_test.py [PAGE ...]

Begins with the tarball of `make source`, `git` and `make`, as README asks. Each way, and each page, has the bare system for itself. Of
this system nothing is there but the compiler's cache, which saves an hour and decides nothing. A page's own commands that build or
install come first, in order; then tests/docs/snippets_test.py pastes the page there. A page that has none is read after README's
`make nic`.

Needs root (debootstrap, chroot) and a package mirror; ends with 77 (skipped) without.
"""
import os
import pathlib
import subprocess
import sys
import unittest

import bare_root

bare_root.own_mounts()

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/docs"))
import page_blocks  # noqa: E402

PAGES = sys.argv[1:] or ["README.md", "docs/verbs.md", "docs/check.md", "docs/faults.md", "docs/fabric.md", "docs/server.md", "docs/sockets.md",
                         "docs/rpc.md", "docs/tensors.md", "docs/nccl.md", "docs/lossless.md"]
BUILDS_OR_INSTALLS = ("make", "apt ", "build/venv/", "python3 -m venv", "cmake --preset", "cmake --build")
# For snippets_test.py itself, which gives each page a network of its own.
OF_THE_TEST = ["iproute2"]
SECONDS = 3600  # for one command; building without a cache is the longest
JOBS = os.environ.get("JOBS", str(os.cpu_count()))

try:
    BARE = bare_root.BareRoot()
except bare_root.NoRoot as why:
    print(f"SKIPPED: {why}")
    sys.exit(77)


def cache():
    done, said = bare_root.quietly("ccache", "-k", "cache_dir")
    return {"ccache": said.strip()} if done else {}


class Newcomer:
    """At a shell in the sources, on a bare system of their own."""

    def __init__(self, name):
        self.mounted = bare_root.Mounted(BARE.path, BARE.folder / name, **cache())
        self.root = self.mounted.root

    def run(self, command, fails=False):
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                     "DEBIAN_FRONTEND": "noninteractive", "JOBS": JOBS, "CCACHE_DIR": "/ccache", "CCACHE_BASEDIR": "/weir",
                     "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
        command = command.replace("apt install", "apt-get -qq -y install --no-install-recommends")
        # Not chroot: whoever is in one makes no user namespaces, of which the hosts of weir fabric are made.
        enter = 'cd "$0" && pivot_root . . && umount -l . && cd /weir && exec bash -c "$1"'
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", enter, self.root, command], env=variables, capture_output=True,
                              text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
        assert (done.returncode != 0) == fails, (command, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout + done.stderr


class FromSource(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(BARE.clear)
        subprocess.run(["make", "-s", "-C", SOURCE, "source"], check=True, stdout=subprocess.DEVNULL)
        tarball, = (SOURCE / "build/release/packages").glob("weir-[0-9.]*.tar.gz")
        (BARE.path / "weir").mkdir()
        subprocess.run(["tar", "-xf", tarball, "-C", BARE.path / "weir", "--strip-components=1"], check=True)
        mounted = bare_root.Mounted(BARE.path)
        try:
            for words in (["update"], ["-y", "install", "--no-install-recommends", "git", "make", "ca-certificates", *OF_THE_TEST]):
                subprocess.run(["chroot", BARE.path, "apt-get", "-qq", *words], check=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        finally:
            mounted.close()

    def newcomer(self, name):
        one = Newcomer(name)
        self.addCleanup(one.mounted.close)
        return one

    def test_make_lists_its_targets(self):
        self.assertIn("make nic", self.newcomer("lists").run("make"))

    def test_nic_is_installed_and_goes_again(self):
        newcomer = self.newcomer("nic")
        before = {path for path in (newcomer.root / "usr/local").rglob("*")}
        newcomer.run("make nic install")
        self.assertIn("weir0", newcomer.run("cd / && weir devices"))
        newcomer.run("make uninstall")
        left = {path for path in (newcomer.root / "usr/local").rglob("*")} - before
        self.assertEqual({str(path) for path in left if "weir" in str(path)}, set())

    def test_all_of_it_is_built_and_packed(self):
        newcomer = self.newcomer("all")
        newcomer.run("make programs install")
        self.assertIn("Usage: weir rpc", newcomer.run("cd / && weir help rpc"))
        made = newcomer.run("make packages")
        for package in ("weir-nic", "weir", "weir-server", "libweir0", "libweir-dev", "python3-weir"):
            self.assertIn(f"/{package}_", made)
        self.assertIn("-x86_64.tar.gz", made)
        newcomer.run("make uninstall && apt install ./build/release/packages/*.deb")
        self.assertIn("weir0", newcomer.run("cd / && /usr/bin/weir devices"))

    def test_wheel_and_site(self):
        newcomer = self.newcomer("wheel")
        newcomer.run("make wheel && python3 -m venv /venv && /venv/bin/pip install --no-deps build/release/packages/weir-*.whl")
        self.assertIn("weir0", newcomer.run("/venv/bin/weir devices"))
        newcomer.run("make site && test -f build/site/docs/verbs.html")


def reads(page):
    def test(self):
        newcomer = self.newcomer(pathlib.Path(page).stem)
        commands = [command for block in page_blocks.blocks((SOURCE / page).read_text(encoding="utf-8")) if "not run" not in block.marks
                    for command in block.commands() if command.startswith(BUILDS_OR_INSTALLS)]
        if not any(command.startswith("make") for command in commands):
            newcomer.run("make nic")
        for command in commands:
            newcomer.run(command)
        newcomer.run(f"python3 -B tests/docs/snippets_test.py build/release . {page}")
    return test


for each in PAGES:
    setattr(FromSource, "test_page_" + pathlib.Path(each).stem.lower().replace("-", "_"), reads(each))

if __name__ == "__main__":
    if len(sys.argv) > 1:
        for name in [name for name in dir(FromSource) if name.startswith("test_") and "page" not in name]:
            delattr(FromSource, name)
    unittest.main(argv=sys.argv[:1], verbosity=2)
