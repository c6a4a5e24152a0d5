#!/usr/bin/env python3
"""Line coverage for each folder, from the gcov data of a coverage build.

usage: coverage.py BUILD_DIR [FOLDER ...]     with folders: each file of those
Lines are united over all object files that compiled them; files outside the tree and tests/ do not count.
"""
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def lines_run(build):
    """{file: {line: was it ever run}}"""
    lines = collections.defaultdict(dict)
    data = sorted(str(path) for path in build.rglob("*.gcda"))
    if not data:
        sys.exit(f"no gcov data below {build}: run `make coverage`")
    for start in range(0, len(data), 64):
        done = subprocess.run(["gcov", "--json-format", "--stdout", *data[start:start + 64]], cwd=ROOT, check=True,
                              capture_output=True, text=True)
        for document in done.stdout.splitlines():
            for file in json.loads(document)["files"]:
                path = (build / file["file"]).resolve()
                if not path.is_relative_to(ROOT) or path.is_relative_to(build):
                    continue
                known = lines[str(path.relative_to(ROOT))]
                for line in file["lines"]:
                    known[line["line_number"]] = known.get(line["line_number"], False) or line["count"] > 0
    return lines


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, detailed = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    rows = collections.defaultdict(lambda: [0, 0])
    for name, known in lines_run(build).items():
        folder = name.split("/")[0]
        if folder == "tests" or (detailed and folder not in detailed):
            continue
        row = rows[name if detailed else folder]
        row[0] += sum(known.values())
        row[1] += len(known)
    for name in sorted(rows):
        run, total = rows[name]
        print(f"{name:50} {run:6} of {total:6} lines  {100 * run / max(total, 1):5.1f} %")


if __name__ == "__main__":
    main()
