#!/usr/bin/env python3
"""Checks that #include lines follow the direction of the layers; the edges are data, in tools/layers.json.

usage: check-layers.py [ROOT]

For every C or C++ source in a layer's folder:
  - "x/..." must name a file of this tree whose folder the layer may include (its own always; tests/ by its own rule);
  - <infiniband/...> and <rdma/...> only where the layer has verbs_headers;
  - headers that do I/O not where the layer says no_io;
  - a folder below a layer ("room") that stands in layers.json under rooms includes of its layer only itself, the layer's own
    files and the folders or files that stand there;
  - the rooms of a layer that stands in layers.json under orders include only rooms before them in that list, so that no rooms include
    each other in a circle. Arrows that still run back up stand under known_back_arrows: none may be added, and one that is gone
    is to be taken out;
  - units (a source and its header) do not include each other in a circle. Those that still do stand in layers.json under
    known_circles; no unit may be added there, and one that has left its circle is to be taken out.
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


def room_complaint(path, layer, header, rooms):
    """Below a layer with rooms: does a file of one room include one of a room that is not below it?"""
    parts = pathlib.PurePosixPath(header).parts
    room = path.parts[1] if len(path.parts) > 2 else None
    if parts[0] != layer or len(parts) < 3 or room not in rooms or parts[1] == room:
        return None
    inside = "/".join(parts[1:])
    if any(inside.startswith(edge + "/") or inside.startswith(edge + ".") for edge in rooms[room]):
        return None
    may = ", ".join(rooms[room]) or "no other room"
    return f'{layer}/{room}/ may not include "{header}" (of {layer}/ it may include: {may})'


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
        if beside and layer in ("tests", "examples"):  # a fixture of its own folder; a file that is copied together with it
            return None
        if beside:
            return f'name "{header}" from the root of the tree: "{path.parent / header}"'
        return f'"{header}" is not a file of this tree; a system header goes in <>'
    if not allowed(layer, rule, header):
        may = ", ".join(rule["may_include"]) or "nothing but itself"
        return f'{layer}/ may not include "{header}" (it may include: {may})'
    return room_complaint(path, layer, header, data.get("rooms", {}).get(layer, {}))


def room_of(name):
    """(layer, room) of a file; the room of a layer's own files is empty"""
    parts = name.split("/")
    return parts[0], parts[1] if len(parts) > 2 else ""


def arrows_between_rooms(root, names, layers):
    """{(layer, room, room): the first include of the one by the other}"""
    found, known = {}, set(names)
    for name in names:
        layer, room = room_of(name)
        if layer not in layers or not room:
            continue
        for number, line in enumerate((root / name).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1) in known and room_of(match.group(1))[0] == layer:
                other = room_of(match.group(1))[1]
                if other not in ("", room):
                    found.setdefault((layer, room, other), (name, number))
    return found


def order_complaints(root, data):
    orders = data.get("orders", {})
    names = [name for name in tree_files(root) if pathlib.PurePosixPath(name).suffix in SOURCES]
    arrows = arrows_between_rooms(root, names, orders)
    known = {(layer, *arrow.split(" -> ")) for layer, listed in data.get("known_back_arrows", {}).items() for arrow in listed}
    for (layer, room, other), (name, number) in sorted(arrows.items()):
        order = orders[layer]
        if room not in order or other not in order:
            yield f"{name}:{number}: {layer}/{other if room in order else room}/ stands in no order of rooms: add it to orders in tools/layers.json"
        elif order.index(other) > order.index(room) and (layer, room, other) not in known:
            yield (f"{name}:{number}: {layer}/{room}/ is below {layer}/{other}/ (orders in tools/layers.json): put what both need into a "
                   "room below them")
    layers_here = {room_of(name)[0] for name in names}
    for layer, room, other in sorted(known):
        if layer in layers_here and (layer, room, other) not in arrows:
            yield f"{layer}/{room} -> {other} runs back up no more: take it out of known_back_arrows in tools/layers.json"


def unit_of(name):
    """a source and its header are one unit"""
    return str(pathlib.PurePosixPath(name).with_suffix(""))


def units_by_include(root, data):
    """each unit's own includes of other units; tests apart, which nobody includes"""
    names = [name for name in tree_files(root)
             if pathlib.PurePosixPath(name).suffix in SOURCES and name.split("/")[0] in data["layers"]
             and not name.startswith("tests/")]
    known = set(names)
    units = {unit_of(name): set() for name in names}
    for name in names:
        for line in (root / name).read_text(encoding="utf-8", errors="replace").splitlines():
            match = INCLUDE.match(line)
            if match and match.group(1) in known and unit_of(match.group(1)) != unit_of(name):
                units[unit_of(name)].add(unit_of(match.group(1)))
    return units


def circles(units):
    """the sets of units of which each reaches each other by includes"""
    def reached(start, edges):
        seen, left = set(), [start]
        while left:
            for other in edges.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    backwards = {}
    for unit, others in units.items():
        for other in others:
            backwards.setdefault(other, set()).add(unit)
    found, done = [], set()
    for unit in sorted(units):
        if unit in done:
            continue
        circle = reached(unit, units) & reached(unit, backwards)
        done |= circle
        if unit in circle:
            found.append(circle)
    return found


def circle_complaints(units, known):
    found = circles(units)
    for circle in found:
        if not any(circle <= set(one) for one in known):
            closest = max((set(one) for one in known), key=lambda one: len(one & circle), default=set())
            added = sorted(circle - closest if circle & closest else circle)
            yield (f"units include each other in a circle, {', '.join(sorted(circle))}; new in it: {', '.join(added)}. Put what "
                   "both need into a unit of its own")
    still = set().union(*found) if found else set()
    for one in known:
        whole = all(unit in units for unit in one)  # a tree of a test has few files
        for unit in one:
            if whole and unit not in still:
                yield f"{unit} includes nobody in a circle any more: take it out of known_circles in tools/layers.json"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    data = json.loads((root / "tools/layers.json").read_text())
    found = list(violations(root, data))
    for name, number, complaint in found:
        print(f"{name}:{number}: {complaint}")
    units = units_by_include(root, data)
    complaints = list(circle_complaints(units, data["known_circles"]))
    complaints += order_complaints(root, data)
    for complaint in complaints:
        print(complaint)
    if found or complaints:
        print(f"layers: {len(found)} includes against the direction, {len(complaints)} complaints about circles and arrows that run back up")
        sys.exit(1)
    sizes = [len(circle) for circle in circles(units)]
    back = sum(len(listed) for listed in data.get("known_back_arrows", {}).values())
    print(f"layers: ok; {len(sizes)} circles left, the largest of {max(sizes, default=0)} units; {back} arrows between rooms run back up")


if __name__ == "__main__":
    main()
