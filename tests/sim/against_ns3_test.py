#!/usr/bin/env python3
"""The simulator against the published one of HPCC (ns-3.17, alibaba-edu/High-Precision-Congestion-Control 9f4be2a9).

A search engine's traffic at 30 % load for 4 ms on the fat tree of HPCC's evaluation: 2,665 flows, the same in both. The
figures of ns-3 were measured with the settings of its run.py ("dcqcn", "dcqcn_vwin", "hp") at 100G, and are the completion
time until the last acknowledgement over that of the flow alone.

Usage: against_ns3_test.py path/to/weir
"""

import csv
import math
import subprocess
import sys
import tempfile
from pathlib import Path

# Cables of 1 us, and switches that take no time of their own, as in mix/fat.txt.
NETWORK = """
name = "fat tree of HPCC"
[[switch_model]]
name = "hpcc"
buffer = "32MB"
cell = 1
headroom_pool = "private"
pipeline = "18KiB"
mac_phy = 1024
pfc_generation = "0ns"
phy = "0ns"
forwarding = "0ns"
[fat_tree]
pods = 5
tors_per_pod = 4
aggs_per_pod = 4
cores = 16
hosts_per_tor = 16
host_speed = "100G"
host_cable = "200m"
agg_speed = "400G"
agg_cable = "200m"
core_speed = "400G"
core_cable = "200m"
tor_model = "hpcc"
agg_model = "hpcc"
core_model = "hpcc"
[lossless]
priorities = [3]
"""

FLOWS = """
network = "network.toml"
[simulation]
duration = "4ms"
[transport]
mtu = 1000
header = 48
gap = 0
ack_every = 1
congestion_control = "none"
[[workload]]
kind = "poisson"
sizes = "websearch"
load = "30%"
"""

# ns-3 marks from 1600 to 6400 kB on its 400G links; a scenario has one pair of marks for all, which is that of 100G.
REPLAY = """
network = "network.toml"
[simulation]
duration = "30ms"
[ecn]
kmin = "400KB"
kmax = "1600KB"
[transport]
mtu = 1000
gap = 0
ack_every = 1
{transport}
[[workload]]
kind = "flows"
file = "flows/flows.csv"
"""

# As run.py has it, and not as in our preset: no flow below 1 Gb/s at 100G (the preset scales from 25G), and each mark is
# echoed, in its acknowledgement.
DCQCN = """header = 48
congestion_control = "dcqcn"
{more}
[dcqcn]
preset = "{preset}"
minimum_rate = "250Mb/s"
cnp_interval = "0ns"
"""

# INT is 42 bytes in each packet; run.py has no stages of additive increase.
HPCC = """header = 90
congestion_control = "hpcc"
control_priority = 3
[hpcc]
stages = 0
increase = "0.04%"
"""

RUNS = {
    "dcqcn": DCQCN.format(more="", preset="hpcc"),
    "dcqcn with a window": DCQCN.format(more="control_priority = 3", preset="hpcc-window"),
    "hpcc": HPCC,
}

# Slowdown at the 50th, 95th and 99th percentile.
NS3 = {
    "dcqcn": (1.095, 3.76, 5.46),
    "dcqcn with a window": (1.112, 2.66, 3.40),
    "hpcc": (1.150, 2.45, 3.38),
}
# Of seed 1. Other seeds give other hashes for ECMP, and 27 flows make the 99th percentile. Of seeds 2 to 4 DCQCN's 95th
# percentile is 7 % below that of ns-3, and HPCC's 99th is up to 8 % above; DCQCN with a window stays within 5 %.
TOLERANCE = 0.05

def percentile(values, part):
    ordered = sorted(values)
    return ordered[math.ceil(part * len(ordered) / 100) - 1]


def hops(flow):
    """Links between both hosts, each of which delays the last acknowledgement by 1 us."""
    source, destination = flow["source"].split("-"), flow["destination"].split("-")
    if source[:2] == destination[:2]:
        return 2
    return 4 if source[0] == destination[0] else 6


def slowdowns(file):
    with open(file, encoding="utf-8") as lines:
        return [
            (float(flow["completion_us"]) + hops(flow)) / (float(flow["ideal_us"]) + hops(flow))
            for flow in csv.DictReader(lines)
        ]


def main():
    weir = Path(sys.argv[1]).resolve()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)

        def simulate(name, scenario):
            (here / f"{name}.toml").write_text(scenario, encoding="utf-8")
            command = [str(weir), "sim", f"{name}.toml", "-q", "-o", name]
            subprocess.run(command, cwd=here, check=True, capture_output=True, timeout=200)
            return here / name / "flows.csv"

        (here / "network.toml").write_text(NETWORK, encoding="utf-8")
        simulate("flows", FLOWS)
        for name, transport in RUNS.items():
            ours = slowdowns(simulate(name.replace(" ", "-"), REPLAY.format(transport=transport)))
            if len(ours) != 2665:
                print(f"{name}: {len(ours)} flows, not those that ns-3 had")
                failures += 1
            for part, theirs in zip((50, 95, 99), NS3[name], strict=True):
                value = percentile(ours, part)
                apart = abs(value / theirs - 1)
                verdict = "" if apart <= TOLERANCE else ": WRONG"
                failures += apart > TOLERANCE
                print(f"{name}, {part} %: {value:.3f}, ns-3 {theirs:.3f}, {100 * apart:.1f} % apart{verdict}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
