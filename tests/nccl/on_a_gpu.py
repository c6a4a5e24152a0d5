#!/usr/bin/env python3
"""NCCL itself over the plugin, on one GPU: two or more ranks that NCCL takes for separate hosts.

usage: on_a_gpu.py PLUGIN [--ranks 2,4] [--kills 3] [--speed] [--mps] [--seed N] [--keep FOLDER] [--only CASE,...]

PLUGIN is libnccl-net-weir.so. Exit status 0: passed; 1: failed, with the reason printed; 77: skipped, for lack of a GPU or of
torch, and it says which.

NCCL refuses two ranks on one GPU only if both are on one host. Here each rank has its own NCCL_HOSTID, so all of their traffic
goes through the network, which is the plugin.

  --ranks   numbers of ranks, one case each
  --kills   how many ranks are killed while they work; their peers must see an error within a second
  --speed   also times all_reduce, alternating with NCCL's own Socket transport
  --mps     runs the ranks under NVIDIA's MPS daemon (one of our own, ended afterwards): without it kernels of two processes
            never run together, so the speed depends on how often the GPU switches between them
  --keep    folder for NCCL's logs
  --only    any of check, torch, versions, devices, kill, faults, speed
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
RANK = pathlib.Path(__file__).resolve().with_name("gpu_rank.py")
CASE_S = 90  # limit for one case, including the start of torch
AFTER_FAILURE_S = 10
ERROR_S = 1.0  # limit from a rank's death to its peer's error


class Failed(Exception):
    pass


def why_not():
    """Why the test cannot run here, or None."""
    try:
        import torch
    except ImportError:
        return f"no torch for {sys.executable}"
    if not torch.cuda.is_available():
        return "no GPU that torch can use"
    return None


class Ranks:
    """The processes of one case, and their logs."""

    def __init__(self, number, task, folder, environment, seed):
        self.folder, self.number = folder, number
        self.processes = []
        base = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "WEIR_NCCL_"))}
        for rank in range(number):
            own = {"NCCL_HOSTID": f"weir-rank-{rank}", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
                   "NCCL_DEBUG_FILE": str(folder / f"nccl.{rank}.log")}
            with open(folder / f"out.{rank}", "wb") as out:
                self.processes.append(subprocess.Popen(
                    [sys.executable, "-B", str(RANK), str(rank), str(number), str(folder), task, str(seed)],
                    env=base | environment | own, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT))

    def log(self, rank):
        file = self.folder / f"nccl.{rank}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def output(self, rank):
        return (self.folder / f"out.{rank}").read_text(errors="replace")

    def wait(self, but=()):
        """Returns the results of all ranks, in order; None for those in `but`."""
        until = time.monotonic() + CASE_S
        try:
            while running := [process for process in self.processes if process.poll() is None]:
                if any(process.poll() for rank, process in enumerate(self.processes) if rank not in but):
                    until = min(until, time.monotonic() + AFTER_FAILURE_S)  # the others wait for it in vain
                if time.monotonic() > until:
                    raise Failed(f"{len(running)} of {self.number} ranks do not end\n{self.tails()}")
                time.sleep(0.02)
        finally:
            self.end()
        seen = []
        for rank, process in enumerate(self.processes):
            if rank in but:
                seen.append(None)
            elif process.returncode != 0:
                raise Failed(f"rank {rank}: exit status {process.returncode}\n{self.tails()}")
            else:
                seen.append(json.loads(self.output(rank).splitlines()[-1]))
        return seen

    def running(self):
        """Waits until all ranks are working."""
        until = time.monotonic() + CASE_S
        while not all((self.folder / f"running.{rank}").exists() for rank in range(self.number)):
            if time.monotonic() > until or any(process.poll() is not None for process in self.processes):
                self.end()
                raise Failed(f"the ranks do not begin\n{self.tails()}")
            time.sleep(0.005)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def tails(self):
        return "\n".join(f"--- rank {rank}\n{self.output(rank)[-1500:]}\n{self.log(rank)[-2500:]}" for rank in range(self.number))


class Suite:
    def __init__(self, plugin, folder, seed):
        self.plugin, self.folder, self.random, self.seed, self.cases = plugin, folder, random.Random(seed), seed, 0

    def start(self, number, task, weir=True, **environment):
        self.cases += 1
        folder = self.folder / f"{self.cases:02}-{task}-{number}"
        folder.mkdir()
        network = {"NCCL_NET_PLUGIN": self.plugin, "NCCL_NET": "Weir"} if weir else {"NCCL_NET_PLUGIN": "none",
                                                                                      "NCCL_NET": "Socket"}
        return Ranks(number, task, folder, network | environment, self.seed)

    def went_through(self, ranks, transport="Weir"):
        for rank in range(ranks.number):
            log = ranks.log(rank)
            if f"via NET/{transport}" not in log:
                raise Failed(f"rank {rank}: no channel goes through NET/{transport}\n{log[-3000:]}")
            if " via P2P" in log or " via SHM" in log:
                raise Failed(f"rank {rank}: a channel goes past the network\n{log[-3000:]}")

    def right(self, number, task="check", **environment):
        ranks = self.start(number, task, **environment)
        seen = ranks.wait()
        self.went_through(ranks)
        return f"{sum(each['checks'] for each in seen)} results of {number} ranks are right"

    def version(self, number):
        """Uses an older version of the interface: a copy of the plugin without the newer tables."""
        plugin = pathlib.Path(self.plugin)
        folder = self.folder / f"v{number}"
        folder.mkdir()
        for nic in ("verbs", "weir"):  # installed beside it
            (folder / nic).symlink_to(plugin.parent / nic)
        library = plugin.read_bytes()
        for newer in range(number + 1, 13):
            library = library.replace(b"ncclNetPlugin_v%d\0" % newer, b"ncclNetPlugin_x%d\0" % newer)
        copy = folder / plugin.name
        copy.write_bytes(library)
        ranks = self.start(2, "check_few", NCCL_NET_PLUGIN=str(copy))
        seen = ranks.wait()
        self.went_through(ranks)
        if f"interface version {number}," not in ranks.log(0):
            raise Failed(f"NCCL uses another version\n{ranks.log(0)[:3000]}")
        return f"{sum(each['checks'] for each in seen)} results are right"

    def devices(self):
        ranks = self.start(2, "check_few", WEIR_NCCL_DEVICES="4", NCCL_MIN_NCHANNELS="8")
        seen = ranks.wait()
        self.went_through(ranks)
        used = {device for device in range(4) if f"via NET/Weir/{device}" in ranks.log(0)}
        if len(used) < 2:
            raise Failed(f"of 4 devices only {used} were used\n{ranks.log(0)[-3000:]}")
        return f"{sum(each['checks'] for each in seen)} results over {len(used)} devices are right"

    def kill(self):
        ranks = self.start(2, "until_error")
        try:
            ranks.running()
            time.sleep(self.random.uniform(0, 0.3))  # anywhere in an all_reduce
            victim = self.random.randrange(2)
            killed_s = time.monotonic()
            ranks.processes[victim].send_signal(signal.SIGKILL)
            survivor = ranks.wait(but=(victim,))[1 - victim]
        finally:
            ranks.end()
        if survivor["error"] is None:
            raise Failed(f"the survivor saw no error\n{ranks.tails()}")
        after_s = survivor["at_s"] - killed_s
        ours = [line for line in ranks.log(1 - victim).splitlines() if "NET/Weir" in line and " ended: " in line]
        if after_s > ERROR_S or survivor["abort_s"] > 5 or not ours:
            raise Failed(f"the survivor's error came after {after_s:.2f} s, its abort took {survivor['abort_s']:.2f} s, and "
                         f"of us it says {ours}\n{ranks.tails()}")
        return (f"rank {victim} killed in round {survivor['rounds']}: {survivor['error']} after {after_s * 1000:.0f} ms, abort "
                f"{survivor['abort_s'] * 1000:.0f} ms; {ours[0].partition('NET/Weir : ')[2]}")

    def fault(self, faults, says):
        ranks = self.start(2, "until_error", WEIR_NCCL_FAULTS=f"{faults},seed={self.seed}")
        seen = ranks.wait()
        silent = [rank for rank in range(2) if seen[rank]["error"] is None]
        if silent:
            raise Failed(f"{faults}: ranks {silent} saw no error\n{ranks.tails()}")
        if not any(says in ranks.log(rank) for rank in range(2)):
            raise Failed(f"{faults}: no log says '{says}'\n{ranks.tails()}")
        return "; ".join(f"rank {rank}: {each['error']} in round {each['rounds']}" for rank, each in enumerate(seen))

    def speed(self, number, turns=2, **environment):
        """Returns the best turn of each transport."""
        best = {}
        for _ in range(turns):
            for transport in ("Weir", "Socket"):
                ranks = self.start(number, "speed", weir=transport == "Weir", **environment)
                seen = ranks.wait()
                self.went_through(ranks, transport)
                for bytes_ in seen[0]["seconds"]:
                    seconds = max(each["seconds"][bytes_] for each in seen)
                    key = transport, int(bytes_)
                    best[key] = min(best.get(key, seconds), seconds)
        lines = [f"all_reduce of {number} ranks: NET/Weir, NET/Socket, ratio of speeds {environment or ''}"]
        for bytes_ in sorted({bytes_ for _, bytes_ in best}):
            ours, theirs = best["Weir", bytes_], best["Socket", bytes_]
            lines.append(f"{bytes_:>10} B {ours * 1e6:10.1f} us {bytes_ / ours / 1e9:7.3f} GB/s {theirs * 1e6:10.1f} us "
                         f"{bytes_ / theirs / 1e9:7.3f} GB/s {theirs / ours:6.2f}")
        return "\n  ".join(lines)


class Mps:
    """A daemon of our own, which changes nothing on the card."""

    def __init__(self, folder):
        self.daemon = shutil.which("nvidia-cuda-mps-control")
        if self.daemon is None:
            raise Failed("there is no nvidia-cuda-mps-control")
        for name in ("pipe", "log"):
            (folder / name).mkdir()
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
        os.environ.update(self.environment)
        subprocess.run([self.daemon, "-d"], check=True, timeout=20)

    def end(self):
        try:
            subprocess.run([self.daemon], input=b"quit -t 5\n", timeout=20, check=False)
        finally:
            for name in self.environment:
                del os.environ[name]


def cases(suite, chosen, wanted):
    numbers = [int(number) for number in chosen.ranks.split(",")]
    if "check" in wanted:
        for number in numbers:
            yield f"check, {number} ranks", lambda number=number: suite.right(number, "check" if number == 2 else "check_few")
    if "torch" in wanted:
        yield "torch.distributed", lambda: suite.right(2, "torch")
    if "versions" in wanted:
        for number in (10, 9, 8):
            yield f"interface version {number}", lambda number=number: suite.version(number)
    if "devices" in wanted:
        yield "4 devices, 8 channels", suite.devices
    if "kill" in wanted:
        for number in range(chosen.kills):
            yield f"kill {number + 1}", suite.kill
    if "faults" in wanted:
        yield "late completions and receives", lambda: suite.right(
            2, "check_few", WEIR_NCCL_FAULTS=f"delay=0.05:200,rnr-storm=0.02:300,seed={suite.seed}")
        yield "qp-error", lambda: suite.fault("qp-error=0.002", "WEIR_NCCL_FAULTS injected a QP error")
        yield "dead-nic", lambda: suite.fault("dead-nic=0@300", "WEIR_NCCL_FAULTS killed the device")
    if "speed" in wanted:
        for number in numbers:
            yield f"speed, {number} ranks", lambda number=number: suite.speed(number)


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("plugin", nargs="?")
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--mps", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--only")
    chosen = parser.parse_args()
    if chosen.help or chosen.plugin is None:
        print(__doc__)
        return 0 if chosen.help else 2
    if forbidden := why_not():
        print(f"skipped: {forbidden}")
        return SKIPPED
    wanted = set(chosen.only.split(",") if chosen.only else ("check", "torch", "versions", "devices", "kill", "faults"))
    if chosen.speed:
        wanted.add("speed")
    print(f"seed {chosen.seed}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="weir-nccl-", dir="/dev/shm") as folder:
        root = pathlib.Path(chosen.keep or folder)
        root.mkdir(parents=True, exist_ok=True)
        suite = Suite(str(pathlib.Path(chosen.plugin).resolve()), root, chosen.seed)
        mps = Mps(pathlib.Path(folder)) if chosen.mps else None
        try:
            for name, run in cases(suite, chosen, wanted):
                begin = time.monotonic()
                try:
                    said = run()
                except Failed as why:
                    failed += 1
                    said = f"FAILED: {why}"
                print(f"{name} ({time.monotonic() - begin:.1f} s): {said}", flush=True)
        finally:
            if mps is not None:
                mps.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
