"""What is still worse than a rule of the tree, as data in tools/shrinking.json: each list may only get shorter.

  classes   a class in more than two source files, or with more than 25 data members (class_shapes.py), and how many
  names     a header's name that more than four folders have, and how many: a fifth options.hpp says nothing
  folders   a folder that holds more than 40 sources itself, without rooms, and how many

  exempt    classes that grow with a list that others fix (settings, a packet's fields), and which list

For check-tree.py. `shrinking.py --write` takes out what has become better; it adds nothing.
"""
import collections
import json
import pathlib
import sys

import class_shapes
from tree_files import SOURCES, tree_files

SAME_NAME_MOST, FLAT_MOST = 4, 40
RULES = {"classes": "cut the class into parts with a state of their own", "names": "say in the name what it is for",
         "folders": "a folder is a sentence: put what belongs together into a room"}


def product(names):
    return [name for name in names if pathlib.PurePosixPath(name).suffix in SOURCES and "/" in name
            and not name.startswith(("tests/", "bench/", "examples/"))]


def measured(root, names):
    """{list: {what: how much}}, of all that is beyond its rule now."""
    ours = product(names)
    same = collections.Counter(pathlib.PurePosixPath(name).name for name in ours if name.endswith(".hpp"))
    flat = collections.Counter(str(pathlib.PurePosixPath(name).parent) for name in ours)
    exempt = read(root).get("exempt", {})
    return {"classes": {what: count for what, count, _ in class_shapes.wide_classes(root, names) if what not in exempt},
            "names": {name: count for name, count in same.items() if count > SAME_NAME_MOST},
            "folders": {folder: count for folder, count in flat.items() if count > FLAT_MOST}}


def read(root):
    path = root / "tools/shrinking.json"
    return json.loads(path.read_text()) if path.exists() else {}


def complaints(root, names):
    known, now = read(root), measured(root, names)
    for kind, found in now.items():
        for what, count in sorted(found.items()):
            before = known.get(kind, {}).get(what, 0)
            if count > before:
                yield "tools/shrinking.json", 1, f"{kind}: {what} is {count} now and was {before}: {RULES[kind]}"
    for kind, found in known.items():
        for what, before in sorted(found.items()):
            if kind in now and now[kind].get(what, 0) < before:
                yield "tools/shrinking.json", 1, f"{kind}: {what} has become better than {before}: tools/shrinking.py --write"


def write(root):
    known, now = read(root), measured(root, tree_files(root))
    less = {"exempt": known.get("exempt", {})}
    less |= {kind: {what: min(count, known[kind][what]) for what, count in sorted(found.items()) if what in known.get(kind, {})}
            for kind, found in now.items()}
    (root / "tools/shrinking.json").write_text(json.dumps(less, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write(pathlib.Path(__file__).resolve().parent.parent)
