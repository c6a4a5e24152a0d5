#!/usr/bin/env python3
"""weir sim --sweep under Open MPI's mpirun: the same bytes for every number of ranks, and clean ends.

usage: weir_sim_mpi_test.py WEIR
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from small_network import leaf_spine

WEIR = sys.argv[1]
MODULE = pathlib.Path(WEIR).parent.parent / "lib" / "weir" / "weir_mpi.so"
NETWORK = leaf_spine(hosts_per_leaf=4) + """[[workload]]
kind = "incast"
"""
SHORT = NETWORK + 'bytes = "200KB"\n'
ENDLESS = NETWORK + 'bytes = "1000GB"\n[simulation]\nduration = "100s"\n'
GRID = ["--sweep", "alpha=0.03125,0.125,0.5", "--sweep", "kmin=50KB,400KB", "--sweep", "congestion_control=dcqcn,none"]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")


def scenario(folder, text, name="scenario.toml"):
    path = folder / name
    path.write_text(text)
    return path


def start(words):
    return subprocess.Popen(["mpirun", *map(str, words)], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def mpirun(*words):
    process = start(words)
    out, error = process.communicate(timeout=200)
    return process.returncode, out, error


def every_split_gives_the_same_bytes(folder):
    path = scenario(folder, SHORT)
    alone = folder / "alone"
    done = subprocess.run([WEIR, "sim", path, *GRID, "--csv", "-o", alone], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 13
    for ranks, jobs in ((1, 1), (2, 1), (2, 3), (3, 1), (3, 2)):
        split = folder / f"{ranks}x{jobs}"
        status, out, error = mpirun("-np", ranks, WEIR, "sim", path, *GRID, "--csv", "-j", jobs, "-o", split)
        assert status == 0, error
        assert out == done.stdout, (ranks, jobs, out)
        for name in ("sweep.csv", "sweep.html"):
            assert (split / name).read_bytes() == (alone / name).read_bytes(), (ranks, jobs, name)


def more_ranks_than_rows_is_no_trouble(folder):
    status, out, error = mpirun("-np", 3, WEIR, "sim", scenario(folder, SHORT), "--sweep", "alpha=0.125", "--csv")
    assert status == 0 and len(out.splitlines()) == 2, (status, out, error)


def one_run_is_done_by_one_rank(folder):
    path = scenario(folder, SHORT)
    done = subprocess.run([WEIR, "sim", path, "--json"], capture_output=True, text=True, timeout=100)
    status, out, error = mpirun("-np", 2, WEIR, "sim", path, "--json")
    assert status == 0 and out == done.stdout, error


def ranks_that_sweep_different_things_are_refused(folder):
    one, other = scenario(folder, SHORT, "one.toml"), scenario(folder, SHORT.replace("200KB", "300KB"), "other.toml")
    words = ["--sweep", "alpha=0.125,0.5", "-o", folder / "out"]
    status, out, error = mpirun("-np", 1, WEIR, "sim", one, *words, ":", "-np", 1, WEIR, "sim", other, *words)
    assert status == 5 and "rank 1 does not sweep what rank 0 does" in error, (status, error)
    assert out == "" and not (folder / "out").exists()


def a_wrong_scenario_is_refused_with_its_place(folder):
    path = scenario(folder, SHORT.replace("incast", "incats"))
    status, _, error = mpirun("-np", 2, WEIR, "sim", path, "--sweep", "alpha=0.125,0.5")
    assert status == 3 and f"{path}:13:" in error, (status, error)


def ranks_of(mpirun_pid):
    """Their process ids, by rank, as far as they have started."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        handled = int(fields.get("SigCgt", "0"), 16) & 1 << (signal.SIGTERM - 1)
        rank = next((word.split(b"=")[1] for word in environment if word.startswith(b"OMPI_COMM_WORLD_RANK=")), None)
        if fields["PPid"].strip() == str(mpirun_pid) and rank is not None and handled:
            found[int(rank)] = int(entry.name)
    return found


def a_killed_rank_ends_the_sweep_with_an_error(folder):
    process = start(["-np", 2, WEIR, "sim", scenario(folder, ENDLESS), *GRID, "-o", folder / "out"])
    deadline = time.monotonic() + 60
    while len(ranks := ranks_of(process.pid)) < 2:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        os.sched_yield()
    os.kill(ranks[1], signal.SIGKILL)
    _, error = process.communicate(timeout=60)
    assert process.returncode not in (0, None) and "killed" in error.lower(), (process.returncode, error)
    left = {path.name for path in (folder / "out").iterdir()} if (folder / "out").exists() else set()
    assert left <= {"sweep.csv", "sweep.html"}, left  # complete files or none


if shutil.which("mpirun") is None or not MODULE.exists():
    print(f"skipped: needs Open MPI (openmpi-bin, libopenmpi-dev): mpirun and {MODULE}")
    sys.exit(77)
for test in (every_split_gives_the_same_bytes, more_ranks_than_rows_is_no_trouble, one_run_is_done_by_one_rank,
             ranks_that_sweep_different_things_are_refused, a_wrong_scenario_is_refused_with_its_place,
             a_killed_rank_ends_the_sweep_with_an_error):
    with tempfile.TemporaryDirectory() as scratch:
        test(pathlib.Path(scratch))
    print(f"ok   {test.__name__}")
