#!/usr/bin/env python3
"""libweir_rpc exports what weir_rpc.h declares, under version nodes, and nothing else.

usage: symbols_test.py LIBRARY HEADER
"""
import pathlib
import re
import subprocess
import sys

library, header = sys.argv[1:3]
declared = set(re.findall(r"^WEIR_RPC_API [^;]*?\b(weir_rpc_\w+)\(", pathlib.Path(header).read_text(), re.MULTILINE))
assert len(declared) > 30, f"found only {sorted(declared)} in {header}"

listing = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout
exported = {}
for line in listing.splitlines():
    fields = line.split()
    if len(fields) == 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] not in ("UND", "ABS"):
        name, _, version = fields[7].partition("@@")
        exported[name] = version
assert set(exported) == declared, f"exported but not declared, or the reverse: {set(exported) ^ declared}"
unversioned = [name for name, version in exported.items() if not version.startswith("WEIR_RPC_")]
assert not unversioned, f"without a version node: {unversioned}"

dynamic = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
assert "[libweir_rpc.so.0]" in dynamic, "its soname is not libweir_rpc.so.0"
assert "libibverbs" not in dynamic, "it is linked to libibverbs, which it should choose when it runs"
print(len(exported), "symbols")
