#!/usr/bin/env python3
"""weir sim --telemetry and weir collector: all counts arrive, whatever happens to the collector.

usage: telemetry_test.py WEIR
"""
import csv
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from small_network import leaf_spine

WEIR = sys.argv[1]
MODULE = pathlib.Path(WEIR).parent.parent / "lib" / "weir" / "weir_telemetry.so"
SCENARIO = leaf_spine(hosts_per_leaf=4) + """[simulation]
duration = "100ms"
sample = "20us"
[[workload]]
kind = "incast"
bytes = "4MB"
"""
LINE = re.compile(r"^[A-Za-z_:][A-Za-z0-9_:]*(\{[a-z_]+=\"[^\"\\\n]*\"(,[a-z_]+=\"[^\"\\\n]*\")*\})? [0-9.e+-]+$")


class Collector:
    def __init__(self, folder, port=0):
        self.lines = folder / "lines.jsonl"
        self.process = subprocess.Popen([WEIR, "collector", "--listen", f"127.0.0.1:{port}", "--metrics", "127.0.0.1:0",
                                         "-o", self.lines], stderr=subprocess.PIPE, text=True)
        self.address = self.metrics = None
        while not (self.address and self.metrics):
            said = self.process.stderr.readline()
            assert said, "the collector ended"
            if found := re.search(r"telemetry on (\S+)", said):
                self.address = found[1]
            if found := re.search(r"metrics on (\S+)", said):
                self.metrics = found[1]

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def page(self):
        return urllib.request.urlopen(self.metrics, timeout=30).read().decode()

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=30)

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=30)
        assert self.process.returncode == 0, self.process.returncode


def scenario(folder):
    path = folder / "scenario.toml"
    path.write_text(SCENARIO)
    return path


def start(folder, address, *words):
    return subprocess.Popen([WEIR, "sim", scenario(folder), "--telemetry", address, *words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end(process):
    """The numbers of notifications that it reported: delivered, pushed, dropped."""
    _, error = process.communicate(timeout=100)
    assert process.returncode == 0, error
    found = re.search(r"(\d+) of (\d+) notifications delivered(?:, (\d+) DROPPED)?", error)
    assert found, error
    return int(found[1]), int(found[2]), int(found[3] or 0)


def said(*files):
    """The lines of files, as a set, with times relative to the first."""
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    first = min(line["timestamp"] for line in lines)
    return {(line["timestamp"] - first, line["device"], line["path"], json.dumps(line["values"])) for line in lines}


def reference(folder):
    collector = Collector(folder)
    delivered, pushed, dropped = end(start(folder, collector.address))
    collector.stop()
    assert delivered == pushed > 100 and dropped == 0
    return said(collector.lines)


def the_last_values_are_those_of_the_run(folder):
    collector = Collector(folder)
    end(start(folder, collector.address, "-o", str(folder / "out")))
    page = collector.page()
    for line in page.splitlines():
        assert line.startswith("#") or LINE.match(line), line
    shown = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    rows = list(csv.DictReader((folder / "out" / "ports.csv").open()))
    checked = 0
    for row in rows:
        for name in ("SAI_QUEUE_STAT_PACKETS", "SAI_QUEUE_STAT_BYTES", "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"):
            if row["SAI_QUEUE_STAT_PACKETS"] == "0":
                continue
            labels = f'device="{row["node"]}",port="{row["port"]}",queue="{row["priority"]}"'
            assert float(shown[f"{name}{{{labels}}}"]) == float(row[name]), (labels, name)
            checked += 1
        if row["xoff_received"] != "0":
            key = f'SAI_PORT_STAT_PFC_{row["priority"]}_RX_PKTS{{device="{row["node"]}",port="{row["port"]}"}}'
            assert int(shown[key]) == int(row["xoff_received"]) + int(row["xon_received"]), key
            checked += 1
    assert checked > 30, checked
    collector.stop()


def what_was_counted_before_the_collector_came_arrives(folder):
    wanted = reference(folder)
    late = folder / "late"
    late.mkdir()
    probe = Collector(late)
    probe.kill()
    process = start(folder, probe.address, "--telemetry-wait", "60000")
    collector = Collector(late, probe.port)
    assert end(process)[2] == 0
    collector.stop()
    assert said(collector.lines) == wanted


def a_collector_killed_in_the_middle_loses_nothing(folder):
    wanted = reference(folder)
    first, second = folder / "first", folder / "second"
    first.mkdir()
    second.mkdir()
    killed = Collector(first)
    process = start(folder, killed.address, "--telemetry-wait", "60000")
    deadline = time.monotonic() + 60
    while killed.lines.stat().st_size == 0:
        assert time.monotonic() < deadline, "no telemetry"
        os.sched_yield()
    killed.kill()
    collector = Collector(second, killed.port)
    assert end(process)[2] == 0
    collector.stop()
    assert said(killed.lines, collector.lines) == wanted


def a_full_queue_drops_the_oldest_and_says_so(folder):
    probe = Collector(folder)
    probe.kill()
    delivered, pushed, dropped = end(start(folder, probe.address, "--telemetry-queue", "20KB", "--telemetry-wait", "0"))
    assert delivered == 0 and dropped == pushed > 100, (delivered, pushed, dropped)
    process = start(folder, probe.address, "--telemetry-queue", "20KB", "--telemetry-wait", "60000")
    process.stdout.readline()  # the summary: the run is over, and the sender waits
    collector = Collector(folder, probe.port)
    delivered, pushed, dropped = end(process)
    collector.stop()
    assert delivered + dropped == pushed and 0 < delivered < pushed / 20 and dropped > 100, (delivered, pushed, dropped)
    times = sorted({json.loads(line)["timestamp"] for line in collector.lines.read_text().splitlines()})
    assert len(times) == delivered


def garbage_from_peers_disturbs_nobody(folder):
    collector = Collector(folder)
    noise = random.Random(7)
    greetings = [b"", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    for turn in range(30):
        for port in (collector.port, int(re.search(r":(\d+)/", collector.metrics)[1])):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as peer:
                try:
                    peer.sendall(greetings[turn % 3] + noise.randbytes(noise.randrange(1, 3000)))
                except OSError:
                    pass  # it may have closed the connection
    delivered, pushed, _ = end(start(folder, collector.address))
    assert delivered == pushed > 100
    assert "weir_collector_notifications_total" in collector.page()
    collector.stop()


def a_taken_port_is_an_error(folder):
    collector = Collector(folder)
    other = subprocess.run([WEIR, "collector", "--listen", collector.address], capture_output=True, text=True, timeout=60)
    assert other.returncode == 3 and "cannot listen" in other.stderr, other
    collector.stop()


if not MODULE.exists():
    print(f"skipped: needs {MODULE}, which is built where libgrpc++-dev and protobuf-compiler-grpc are installed")
    sys.exit(77)
for test in (the_last_values_are_those_of_the_run, what_was_counted_before_the_collector_came_arrives,
             a_collector_killed_in_the_middle_loses_nothing, a_full_queue_drops_the_oldest_and_says_so,
             garbage_from_peers_disturbs_nobody, a_taken_port_is_an_error):
    with tempfile.TemporaryDirectory() as scratch:
        test(pathlib.Path(scratch))
    print(f"ok   {test.__name__}")
