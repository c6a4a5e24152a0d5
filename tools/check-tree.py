#!/usr/bin/env python3
"""Checks what a reader of the tree relies on, file by file.

usage: check-tree.py [ROOT]

  - every top folder, and every folder below a layer that holds sources, has a README.md that says something;
  - no source is longer than 600 lines (from 400 on, a warning);
  - no unfinished business (the words in FORBIDDEN) and no path of one machine in a committed file;
  - no source reads the clock of the system but those that wall_clock.py names, with the reason;
  - classes in more than two source files or with more than 25 data members, headers' names that five folders have, and folders of
    more than 40 sources are no more, and no worse, than tools/shrinking.json says (shrinking.py);
  - nothing binary or big outside a test corpus, text files end with a newline.
Prints FILE:LINE: what and why; exit status 1 when something is wrong; warnings alone do not fail.
"""
import pathlib
import re
import sys

import class_shapes
import shrinking
import tree_files
import wall_clock

SOURCES = tree_files.SOURCES | {".py", ".sh", ".cmake"}
LINES_WARN, LINES_FAIL = 400, 600
BYTES_FAIL = 512 * 1024
README_LEAST = 80  # characters

# Written with a bracket so that this file does not complain of itself.
FORBIDDEN = [
    (re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"), "unfinished business: finish it, or say plainly what is missing"),
    (re.compile(r"(?<![\w.])/(wor[k]|roo[t]|hom[e]/\w+)/"), "a path of one machine"),
    (re.compile(r"deb\.debian[.]org|archive\.ubuntu[.]com|registry\.npmjs[.]org"), "a package host"),
    (re.compile(r"^(<{7}|>{7}) "), "a merge conflict"),
]
FREE_FORM = ("tests/fuzz/corpus/", "LICENSE")


def readme_complaints(root, names):
    folders = {str(pathlib.PurePosixPath(name).parent) for name in names
               if pathlib.PurePosixPath(name).suffix in SOURCES and not name.startswith(FREE_FORM)}
    folders = {folder for folder in folders if not folder.startswith("tests/")}  # tests/README.md tells of each
    folders |= {name.split("/")[0] for name in names if "/" in name and not name.startswith(".")}
    for folder in sorted(folders - {"."}):
        readme = root / folder / "README.md"
        if f"{folder}/README.md" not in names:
            yield f"{folder}/README.md", 1, "missing: say what lives here and where to begin reading"
        elif len(readme.read_text(encoding="utf-8").strip()) < README_LEAST:
            yield f"{folder}/README.md", 1, f"says next to nothing (under {README_LEAST} characters)"


def file_complaints(root, name):
    path = root / name
    data = path.read_bytes()
    if name.startswith(FREE_FORM):
        return
    if len(data) > BYTES_FAIL:
        yield name, 1, f"{len(data)} bytes: too big to commit"
    if b"\0" in data:
        return
    text = data.decode("utf-8", errors="replace")
    lines = text.splitlines()
    if data and not data.endswith(b"\n"):
        yield name, len(lines), "no newline at the end"
    if path.suffix in SOURCES and len(lines) > LINES_FAIL:
        yield name, len(lines), f"{len(lines)} lines; {LINES_FAIL} is the limit: a file is one mechanism"
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN:
            found = pattern.search(line)
            if found:
                yield name, number, f"'{found.group(0).strip()}': {why}"


def warnings(root, names):
    for name in names:
        if pathlib.PurePosixPath(name).suffix in SOURCES and not name.startswith(FREE_FORM):
            count = (root / name).read_bytes().count(b"\n")
            if LINES_WARN <= count <= LINES_FAIL:
                yield f"{name}: {count} lines, warned from {LINES_WARN} on"
    yield from (said for _, _, said in class_shapes.wide_classes(root, names))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    names = tree_files.tree_files(root)
    found = list(readme_complaints(root, set(names)))
    for name in names:
        found += file_complaints(root, name)
    found += shrinking.complaints(root, names)
    found += wall_clock.complaints(root, names)
    for name, number, complaint in found:
        print(f"{name}:{number}: {complaint}")
    for warning in warnings(root, names):
        print(f"warning: {warning}")
    print("tree: ok" if not found else f"tree: {len(found)} things wrong")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
