"""A bare Debian below a temporary folder, made by debootstrap: what a newcomer's system is.

Needs root and a package mirror. `own_mounts()` puts the calling program into a mount namespace of its own, so that nothing stays
mounted however it ends.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


class NoRoot(Exception):
    """Why there can be none."""


def own_mounts():
    if os.geteuid() != 0:
        print("SKIPPED: needs root, for debootstrap and chroot")
        sys.exit(77)
    if "WEIR_OWN_MOUNTS" not in os.environ:
        os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv], {**os.environ, "WEIR_OWN_MOUNTS": "1"})


def quietly(*words, **more):
    """Whether it succeeded, and what it printed."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **more)
    return done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def mirror():
    """This system's own mirror as a list, empty if it has none."""
    done, said = quietly("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm")
    return said.split()[:1] if done else []


class BareRoot:
    """`suite`: of Debian. `path`: the root."""

    def __init__(self, suite="bookworm"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-bare-"))
        self.path = self.folder / "root"
        if not shutil.which("debootstrap"):
            self.refuse("debootstrap is not installed")
        done, said = quietly("debootstrap", "--variant=minbase", suite, self.path, *mirror())
        if not done:
            self.refuse("debootstrap made no root: " + said.strip()[-300:])
        for name in ("etc/resolv.conf", "etc/hosts"):
            shutil.copy(f"/{name}", self.path / name)
        policy = self.path / "usr/sbin/policy-rc.d"  # no service is started
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)

    def refuse(self, why):
        shutil.rmtree(self.folder, ignore_errors=True)
        raise NoRoot(why)

    def clear(self):
        shutil.rmtree(self.folder)


class Mounted:
    """The root with /proc, /dev and /sys, and with folders of this system; `over` keeps what is written apart, for a fresh look at
    the same root again."""

    def __init__(self, root, over=None, **bound):
        self.root = root
        if over is not None:
            for part in ("upper", "work", "seen"):
                (over / part).mkdir(parents=True)
            subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={root},upperdir={over}/upper,workdir={over}/work",
                            over / "seen"], check=True)
            self.root = over / "seen"
        self.over = over
        self.mounts = []
        for name, place in {"proc": "/proc", "dev": "/dev", "sys": "/sys", **bound}.items():
            (self.root / name).mkdir(exist_ok=True)
            subprocess.run(["mount", "--rbind", place, self.root / name], check=True)
            self.mounts.append(self.root / name)

    def close(self):
        for place in reversed(self.mounts):
            subprocess.run(["umount", "-R", "-l", place], check=True)
        if self.over is not None:
            subprocess.run(["umount", "-l", self.root], check=True)
            shutil.rmtree(self.over)
