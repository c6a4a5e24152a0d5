#!/usr/bin/env python3
"""Weir's packets against those of the kernel's Soft-RoCE: a guest with the kernel's device at one end of a wire, Weir at the other.

usage: run_wire.py [--build DIR] [--seconds N] [CASE...]      the cases of wire_cases.py, each with Weir's end as server and as client
Exit status: 0: all behaved; 1: what went wrong is printed; 77: this machine cannot (it says why).
The wire is a tap in a network namespace of this run's own, so no privilege is needed.
"""
import argparse
import ipaddress
import itertools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "interop")]

import kernel
import machine
import run_case
import wire_cases
from program import POLL_S, Expired, Program

TAP = "wire"
# Of each family in the order of our GIDs, as in ../interop/two_namespaces.py.
ADDRESSES = {"ipv4": {"weir": "10.77.0.1", "guest": machine.ADDRESS}, "ipv6": {"weir": "fd77::1", "guest": machine.ADDRESS6}}
BOOT_S, CASE_S = 200, 120  # backstops: the guest's processor is emulated
INSIDE = "--inside"
SKIPPED = 77


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def make_wire():
    ip("tuntap", "add", "dev", TAP, "mode", "tap")
    ip("link", "set", TAP, "addrgenmode", "none")
    ip("address", "add", f"{ADDRESSES['ipv4']['weir']}/24", "dev", TAP)
    ip("address", "add", f"{ADDRESSES['ipv6']['weir']}/64", "dev", TAP, "nodad")
    for each in ("lo", TAP):
        ip("link", "set", each, "up")


class Guest:
    """Boots beside us; afterwards command() runs something there."""

    def __init__(self, booted, build, seconds):
        self.gave_up, self.status = threading.Event(), None
        self.thread = threading.Thread(target=self._run, args=(booted, build, seconds))
        self.thread.start()
        deadline = time.monotonic() + BOOT_S
        while self._ask("true").returncode != 0:
            if not self.thread.is_alive() or time.monotonic() > deadline:
                self.end()
                raise Expired("the guest did not come up")
            time.sleep(0.5)

    def _run(self, booted, build, seconds):
        self.status = machine.run(*booted, HERE / "remote/job.sh", ROOT, build, seconds, machine.on_tap(TAP), self.gave_up.is_set)

    def command(self, *words):
        return [sys.executable, "-B", str(HERE / "remote/in_guest.py"), machine.ADDRESS, *words]

    def _ask(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True)

    def gid_of(self, address):
        listed = self._ask("sh", "-c", "grep -s . /sys/class/infiniband/rxe0/ports/1/gids/*").stdout
        wanted = ipaddress.ip_address(address if ":" in address else f"::ffff:{address}")
        for place, gid in re.findall(r"/(\d+):([0-9a-f:]+)$", listed, re.MULTILINE):
            if ipaddress.ip_address(gid) == wanted:
                return int(place)
        raise Expired(f"no GID of the guest has the address {address}:\n{listed}")

    def impair(self, netem):
        """Lets netem have the RoCEv2 packets that leave the guest's interface, and those that come to it; "": no longer.

        Not the rest. What comes has passed the check of its TCP checksum by then, so that the connections of agent.py and of the
        programs would take what netem corrupts.
        """
        commands = ["tc qdisc del dev eth0 root", "tc qdisc del dev eth0 ingress", "tc qdisc del dev ifb0 root"]
        if netem:
            roce = [f"protocol {version} flower ip_proto udp dst_port 4791" for version in ("ip", "ipv6")]
            commands = ["tc qdisc add dev eth0 root handle 1: prio bands 4", f"tc qdisc add dev eth0 parent 1:4 netem {netem}",
                        f"tc qdisc add dev ifb0 root netem {netem}", "ip link set ifb0 up", "tc qdisc add dev eth0 ingress",
                        *(f"tc filter add dev eth0 parent 1: {each} classid 1:4" for each in roce),
                        *(f"tc filter add dev eth0 ingress {each} action mirred egress redirect dev ifb0" for each in roce)]
        self.must(" && ".join(commands))

    def must(self, script):
        done = self._ask("sh", "-c", script)
        if done.returncode != 0:
            raise Expired(f"the guest cannot {script}:\n{done.stdout}")

    def wait_until_it_listens(self, port, ready, server):
        look = {"tcp": f"ss -ltn | grep -q ':{port} '", "cm": f"rdma resource show cm_id | grep LISTEN | grep -q ':{port} '"}[ready]
        deadline = time.monotonic() + CASE_S
        while self._ask("sh", "-c", look).returncode != 0:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise Expired(f"{server.name} did not listen on port {port}")

    def end(self):
        self._ask("end")
        self.thread.join(30)
        self.gave_up.set()
        self.thread.join()


