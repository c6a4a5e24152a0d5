"""What was found good is not looked at again until something that it depends on changes, also from another checkout.

A finding is an empty file named by the digest of all that it depends on, in a folder of its kind below $WEIR_CACHE, else
$XDG_CACHE_HOME/weir, else ~/.cache/weir. What nobody has asked for in a month is forgotten. Several processes may use it.
"""
import fnmatch
import hashlib
import os
import pathlib
import time

from tree_files import tree_files

KEPT_S = 30 * 24 * 3600


def cache_folder():
    named = os.environ.get("WEIR_CACHE")
    if named:
        return pathlib.Path(named)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weir"


class Remembered:
    def __init__(self, kind):
        self.folder = cache_folder() / kind

    def good(self, digest):
        try:
            os.utime(self.folder / digest)
            return True
        except OSError:
            return False

    def remember(self, digest):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / digest).touch()

    def forget_old(self):
        for entry in self.folder.glob("*"):
            try:
                if time.time() - entry.stat().st_mtime > KEPT_S:
                    entry.unlink()
            except FileNotFoundError:
                pass  # another run has forgotten it


def names(one, name):
    """Whether the input `one` (a file, a folder, or a pattern of one folder's files as rdma/*.hpp) names that file."""
    folder, _, pattern = one.rpartition("/")
    if "*" in pattern:
        return name.rpartition("/")[0] == folder and fnmatch.fnmatchcase(name.rpartition("/")[2], pattern)
    return name == one or name.startswith(one + "/")


def digest_of_files(root, inputs, *words):
    """Of the words, and of every file of the tree that an input names. An input that names no file is an error."""
    digest = hashlib.sha256("\0".join(words).encode())
    files = tree_files(root)
    for one in inputs:
        named = [name for name in files if names(one, name)]
        if not named:
            raise ValueError(f"{one} names no file of the tree")
        for name in named:
            digest.update(name.encode() + b"\0" + hashlib.sha256((root / name).read_bytes()).digest())
    return digest.hexdigest()
