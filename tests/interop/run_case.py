#!/usr/bin/env python3
"""Runs one case of cases.py: Debian's programs, unmodified, on the drop-in libraries of a build.

usage: run_case.py --build DIR CASE      exit status 0: it behaved; 1: what went wrong is printed, with
                                 all output; 77: skipped, and why
       run_case.py --list                NAME LABELS LIMIT_S PROCESSORS, a line each
Each case has a WEIR_RUNTIME_DIR of its own, which must hold nothing when the programs have ended.
"""
import argparse
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import cases
import two_namespaces
from case import HOST
from program import POLL_S, Expired, Program

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77  # CTest's SKIP_RETURN_CODE
READY_S = 60     # all of these are generous: a machine may have no processor to spare for a while
USERS = {"server": "64101", "client": "64102"}  # need not exist on the machine
WORK_S = 0.5    # processor time a client has used before one end is killed: past set-up, in the middle of its work
CUT_S = 0.2
NOTICE_S = 60  # limit for a program to end after its partner was killed


class Failed(Exception):
    pass


def end_of(name):
    return "server" if name == "server" else "client"


class Run:
    """Shared by all cases: the launcher, the runtime folder, and the programs to end in any event."""

    def __init__(self, build, case):
        self.build, self.case, self.programs = build, case, []
        made = two_namespaces.NatNamespaces if case.behind_nat else two_namespaces.TwoNamespaces
        self.namespaces = made() if case.between_hosts else None
        self.addresses = two_namespaces.BEHIND_NAT if case.behind_nat else two_namespaces.ADDRESSES.get(case.between_hosts)
        if case.udp_dropped:
            self.namespaces.drop_udp()
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="weir-interop-", dir="/dev/shm" if case.in_shm else None))
        self.runtimes = dict.fromkeys(USERS, self.scratch / "runtime")
        if case.user:
            shutil.chown(self.scratch, case.user)
        if case.two_users:
            self.scratch.chmod(0o711)
            self.runtimes = {end: self.scratch / end / "runtime" for end in USERS}
            for end, runtime in self.runtimes.items():
                runtime.parent.mkdir()
                os.chown(runtime.parent, int(USERS[end]), int(USERS[end]))
        if case.user or case.two_users:
            build = self.build = copy_for_others(build, self.scratch / "build")
        self.environment = {**os.environ}
        host = self.addresses["server"] if case.between_hosts else HOST
        self.words = {"port": str(free_port()), "host": host, "here": str(HERE), "programs": str(programs_of(build)),
                      "bin": str(build / "bin"), "scratch": str(self.scratch / "folder"), "file": str(self.scratch / "file"), "copy": str(self.scratch / "copy"),
                      "server_namespace": str(self.namespaces.holders["server"].pid) if self.namespaces else ""}
        pathlib.Path(self.words["scratch"]).mkdir()
        if case.user:
            shutil.chown(self.words["scratch"], case.user)
        if case.copies:
            self.original = random.Random(1).randbytes(case.copies)
            pathlib.Path(self.words["file"]).write_bytes(self.original)
        launcher = build / "bin/weir"
        if launcher.exists():
            self.prefix = [str(launcher), "run", *case.options, "--"]
        else:
            self.prefix = []
            self.environment["LD_LIBRARY_PATH"] = str(build / "lib/verbs")

    def end_of(self, name):
        return "server" if self.case.one_host else end_of(name)

    def around(self, name):
        case = self.case
        chosen = case.around_server if name == "server" and case.around_server is not None else case.around
        if self.namespaces is not None:
            return [*self.namespaces.enter(self.end_of(name)), *(word.format(**self.words) for word in chosen)]
        if self.case.two_users:
            return as_user(USERS[end_of(name)])
        return [*as_user(case.user), *(word.format(**self.words) for word in chosen)]

    def start(self, name, command):
        own = self.addresses[self.end_of(name)] if self.case.between_hosts else HOST
        words = [*self.around(name), *self.prefix, *(word.format(**self.words, own=own) for word in command)]
        print(f"$ {shlex.join(words)}    # {name}", flush=True)
        program = Program(name, words, {**self.environment, "WEIR_RUNTIME_DIR": str(self.runtimes[end_of(name)])})
        self.programs.append(program)
        return program

    def start_server(self):
        server = self.start("server", self.case.server)
        if self.case.ready in ("tcp", "udp"):
            server.wait_until_listening(int(self.words["port"]), READY_S, self.case.ready)
        elif self.case.ready.startswith("prints:"):
            server.wait_until_it_prints(self.case.ready.partition(":")[2], READY_S)
        else:
            self.wait_for_rdma_listener(server)
        return server

    def wait_for_rdma_listener(self, server):
        """RDMA has no table of listeners in /proc; Weir's port space is files (verbs/cm/port_space.hpp)."""
        deadline = time.monotonic() + READY_S
        port = self.case.ready.partition(":")[2] or self.words["port"]
        rsocket = self.case.ready == "rsocket"
        found = os.path.exists if rsocket else listening  # not every rsocket listens
        while not any(found(path) for path in self.runtimes["server"].glob(f"net-*/cm/*-{port}/*")):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"the server did not listen on RDMA port {port}")
            time.sleep(POLL_S)
        if rsocket:  # such a server may spin on raccept; verbs/rsocket/service.hpp begins with listen
            server.wait_until_it_has_thread("weir-rsocket", READY_S)

    def end(self):
        for program in self.programs:
            program.end()
        if self.namespaces is not None:
            self.namespaces.end()

    def leftovers(self):
        """Files that are still there and were not meant to last (link/same_host.hpp)."""
        return sorted(str(path.relative_to(self.scratch)) for runtime in set(self.runtimes.values())
                      for path in runtime.rglob("*") if not path.name.startswith(("lasting-", "net-")))


