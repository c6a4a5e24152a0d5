"""How classes are cut: over how many source files, and with how many data members. For check-tree.py.

Reads what clang-format has written, by its indentation: a definition of a member function begins in the first column and
names its class; a data member stands two columns inside its class.
"""
import collections
import pathlib
import re

SOURCES_MOST, MEMBERS_MOST = 2, 25

DEFINITION = re.compile(r"^(?:[\w:<>,&*\[\]]+\s+)*[&*]*((?:[A-Z]\w*::)+)~?\w[\w=+!<>()\[\]]*\s*\(")
CLASS = re.compile(r"^(?:class|struct)\s+(?:alignas\(\w+\)\s+)?(\w+)\b[^;]*\{$")
NO_MEMBER = ("using ", "friend ", "static ", "enum ", "struct ", "class ", "return ", "template ", "typedef ", "public", "private",
             "protected", "//", "explicit ", "virtual ", "~", "}")


def sources_of_classes(root, names):
    """(folder, class): the source files that define its member functions"""
    spread = collections.defaultdict(set)
    for name in names:
        for line in (root / name).read_text(encoding="utf-8", errors="replace").splitlines():
            found = DEFINITION.match(line)
            if found:
                spread[str(pathlib.PurePosixPath(name).parts[0]), found.group(1).split("::")[0]].add(name)
    return spread


def data_members(lines):
    """of the class whose body these lines are"""
    count = 0
    for line in lines:
        text = line[2:]
        if not line.startswith("  ") or text.startswith((" ", *NO_MEMBER)) or not text.split("//")[0].rstrip().endswith(";"):
            continue
        declared = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", re.split(r"//|=|\{", text)[0]))
        if "(" in declared or ")" in declared:  # a function
            continue
        without_values = re.sub(r"\{[^{}]*\}|=[^,;]*", "", re.sub(r"<[^<>]*>", "", text.split("//")[0]))
        count += without_values.count(",") + 1
    return count


def members_of_classes(root, names):
    """(file, class, how many)"""
    for name in names:
        inside, body = None, []
        for line in (root / name).read_text(encoding="utf-8", errors="replace").splitlines():
            if inside is None:
                found = CLASS.match(line)
                inside, body = (found.group(1), []) if found else (None, [])
            elif line.startswith("}"):
                yield name, inside, data_members(body)
                inside = None
            else:
                body.append(line)


def wide_classes(root, names):
    """(what, how many, what to say) of each class that is cut over too many files or holds too much"""
    ours = [name for name in names if not name.startswith(("tests/", "bench/", "examples/"))]
    spread = sources_of_classes(root, [name for name in ours if name.endswith(".cpp")])
    for (folder, of), files in sorted(spread.items()):
        below = {str(pathlib.PurePosixPath(name).parent) for name in files}
        if len(files) > SOURCES_MOST and len(below) == 1:  # in several rooms it is several classes with one name
            yield (f"sources of {min(below)} {of}", len(files),
                   f"{min(below)}: class {of} is cut over {len(files)} source files, {SOURCES_MOST} is the goal")
    for name, of, count in members_of_classes(root, [name for name in ours if name.endswith(".hpp")]):
        if count > MEMBERS_MOST:
            yield f"members of {name} {of}", count, f"{name}: {of} has {count} data members, {MEMBERS_MOST} is the goal"
