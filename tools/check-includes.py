#!/usr/bin/env python3
"""Checks that a file includes what it names, without compiling it: unity builds and precompiled headers hide what is missing.

usage: check-includes.py [ROOT]

For every C++ source outside of tests/:
  - a type that one header of this tree alone defines must come from there: the file reaches the header by its includes, over as
    many others as it likes, or declares the type itself;
  - a name of the standard library that STANDARD lists must be reached in the same way.
This finds less than a compiler does (functions, types of a common name), and takes seconds; the preset dev compiles each file by
itself. Prints FILE:LINE: what and why; exit status 1.
"""
import collections
import functools
import pathlib
import re
import sys

from tree_files import SOURCES, tree_files

QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
ANGLED = re.compile(r"^\s*#\s*include\s+<([^>]+)>", re.M)
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
# At the beginning of a line: clang-format indents what is nested.
DEFINED = re.compile(r"^(?:template <.*>\s+)?(?:class|struct|union|enum class|enum|concept|using)\s+(?:\[\[\w+\]\]\s+|alignas\(\w+\)\s+)?"
                     r"([A-Z]\w*[a-z]\w*)\b(?!\s*;|::)", re.M)
DECLARED = re.compile(r"\b(?:class|struct|union|enum class|enum|using|auto)\s+(?:\[\[\w+\]\]\s+|alignas\(\w+\)\s+)?(?:\w+::)*(\w+)\b"
                      r"|template (<[^;{}]*>)")
NAMESPACE = re.compile(r"^namespace (weir[\w:]*)", re.M)
NAME = re.compile(r"(?<![\w.>:])(?:(\w+)::)*([A-Z]\w*[a-z]\w*)\b|\bstd::((?:chrono|filesystem|ranges|numbers)::\w+|\w+)")

# What is named often, and the headers of which one has to be reached.
STANDARD = {name: headers.split() for headers, names in {
    "algorithm": "sort stable_sort find_if find_if_not all_of any_of none_of count_if copy_if transform remove_if lower_bound upper_bound "
                 "max_element min_element clamp nth_element partial_sort unique ranges::sort ranges::find ranges::find_if "
                 "ranges::all_of ranges::any_of ranges::none_of ranges::copy ranges::max_element ranges::min_element",
    "array": "to_array",
    "atomic": "atomic atomic_ref atomic_thread_fence",
    "barrier": "barrier",
    "bit": "bit_cast bit_ceil bit_width countl_zero countr_zero popcount has_single_bit endian",
    "charconv": "from_chars to_chars",
    "cmath": "sqrt pow log2 isnan isinf isfinite lround llround",
    "condition_variable": "condition_variable",
    "cstdlib": "getenv strtoll strtoull strtod",
    "cstdio": "fputs fprintf puts snprintf perror fwrite fopen",
    "deque": "deque",
    "expected": "expected unexpected",
    "filesystem": "filesystem::path filesystem::exists",
    "fstream": "ifstream ofstream",
    "functional": "function reference_wrapper",
    "future": "future promise",
    "iostream": "cout cerr cin",
    "latch": "latch",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared enable_shared_from_this",
    "mutex": "mutex lock_guard scoped_lock unique_lock",
    "numeric": "accumulate iota gcd lcm reduce",
    "optional": "optional nullopt",
    "random": "mt19937 mt19937_64 uniform_int_distribution random_device",
    "set": "set multiset",
    "span": "span as_bytes as_writable_bytes",
    "sstream": "ostringstream istringstream stringstream",
    "thread": "thread jthread this_thread",
    "tuple": "tuple",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "variant": "variant visit holds_alternative get_if",
    "vector": "vector",
}.items() for name in names.split()}


class Tree:
    def __init__(self, root):
        self.root = root
        self.names = [name for name in tree_files(root) if pathlib.PurePosixPath(name).suffix in SOURCES and
                      not name.startswith("tests/")]
        self.known = set(self.names)
        self.text = {name: NOISE.sub(lambda m: "\n" * m[0].count("\n"), source) for name, source in self.sources()}
        self.namespaces = {part for text in self.text.values() for found in NAMESPACE.findall(text) for part in found.split("::")}
        homes = collections.defaultdict(set)
        for name, text in self.text.items():
            for defined in DEFINED.findall(text):
                homes[defined].add(name)
        self.home = {defined: where.pop() for defined, where in homes.items() if len(where) == 1}
        self.home = {defined: where for defined, where in self.home.items() if where.endswith(".hpp")}

    def sources(self):
        self.quoted, self.angled = {}, {}
        for name in self.names:
            source = (self.root / name).read_text(encoding="utf-8", errors="replace")
            beside = name.rpartition("/")[0]
            places = [(header, f"{beside}/{header}") for header in QUOTED.findall(source)]
            self.quoted[name] = [place for header in places for place in header if place in self.known]
            self.angled[name] = set(ANGLED.findall(source))
            yield name, source

    @functools.cache
    def reached(self, name):
        """The files of this tree that one includes, itself too."""
        seen, rest = {name}, [name]
        while rest:
            for header in self.quoted[rest.pop()]:
                if header not in seen:
                    seen.add(header)
                    rest.append(header)
        return seen

    @functools.cache
    def declared(self, name):
        found = set()
        for defined, template in DECLARED.findall(self.text[name]):
            found.update(re.findall(r"\w+", template) if template else [defined])
        return found

    def complaints(self, name):
        files = self.reached(name)
        declared = set().union(*map(self.declared, files))
        angled = set().union(*(self.angled[file] for file in files))
        said = set()
        for number, line in enumerate(self.text[name].split("\n"), 1):
            for qualifier, ours, standard in NAME.findall(line):
                home = self.home.get(ours)
                near = home and home.split("/")[0] == name.split("/")[0]  # else it is somebody else's, or said with its namespace
                home = home if qualifier in self.namespaces or (near and not qualifier) else None
                if home and home not in files and ours not in declared and ours not in said:
                    said.add(ours)
                    yield number, f'{ours} is of "{home}", which no include leads to'
                headers = STANDARD.get(standard)
                if headers and not angled & set(headers) and standard not in said:
                    said.add(standard)
                    yield number, f"std::{standard} is of <{'> or <'.join(headers)}>, which no include of this tree leads to"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    tree = Tree(root)
    found = 0
    for name in tree.names:
        for number, complaint in tree.complaints(name):
            print(f"{name}:{number}: {complaint}")
            found += 1
    print(f"includes: {len(tree.names)} files, {found} complaints")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
