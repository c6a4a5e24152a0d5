#!/usr/bin/env python3
"""A hub in Python for a peer in any language: publishes arrays, runs the given command with the hub's address as its last
argument, and shows what the command pushed.

    WEIR_TENSOR_LIBRARY=build/release/lib/libweir_tensor.so.0 PYTHONPATH=tensor/python \\
        examples/tensor/python_hub.py build/release/bin/tensor_peer_of_python
"""
import subprocess
import sys

import numpy
import weir_tensor

with weir_tensor.listen("rdma://127.0.0.1:0", push_names="sums") as hub:
    hub.publish_tree("model", {"w": numpy.arange(6, dtype="float32").reshape(2, 3), "b": numpy.array([0.5, 1.5], "float32")})
    subprocess.run([*sys.argv[1:], hub.address], check=True)
    print("the peer pushed", hub.get("sums").value)
