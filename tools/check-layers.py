#!/usr/bin/env python3
"""Checks that #include lines follow the direction of the layers; the edges are data, in tools/layers.json.

usage: check-layers.py [ROOT]

For every C or C++ source in a layer's folder:
  - "x/..." must name a file of this tree whose folder the layer may include (its own always; tests/ by its own rule);
  - <infiniband/...> and <rdma/...> only where the layer has verbs_headers;
  - headers that do I/O not where the layer says no_io.
A folder with sources that layers.json does not know is an error too. Prints FILE:LINE: what and why; exit status 1.
"""
import json
import pathlib
import re
import sys

from tree_files import SOURCES, tree_files

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
VERBS_HEADERS = ("infiniband/", "rdma/rdma_", "rdma/rsocket", "rdma/ib_")


def allowed(layer, rule, target):
    """May a file of `layer` include `target`, a path relative to the root?"""
    if target.split("/")[0] == layer:
        return True
    return any(target.startswith(edge + "/") or (("/" in edge) and target.startswith(edge))
               for edge in rule["may_include"])


def violations(root, data):
    for name in tree_files(root):
        path = pathlib.PurePosixPath(name)
        if path.suffix not in SOURCES or len(path.parts) < 2:
            continue
        layer = path.parts[0]
        rule = data["layers"].get(layer)
        if rule is None:
            yield name, 1, f"{layer}/ holds sources but tools/layers.json does not know it"
            continue
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                complaint = judge(root, path, layer, rule, data, *match.groups())
                if complaint:
                    yield name, number, complaint


def judge(root, path, layer, rule, data, quoted, angled):
    header = quoted or angled
    if header.startswith(VERBS_HEADERS) and not (root / header).is_file():
        if not rule.get("verbs_headers"):
            return f"{layer}/ may not include <{header}>: only the layers with verbs_headers speak the verbs API"
        return None
    if angled:
        if rule.get("no_io") and any(header == io or header.startswith(io) and not io.endswith(".h")
                                     for io in data["io_headers"]):
            return f"{layer}/ does no I/O, so it may not include <{header}>"
        # <weir/...>-style includes of our own files would slip past the rule for quoted ones
        return f'"{header}" is a file of this tree: include it with quotes' if (root / header).is_file() else None
    if not (root / header).is_file():
        beside = (root / path.parent / header).is_file()
        if beside and layer == "tests":  # a fixture of its own folder
            return None
        if beside:
            return f'name "{header}" from the root of the tree: "{path.parent / header}"'
        return f'"{header}" is not a file of this tree; a system header goes in <>'
    if not allowed(layer, rule, header):
        may = ", ".join(rule["may_include"]) or "nothing but itself"
        return f'{layer}/ may not include "{header}" (it may include: {may})'
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    data = json.loads((root / "tools/layers.json").read_text())
    found = list(violations(root, data))
    for name, number, complaint in found:
        print(f"{name}:{number}: {complaint}")
    print("layers: ok" if not found else f"layers: {len(found)} includes against the direction")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
