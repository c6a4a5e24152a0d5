#!/usr/bin/env python3
"""NCCL's network plugin between two hosts: the scenarios of the driver test, a rank in each of two network namespaces.

usage: between_namespaces.py PLUGIN PEER    exit status 0: passed; 1: failed, with the reason printed; 77: skipped, and why

PEER is nccl_test_peer. The ranks exchange lines through pipes, as NCCL does through its bootstrap; their data go in packets.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
import two_namespaces

SKIPPED = 77
SEED = "20261126"
VERSIONS = {"12": ("transfer", "ring", "groups", "lone_send", "close_in_flight", "reused_listener", "threads", "optional_completion"),
            "8": ("transfer", "groups")}
LIMIT_S = 120


def run(namespaces, plugin, peer, version, scenario, environment):
    """Returns what went wrong, or None."""
    to_second, from_first = os.pipe()
    to_first, from_second = os.pipe()
    ranks = []
    for end, words, hears, says in (("server", ["--first"], to_first, from_first), ("client", [], to_second, from_second)):
        command = [*namespaces.enter(end), peer, *words, plugin, version, scenario, SEED]
        ranks.append(subprocess.Popen(command, stdin=hears, stdout=says, stderr=subprocess.PIPE, text=True, env=environment))
        os.close(says)  # so that a rank notices the other's end; its last line may then find no reader
    try:
        said = [rank.communicate(timeout=LIMIT_S)[1] for rank in ranks]
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT_S} s"
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
        os.close(to_first)
        os.close(to_second)
    if any(rank.returncode != 0 for rank in ranks):
        return "\n".join(f"rank {number}: exit status {rank.returncode}\n{text}"
                         for number, (rank, text) in enumerate(zip(ranks, said)))
    return None


def packets_sent(namespaces):
    text = subprocess.run([*namespaces.enter("client"), "ip", "-json", "-stats", "link", "show", "wire"],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(text)[0]["stats64"]["tx"]["packets"]


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    if forbidden := two_namespaces.why_not():
        print(f"skipped: {forbidden}")
        return SKIPPED
    namespaces = two_namespaces.TwoNamespaces()
    failed = 0
    try:
        with tempfile.TemporaryDirectory(prefix="weir-nccl-", dir="/dev/shm") as folder:
            environment = {**os.environ, "WEIR_RUNTIME_DIR": folder}
            for version, scenarios in VERSIONS.items():
                for scenario in scenarios:
                    before = packets_sent(namespaces)
                    wrong = run(namespaces, *sys.argv[1:], version, scenario, environment)
                    sent = packets_sent(namespaces) - before
                    if wrong is None and sent == 0:
                        wrong = "no packet went between the namespaces"
                    failed += wrong is not None
                    print(f"v{version} {scenario}: {wrong or f'as it should, {sent} packets from one of both'}", flush=True)
    finally:
        namespaces.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