class Wire:
    def __init__(self, build, guest, scratch):
        self.weir, self.guest, self.runtime, self.mtu = build / "bin/weir", guest, scratch / "runtime", wire_cases.Case.mtu
        self.gids = {family: {"weir": index, "guest": guest.gid_of(ends["guest"])} for index, (family, ends) in enumerate(ADDRESSES.items())}

    def start(self, case, name, end, host, port):
        own = ADDRESSES[case.family][end]
        words = [word.format(host=host, own=own, port=port, gid=self.gids[case.family][end]) for word in getattr(case, name)]
        around = [str(self.weir), "run", "--"] if end == "weir" else self.guest.command("stdbuf", "-oL")
        print(f"$ {shlex.join(words)}    # {name}, {end}", flush=True)
        return Program(f"{name} ({end})", [*around, *words], {**os.environ, "WEIR_RUNTIME_DIR": str(self.runtime)})

    def wait_until_it_listens(self, case, end, port, server):
        ready, _, fixed = case.ready.partition(":")
        if ready == "prints":
            return server.wait_until_it_prints(fixed, CASE_S)
        port = fixed or port
        if end == "guest":
            return self.guest.wait_until_it_listens(port, ready, server)
        if ready == "tcp":
            return server.wait_until_listening(port, CASE_S)
        deadline = time.monotonic() + CASE_S
        while not any(run_case.listening(path) for path in self.runtime.glob(f"net-*/cm/*-{port}/*")):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise Expired(f"{server.name} did not listen on port {port}")
            time.sleep(POLL_S)

    def set_mtu(self, mtu):
        if mtu == self.mtu:
            return
        self.mtu = mtu
        ip("link", "set", TAP, "mtu", str(mtu))
        self.guest.must(f"ip link set eth0 mtu {mtu}")

    def run(self, case, serves, ports):
        """What went wrong; empty: nothing."""
        problem = self.run_once(case, serves, next(ports))
        if not problem or "loss" not in case.wire:
            return problem
        # The last acknowledgement may have been lost. Nobody repeats it when the guest's program has ended, on any NIC.
        print(f"{case.name}, {serves} serves, once more: {problem}", flush=True)
        return self.run_once(case, serves, next(ports))

    def run_once(self, case, serves, port):
        self.set_mtu(case.mtu)
        if not case.wire:
            return self.run_programs(case, serves, port)
        self.guest.impair(case.wire)
        try:
            return self.run_programs(case, serves, port)
        finally:
            self.guest.impair("")

    def run_programs(self, case, serves, port):
        connects = "guest" if serves == "weir" else "weir"
        programs = []
        try:
            host = ADDRESSES["ipv4" if case.ready == "tcp" else case.family][serves]
            programs.append(server := self.start(case, "server", serves, host, port))
            self.wait_until_it_listens(case, serves, port, server)
            programs.append(client := self.start(case, "client", connects, host, port))
            run_case.must_succeed(client, CASE_S)
            if case.served and "loss" in case.wire and connects == "guest":
                # The kernel says once that a program's connection ends, and no more when the program has ended.
                server.wait_until_it_prints(case.served, CASE_S)
            else:
                run_case.must_succeed(server, CASE_S)
            run_case.must_print(client, case.expect)
            run_case.must_report_sizes(client, case.sizes)
            return ""
        except (Expired, run_case.Failed) as error:
            for program in programs:
                program.end()
            return "\n".join([str(error), *(f"--- {each.name}\n{each.output}" for each in programs)])
        finally:
            for program in programs:
                program.end()


def inside(arguments):
    try:
        booted = kernel.prepare(ROOT / "build/vm")
        make_wire()
    except (kernel.Missing, subprocess.CalledProcessError) as why:
        print(f"SKIPPED: no wire to a virtual machine: {why}")
        return SKIPPED
    wanted = [case for case in wire_cases.CASES if not arguments.case or case.name in arguments.case]
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="weir-vm-"))
    failed, guest, ports = [], None, itertools.count(20001)
    try:
        guest = Guest(booted, arguments.build.resolve(), arguments.seconds)
        wire = Wire(arguments.build.resolve(), guest, scratch)
        for case in wanted:
            for serves in ("weir", "guest"):
                began = time.monotonic()
                problem = wire.run(case, serves, ports)
                what = f"{case.name}, {serves} serves"
                if problem:
                    failed.append(f"{what}: {problem.splitlines()[0]}")
                print(f"{'FAILED' if problem else 'passed'} {what}, {time.monotonic() - began:.1f} s: {problem}".rstrip(": "), flush=True)
    except Expired as error:
        failed.append(str(error))
    finally:
        if guest is not None:
            guest.end()
        shutil.rmtree(scratch, ignore_errors=True)
    # Once more at the end, which is what is kept of a long log.
    for each in failed:
        print(f"FAILED {each}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="the build to take (build/release)")
    parser.add_argument("--seconds", type=int, default=1500, help="limit of all (1500)")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return inside(arguments)
    try:
        kernel.prepare(ROOT / "build/vm")  # it may fetch something, which it cannot in a network of its own
    except kernel.Missing as why:
        print(f"SKIPPED: no virtual machine with Soft-RoCE: {why}")
        return SKIPPED
    tried = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "--", "ip", "tuntap", "add", "dev", TAP, "mode", "tap"],
                           capture_output=True, text=True)
    if tried.returncode != 0:
        print(f"SKIPPED: this machine lets its user make no tap in a network namespace: {tried.stderr.strip()}")
        return SKIPPED
    return subprocess.run(["unshare", "--user", "--map-root-user", "--net", "--", sys.executable, "-B", *sys.argv, INSIDE]).returncode


if __name__ == "__main__":
    sys.exit(main())
