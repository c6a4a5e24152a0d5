#!/usr/bin/env python3
"""Programs across a simulated network: what perftest prints is what arithmetic says, and a second run is the same.

  virtual_time_test.py WEIR    exit status 77: this machine permits no user namespaces, or has no perftest
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
SKIPPED = 77
SECONDS = 120
REFUSED = "permits no user namespaces"

NIC_NS = 400  # [nic] of the scenarios, each way
SWITCH_NS = 1000  # forwarding of generic-32m
CABLE_NS = 15  # 3 m
GAP_BYTES = 20
# Ethernet, IPv4, UDP, BTH, ICRC, FCS; RETH of a READ request; AETH of its answer and of an acknowledgement
HEADERS, RETH, AETH = 62, 16, 4


def frame(payload, extra=0):
    return HEADERS + extra + (payload + 3) // 4 * 4


def one_way_ns(frame_bytes, gbps, switches):
    links = switches + 1
    return 2 * NIC_NS + links * (frame_bytes * 8 / gbps + CABLE_NS) + switches * SWITCH_NS


def send_ns(payload, gbps, switches):
    # An answer leaves behind the acknowledgement of what it answers.
    return one_way_ns(frame(payload), gbps, switches) + (frame(0, AETH) + GAP_BYTES) * 8 / gbps


def read_ns(payload, gbps, switches):
    return one_way_ns(frame(0, RETH), gbps, switches) + one_way_ns(frame(payload, AETH), gbps, switches)


def scenario(gbps, switches, programs, mtu=4096):
    text = f'name = "test"\n[transport]\nmtu = {mtu}\n[nic]\ntransmit = "{NIC_NS}ns"\nreceive = "{NIC_NS}ns"\n'
    chain = ["h1"] + [f"s{i}" for i in range(1, switches + 1)] + ["h2"]
    for name in chain:
        text += f'[[host]]\nname = "{name}"\n' if name[0] == "h" else f'[[switch]]\nname = "{name}"\nmodel = "generic-32m"\n'
    for one, other in zip(chain, chain[1:]):
        text += f'[[link]]\nbetween = ["{one}", "{other}"]\nspeed = "{gbps}G"\ncable = "3m"\n'
    for host, command in programs:
        text += f'[[program]]\nhost = "{host}"\ncommand = "{command}"\n'
    return text


def run(text, *options, status=0):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([WEIR, "fabric", "run", *options, file.name], capture_output=True, text=True, timeout=SECONDS, input="\n")
    if REFUSED in done.stderr:
        sys.exit(SKIPPED)
    if done.returncode != status:
        raise AssertionError(f"{done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def pair(command):
    return [("h1", command), ("h2", f"{command} h1")]


class Latency(unittest.TestCase):
    """t_min, t_max and t_typical in us, to perftest's print resolution."""

    def check(self, program, expected_ns, payloads, gbps, switches):
        for payload in payloads:
            with self.subTest(program=program, payload=payload, switches=switches):
                out = run(scenario(gbps, switches, pair(f"{program} -n 50 -s {payload}")))
                rows = re.findall(rf"^ {payload} +50 +([\d.]+) +([\d.]+) +([\d.]+)", out, re.M)
                self.assertTrue(rows, out)
                for row in rows:
                    for shown in row:
                        self.assertAlmostEqual(float(shown), expected_ns(payload, gbps, switches) / 1000, delta=0.0101)

    def test_reads_take_what_arithmetic_says(self):
        self.check("ib_read_lat", read_ns, (2, 64, 4096), 100, 1)
        self.check("ib_read_lat", read_ns, (2,), 100, 2)

    def test_messages_take_what_arithmetic_says(self):
        self.check("ib_send_lat", send_ns, (2, 4096), 100, 1)


    def test_writes_that_a_program_sees_in_memory_take_what_arithmetic_says(self):
        out = run(scenario(100, 1, pair("ib_write_lat -n 10")))
        shown = re.findall(r"^ 2 +10 +([\d.]+) +([\d.]+)", out, re.M)
        self.assertTrue(shown, out)
        expected = one_way_ns(frame(2, RETH), 100, 1) + (frame(0, AETH) + GAP_BYTES) * 8 / 100
        for row in shown:
            for number in row:
                self.assertAlmostEqual(float(number), expected / 1000, delta=0.0101)
        self.assertIn("loops on memory, each proved", out)