def copy_for_others(build, place):
    """Another user may have no access to the build's folder, which can be in a home directory."""
    (place / "bin").mkdir(parents=True)
    for program in ("weir", "weir-server", "weir-cli"):
        if (build / "bin" / program).exists():
            shutil.copy(build / "bin" / program, place / "bin")
    shutil.copytree(build / "lib/verbs", place / "lib/verbs", symlinks=True)
    return place


def as_user(user):
    return ["setpriv", f"--reuid={user}", "--clear-groups", "--inh-caps=-all", "--"] if user else []


def why_not_here(case, build):
    """What this machine lacks or forbids for the case; empty: nothing."""
    missing = [path for path in (each.format(programs=programs_of(build), bin=build / "bin") for each in case.needs) if not os.path.exists(path)]
    if missing:
        built = " (CMake said which package it is built with)" if "{programs}" in "".join(case.needs) else ""
        return f"{case.server[0]} needs {', '.join(missing)}, which is not here{built}"
    if case.between_hosts and (forbidden := two_namespaces.why_not()):
        return forbidden
    if (case.user or case.two_users) and os.geteuid() != 0:
        return f"only root may start programs as {case.user or 'two users'}"
    for launcher in (case.around, case.around_server or []):
        command = [*as_user(case.user), *(word.format(programs=programs_of(build), here=HERE) for word in launcher), str(build / "bin/weir"), "--help"]
        try:
            tried = subprocess.run(command, capture_output=True, text=True, timeout=READY_S)
        except OSError as error:
            return f"{shlex.join(command)}: {error.strerror}"
        if tried.returncode != 0:
            return f"{shlex.join(command)} does not work here: {tried.stderr.strip()}"
    return ""


def listening(port_file):
    """The record's byte 18 is set by rdma_listen (verbs/cm/port_space.cpp)."""
    try:
        return port_file.read_bytes()[18:19] == b"\1"
    except FileNotFoundError:  # replaced meanwhile, or its owner ended
        return False


def programs_of(build):
    """Where CMake puts the binaries built from programs/."""
    return build / "tests/interop"


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def must_succeed(program, limit_s):
    status = program.wait(limit_s)
    if status != 0:
        raise Failed(f"{program.name} ended with {status}")


def must_print(program, patterns):
    for pattern in patterns:
        if not re.search(pattern, program.output, re.MULTILINE):
            raise Failed(f"{program.name} did not print /{pattern}/")


def must_report_sizes(program, sizes):
    """perftest's table: '#bytes #iterations numbers...', a row for each message size."""
    rows = re.findall(r"^\s*(\d+)\s+\d+\s+([\d.]+)\s+[\d.]+", program.output, re.MULTILINE)
    missing = sorted(set(sizes) - {int(size) for size, _ in rows})
    if missing:
        raise Failed(f"{program.name} printed no row for {missing} bytes")


def alone(run):
    program = run.start("program", run.case.server)
    must_succeed(program, run.case.limit_s)
    must_print(program, run.case.expect)


def pair(run):
    server = run.start_server()
    client = run.start("client", run.case.client)
    must_succeed(client, run.case.limit_s)
    must_succeed(server, READY_S)
    must_print(client, run.case.expect)
    must_print(server, run.case.expect_server)
    must_report_sizes(client, run.case.sizes)
    if run.case.killed:
        client.end()
        clear_up(run)


def served(run):
    """A server that never ends by itself, and one client."""
    server = run.start_server()
    client = run.start("client", run.case.client)
    must_succeed(client, run.case.limit_s)
    must_print(client, run.case.expect)
    if run.case.copies and pathlib.Path(run.words["copy"]).read_bytes() != run.original:
        raise Failed("the copy is not the same")
    if server.process.poll() is not None:
        raise Failed(f"the server ended with {server.process.poll()}; it was to serve on")
    server.kill()
    server.wait(READY_S)
    clear_up(run)


