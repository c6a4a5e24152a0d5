#!/usr/bin/env python3
"""weir sim as a program: what it writes, what it refuses, and what remains after Ctrl-C.

usage: weir_sim_test.py WEIR SCENARIOS
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from small_network import leaf_spine

WEIR, SCENARIOS = sys.argv[1], pathlib.Path(sys.argv[2])
ENDLESS = leaf_spine(hosts_per_leaf=2) + """[simulation]
duration = "100s"
[[workload]]
kind = "incast"
bytes = "1000GB"
"""


def sim(*words):
    return subprocess.run([WEIR, "sim", *map(str, words)], capture_output=True, text=True, timeout=100)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same_seed_same_bytes(folder):
    for name in ("one", "two"):
        done = sim(SCENARIOS / "incast.toml", "-o", folder / name)
        assert done.returncode == 0, done.stderr
    assert contents(folder / "one") == contents(folder / "two")
    assert b"<svg" in contents(folder / "one")["report.html"]


def deadlock_is_named(_):
    done = sim(SCENARIOS / "ring-deadlock.toml")
    assert done.returncode == 0 and "deadlock" in done.stdout and "0 of 5 flows" in done.stdout, done.stdout
    cured = sim(SCENARIOS / "ring-deadlock.toml", "--set", "congestion_control=dcqcn")
    assert "5 of 5 flows" in cured.stdout and "deadlock" not in cured.stdout, cured.stdout


def mistakes_are_refused_with_their_place(folder):
    wrong = folder / "wrong.toml"
    wrong.write_text(ENDLESS.replace("incast", "incats"))
    done = sim(wrong, "-o", folder / "nothing")
    assert done.returncode == 3 and f"{wrong}:15:" in done.stderr, done.stderr
    assert not (folder / "nothing").exists()
    assert sim(folder / "missing.toml").returncode == 3
    empty = folder / "empty.toml"
    empty.write_text("")
    assert f"{empty}:1:1: a network without a switch" in sim(empty).stderr
    for words in (["--set", "alpha"], ["--set", "alpha=x"], ["--sweep", "nonsense=1"], ["--frobnicate"],
                  ["--sweep", "alpha=1", "--sweep", "buffer.alpha=2"], ["--set", "headroom=3GB"],
                  ["--sweep", "headroom=4KB,3GB"], ["--telemetry", "nobody"]):
        assert sim(SCENARIOS / "incast.toml", *words).returncode == 2, words
    for word, meant in (("alhpa=1", "alpha"), ("bufer.alpha=1", "buffer.alpha")):
        assert f"did you mean '{meant}'?" in sim(SCENARIOS / "incast.toml", "--set", word).stderr, word
    for words in (["--set", "duration=170s"], ["--sweep", "load=1,100", "--sweep", "duration=10ms,2s"]):
        much = sim(SCENARIOS / "websearch-320.toml", *words)
        assert much.returncode == 2 and "more than 20 million" in much.stderr, much


def interrupt_leaves_what_was_simulated(folder):
    scenario = folder / "endless.toml"
    scenario.write_text(ENDLESS)
    process = subprocess.Popen([WEIR, "sim", scenario, "-o", folder / "part"], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while True:  # until it has installed its handler
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
        if caught & 1 << (signal.SIGINT - 1):
            break
        assert time.monotonic() < deadline, "no handler"
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "PARTIAL" in out, (process.returncode, out)
    assert json.loads((folder / "part" / "summary.json").read_text())["partial"] is True


def sweep_writes_a_row_for_each_combination(folder):
    done = sim(SCENARIOS / "incast.toml", "--sweep", "alpha=0.125,0.5", "--sweep", "kmin=50KB,400KB", "-o", folder)
    assert done.returncode == 0, done.stderr
    assert len((folder / "sweep.csv").read_text().splitlines()) == 5


def sweep_is_printed_as_json_and_as_csv(folder):
    sweep = [SCENARIOS / "incast.toml", "--sweep", "alpha=0.125,0.5"]
    lines = sim(*sweep, "--csv").stdout.splitlines()
    rows = json.loads(sim(*sweep, "--json").stdout)
    assert len(lines) == 3 and [row["buffer.alpha"] for row in rows] == ["0.125", "0.5"], (lines, rows)
    assert list(rows[0]) == lines[0].split(","), (lines[0], rows[0])
    assert float(lines[1].split(",")[3]) == float(f"{rows[0]['completion_us_p50']:.10g}"), (lines, rows)
    alone = sim(SCENARIOS / "incast.toml", "--csv")
    assert alone.returncode == 2 and "--csv prints a sweep" in alone.stderr, alone


def what_is_misset_is_warned_of_and_happens(folder):
    cases = {  # the warning, and an effect that the misconfigured run shows and the planned one does not
        "alpha": ("PFC fires early", "XOFF comes at", lambda run: run["pfc_frames"] > 50),
        "headroom": ("loss", "will be lost", lambda run: run["lossless_drops"] > 100),
        "ecn": ("PFC without ECN", "ECN acts after PFC",
                lambda run: run["pfc_frames"] > 100 and run["ecn_marked_packets"] == 0),
    }
    for name, (what, warning, happens) in cases.items():
        file = SCENARIOS / f"misset-{name}.toml"
        wrong = sim(file, "--json")
        assert warning in wrong.stderr, (name, wrong.stderr)
        assert happens(json.loads(wrong.stdout)), (what, wrong.stdout)
        planned = folder / "planned.toml"
        text = file.read_text()
        planned.write_text(text[:text.index("\n[plan]")] + text[text.index("[leaf_spine]"):])
        right = sim(planned, "--json")
        assert right.returncode == 0 and right.stderr == "", (name, right.stderr)
        assert not happens(json.loads(right.stdout)), (what, right.stdout)


def pause_storm_is_detected_and_restored(folder):
    file = SCENARIOS / "pause-storm.toml"
    watched = json.loads(sim(file, "--json").stdout)
    first, last = watched["incidents"]
    assert first.startswith("pause storm, detected at") and "leaf1:Ethernet0 priority 3" in first, first
    assert last.startswith("pause storm over at") and "leaf1:Ethernet0 priority 3" in last, last
    assert watched["egress_drops"] > 0 and watched["finished"] == watched["flows"], watched

    text = file.read_text()
    begin = text.index("\n[watchdog]")
    unwatched = folder / "no-watchdog.toml"
    unwatched.write_text(text[:begin] + "\n" + text[text.index("[[storm]]"):])
    spread = json.loads(sim(unwatched, "--json").stdout)
    assert spread["incidents"] == [] and spread["egress_drops"] == 0, spread
    assert spread["completion_us"]["p95"] > 20 * watched["completion_us"]["p95"], (spread, watched)


def fail_on_turns_what_happened_into_an_exit_status(_):
    ring, incast = SCENARIOS / "ring-deadlock.toml", SCENARIOS / "incast.toml"
    lossy = ["--set", "congestion_control=none", "--set", "headroom=2KB"]
    for words, status, says in ((["--fail-on", "drops"], 0, ""), (["--fail-on", "drops,deadlock"], 1, "1 deadlocks"),
                                (["--fail-on", "unfinished"], 1, "5 flows"), (["--fail-on", "nothing"], 2, "")):
        done = sim(ring, *words)
        assert done.returncode == status and says in done.stderr, (words, done)
    lost = sim(incast, *lossy, "--fail-on", "drops,deadlock")
    assert lost.returncode == 1 and "lossless packets lost" in lost.stderr, lost
    swept = sim(incast, "--set", "congestion_control=none", "--sweep", "headroom=2KB,200KB", "--fail-on", "drops")
    assert swept.returncode == 1 and len(swept.stdout.splitlines()) == 3, swept
    assert sim(incast, "--fail-on", "drops,deadlock,storm,unfinished").returncode == 0


def results_that_cannot_be_printed_are_an_error(folder):
    file = SCENARIOS / "ring-deadlock.toml"
    for words in ([file], [file, "--json"], [file, "--sweep", "alpha=0.25,0.5"], ["--settings"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([WEIR, "sim", *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 4 and "cannot write to standard output" in done.stderr, (words, done)


def directory_that_cannot_be_made_is_said_before_the_run(folder):
    scenario = folder / "endless.toml"
    scenario.write_text(ENDLESS)
    for words in ([], ["--sweep", "alpha=0.25,0.5"]):
        done = sim(scenario, *words, "-o", "/proc/nothing")  # it would run for minutes
        assert done.returncode == 4 and "cannot make the directory /proc/nothing" in done.stderr, done


for test in (same_seed_same_bytes, deadlock_is_named, pause_storm_is_detected_and_restored,
             fail_on_turns_what_happened_into_an_exit_status, results_that_cannot_be_printed_are_an_error,
             directory_that_cannot_be_made_is_said_before_the_run, mistakes_are_refused_with_their_place,
             interrupt_leaves_what_was_simulated, sweep_is_printed_as_json_and_as_csv,
             sweep_writes_a_row_for_each_combination, what_is_misset_is_warned_of_and_happens):
    with tempfile.TemporaryDirectory() as folder:
        test(pathlib.Path(folder))
    print(f"ok   {test.__name__}")