class Bandwidth(unittest.TestCase):
    def test_one_connection_gets_the_payloads_share(self):
        for gbps, mtu in ((25, 4096), (100, 4096), (100, 1024)):
            with self.subTest(gbps=gbps, mtu=mtu):
                out = run(scenario(gbps, 1, pair("ib_write_bw -n 1000 --report_gbits"), mtu))
                shown = [float(row) for row in re.findall(r"^ 65536 +1000 +[\d.]+ +([\d.]+)", out, re.M)]
                self.assertTrue(shown, out)
                share = mtu / (mtu + HEADERS + GAP_BYTES)
                for gbits in shown:
                    # The first message also takes the way there and back.
                    self.assertAlmostEqual(gbits / (gbps * share), 1, delta=0.005)

    def test_two_connections_at_once_share_a_link(self):
        commands = [f"ib_write_bw -n 300 -p {port} --report_gbits" for port in (1, 2)]
        text = scenario(100, 1, [("h1", command) for command in commands] + [("h2", f"{command} h1") for command in commands])
        text = text.replace(' h1"\n', ' h1"\nstart = "5ms"\n')
        out = run(text)
        shown = [float(row) for row in re.findall(r"^ 65536 +300 +[\d.]+ +([\d.]+)", out, re.M)]
        self.assertEqual(len(shown), 4, out)
        for gbits in shown:
            self.assertAlmostEqual(gbits / (50 * 4096 / (4096 + HEADERS + GAP_BYTES)), 1, delta=0.02)


class Alike(unittest.TestCase):
    def test_two_runs_are_alike(self):
        out = run(scenario(100, 1, pair("ib_atomic_lat -n 50")), "--verify")
        self.assertIn("verified: two runs are alike", out)
        self.assertIn("deterministic: nothing escaped control", out)

    def test_two_runs_of_a_program_with_threads_and_events_are_alike(self):
        if shutil.which("rping") is None:
            self.skipTest("no rping")
        out = run(scenario(100, 1, [("h1", "rping -s -C 3"), ("h2", "rping -c -a 10.77.0.1 -C 3 -v")]), "--verify")
        self.assertIn("verified: two runs are alike", out)
        self.assertIn("ping data: rdma-ping-2", out)

    def test_another_seed_is_another_run(self):
        prints = [re.search("fingerprint (.*)", run(scenario(100, 1, pair("ib_read_lat -n 5")), "--seed", seed)).group(1)
                  for seed in ("1", "2")]
        self.assertNotEqual(*prints)


class WhatDoesNotGoOn(unittest.TestCase):
    def test_programs_that_wait_for_each_other_are_a_deadlock(self):
        out = run(scenario(100, 1, [("h1", "ib_send_lat"), ("h2", "ib_send_lat")]), status=4)
        self.assertIn("deadlock: every program waits for another", out)
        self.assertRegex(out, r"ib_send_lat on h1, process \d+, thread \d+: waits for descriptors in accept of descriptor \d+ "
                              r"\(TCP listening at .*:18515\) since \d+\.\d+ us")

    def test_sleeping_takes_no_time(self):
        out = run(scenario(100, 1, [("h1", "sleep 100"), ("h2", "date")]))
        self.assertIn("sleep on h1: exit status 0 at 100000000.000 us", out)
        self.assertIn("Jan", out)


if __name__ == "__main__":
    if shutil.which("ib_send_lat") is None:
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
