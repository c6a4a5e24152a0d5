"""The files of the tree that the checks look at."""
import subprocess

# What style and length rules apply to.
SOURCES = {".c", ".cpp", ".h", ".hpp", ".def"}


def tree_files(root):
    """Paths relative to root that git knows or would add; without git, all files outside build/."""
    listing = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             capture_output=True)
    if listing.returncode == 0:
        names = [name for name in listing.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith(("build/", ".git/")) and "__pycache__" not in name]
    return sorted(name for name in set(names) if (root / name).is_file())
