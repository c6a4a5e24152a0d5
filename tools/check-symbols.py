#!/usr/bin/env python3
"""Checks that a drop-in library exports every versioned symbol that programs bind to.

usage: check-symbols.py TABLE LIBRARY...

TABLE holds name@VERSION lines (tests/golden/verbs-symbols.txt). IBVERBS_* symbols are wanted of the library whose
name starts with libibverbs, RDMACM_* of librdmacm. A symbol counts when it is defined under that exact version, as
default (@@) or not (@): programs that were linked long ago find both. Exit status 1 when one is missing.
"""
import pathlib
import re
import subprocess
import sys

# readelf --dyn-syms -W: "  12: 0000000000001139    11 FUNC    GLOBAL DEFAULT   15 name@@VERSION"
SYMBOL = re.compile(r"^\s*\d+:\s+[0-9a-f]+\s+\S+\s+(?:FUNC|OBJECT|IFUNC|NOTYPE)\s+(?:GLOBAL|WEAK)\s+\S+\s+(\S+)\s+"
                    r"([^\s@]+)@@?(\S+)")


def wanted(table):
    lines = (line.split("#")[0].strip() for line in pathlib.Path(table).read_text().splitlines())
    return {line for line in lines if line}


def exported(library):
    text = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout
    found = set()
    for line in text.splitlines():
        match = SYMBOL.match(line)
        if match and match.group(1) not in ("UND", "ABS"):
            found.add(f"{match.group(2)}@{match.group(3)}")
    return found


def belongs_to(symbol, library):
    return pathlib.Path(library).name.startswith("libibverbs" if "@IBVERBS_" in symbol else "librdmacm")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    table, libraries = wanted(sys.argv[1]), sys.argv[2:]
    if not table:
        sys.exit(f"{sys.argv[1]} names no symbol")
    missing = 0
    for library in libraries:
        mine = {symbol for symbol in table if belongs_to(symbol, library)}
        lacking = sorted(mine - exported(library))
        for symbol in lacking:
            print(f"{library}: lacks {symbol}")
        print(f"{library}: {len(mine) - len(lacking)} of {len(mine)} symbols")
        missing += len(lacking)
        if not mine:
            sys.exit(f"{sys.argv[1]} names no symbol for {library}")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