def clear_up(run):
    """The next process of an end cleans up after a killed one."""
    for end in USERS if run.case.between_hosts or run.case.two_users else ("next",):
        must_succeed(run.start(end, ["ibv_devinfo"]), READY_S)


def persistent_server(run):
    server = run.start_server()
    for number in (1, 2, 3):
        client = run.start(f"client {number}", run.case.client)
        must_succeed(client, run.case.limit_s)
        must_print(client, run.case.expect)
    if server.process.poll() is not None:
        raise Failed(f"the server ended with {server.process.poll()}; it was to serve on")
    server.kill()
    server.wait(READY_S)
    clear_up(run)


def killed(run):
    server = run.start_server()
    client = run.start("client", run.case.client)
    victim, survivor = (client, server) if run.case.killed == "client" else (server, client)
    client.wait_until_it_used_cpu(WORK_S, READY_S)  # a server does not notice one-sided traffic
    victim.kill()
    status = survivor.wait(NOTICE_S)
    if status == 0:
        raise Failed(f"the {survivor.name} ended with 0 although its partner was killed")
    if status < 0:
        raise Failed(f"the {survivor.name} died of signal {-status} when its partner was killed")
    if run.leftovers():  # the victim was still being torn down when the survivor checked; then the next process cleans up
        clear_up(run)


def cut(run):
    """The ends go on by another carrier, and end as if nothing had happened."""
    server = run.start_server()
    client = run.start("client", run.case.client)
    client.wait_until_it_used_cpu(CUT_S, READY_S)
    run.namespaces.drop_udp()
    must_succeed(client, run.case.limit_s)
    must_print(client, run.case.expect)
    server.kill()
    server.wait(READY_S)
    clear_up(run)


def disturbed(run):
    """The client must end with an error that it expects; the server of one-sided traffic need not notice."""
    server = run.start_server()
    client = run.start("client", run.case.client)
    client.wait_until_it_used_cpu(WORK_S, READY_S)
    if run.case.disturb:
        run.namespaces.run(run.case.disturbed, *run.case.disturb)
    else:
        {"server": server, "client": client}[run.case.disturbed].kill(signal.SIGSTOP)
    status = client.wait(NOTICE_S)
    if status <= 0:
        raise Failed(f"the client ended with {status} although the way to its peer was disturbed")
    must_print(client, run.case.expect)
    server.kill()
    server.wait(READY_S)
    clear_up(run)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("case", nargs="?")
    arguments = parser.parse_args()
    if arguments.list:
        for case in cases.CASES:
            print(case.name, "interop" if case.label == "interop" else f"interop,{case.label}", int(case.limit_s + 4 * READY_S), case.processors)
        return 0
    case = next((case for case in cases.CASES if case.name == arguments.case), None)
    if case is None or arguments.build is None:
        parser.error("wants --build DIR and the name of a case (--list)")
    why_not = why_not_here(case, arguments.build.resolve())
    if why_not:
        print(f"SKIPPED {case.name}: {why_not}")
        return SKIPPED

    run, problem = Run(arguments.build.resolve(), case), None
    try:
        {"alone": alone, "pair": pair, "served": served, "persistent_server": persistent_server, "killed": killed,
         "disturbed": disturbed, "cut": cut}[case.how](run)
    except (Failed, Expired) as error:
        problem = str(error)
    finally:
        run.end()
    if problem is None and run.leftovers():
        problem = f"left behind in WEIR_RUNTIME_DIR: {', '.join(run.leftovers())}"
    shutil.rmtree(run.scratch, ignore_errors=True)
    for program in run.programs:
        print(f"--- {program.name}: exit status {program.process.returncode}")
        lines = program.lines
        print("\n".join(lines if len(lines) <= 80 else [*lines[:40], f"... {len(lines) - 80} lines ...", *lines[-40:]]))
    reported = fault_of_the_peer(case, run.programs) if problem else None
    if reported:
        print(f"SKIPPED {case.name}: {problem}; this is the program's own fault, reported as {reported}")
        return SKIPPED
    print(f"FAILED {case.name}: {problem}" if problem else f"passed {case.name}")
    return 1 if problem else 0


def fault_of_the_peer(case, programs):
    """Where the fault is reported that the programs' output shows, if it is one that the case knows."""
    printed = "\n".join(line for program in programs for line in program.lines)
    return next((where for pattern, where in case.known.items() if re.search(pattern, printed)), None)


if __name__ == "__main__":
    sys.exit(main())
