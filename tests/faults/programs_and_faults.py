#!/usr/bin/env python3
"""Programs that nobody here wrote, each with every kind of fault: what they did, as the table of docs/faults-of-programs.md.

  programs_and_faults.py WEIR                      tests: each program and each fault at least once, against the page's table
  programs_and_faults.py WEIR --all                tests: every cell (an hour on two busy cores)
  programs_and_faults.py WEIR --write [NAME...]    runs every cell, or those of programs and faults, and writes them into the page
  programs_and_faults.py WEIR --try PROGRAM [FAULT]  one cell, with all that both ends print

Both ends run in hosts of `weir fabric up`. Exit status 77: this machine permits no user namespaces. A program that is not
installed has no cells here.
"""
import dataclasses
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WEIR = os.path.abspath(sys.argv[1])
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/faults-of-programs.md"
BEGIN, END = "<!-- written by tests/faults/programs_and_faults.py --write -->\n", "<!-- up to here -->\n"
PORT = "18800"
NETWORK = f"cells-{os.getpid()}"
ADDRESS = "10.77.0.1"  # of the first host, where the server is
SKIPPED = 77
READY_S = 20
SILENT_S = 20  # a program hangs that sends nothing for so long: the longest pause between retries of these programs is 4 s
LIMIT_S = 300
ALIVE = 10     # packets in two seconds


@dataclasses.dataclass
class Program:
    name: str
    project: str
    server: str
    client: str
    ready: str = "tcp"     # where the server listens: tcp or rdma
    serves: bool = False   # its server goes on for ever


@dataclasses.dataclass
class Fault:
    name: str              # the column
    fault: str
    at: str = "client"     # which end it is for


UCX = "env UCX_TLS=rc_v,self UCX_NET_DEVICES=weir0:1"
PROGRAMS = [
    Program("ib_write_bw", "perftest", "ib_write_bw -p {port} -x 0 -D 3 -s 4096", "ib_write_bw -p {port} -x 0 -D 3 -s 4096 {host}"),
    Program("ib_read_lat", "perftest", "ib_read_lat -p {port} -x 0 -D 3", "ib_read_lat -p {port} -x 0 -D 3 {host}"),
    Program("ibv_rc_pingpong", "rdma-core", "ibv_rc_pingpong -p {port} -g 0 -n 6000 -c", "ibv_rc_pingpong -p {port} -g 0 -n 6000 -c {host}"),
    Program("ibv_srq_pingpong", "rdma-core", "ibv_srq_pingpong -p {port} -g 0 -n 6000", "ibv_srq_pingpong -p {port} -g 0 -n 6000 {host}"),
    Program("rping", "rdma-core", "rping -s -p {port} -C 1500 -V -a {host}", "rping -c -p {port} -C 1500 -V -a {host}", ready="rdma"),
    Program("rstream", "rdma-core", "rstream -p {port} -S 4096 -C 100000 -T v", "rstream -p {port} -S 4096 -C 100000 -T v -s {host}", ready="rdma"),
    Program("ucx_perftest", "UCX", f"{UCX} ucx_perftest -p {{port}}", f"{UCX} ucx_perftest -p {{port}} {{host}} -t tag_lat -n 3000 -w 10"),
    Program("fi_pingpong", "libfabric", "fi_pingpong -p verbs -e msg -B {port} -I 4000 -S 4096", "fi_pingpong -p verbs -e msg -P {port} -I 4000 -S 4096 {host}"),
    Program("NPopenmpi", "Open MPI", "", "NPopenmpi -p 0 -u 64"),
    Program("qperf", "qperf", "qperf -lp {port}", "qperf -lp {port} {host} -t 3 rc_bi_bw", serves=True),
]

FAULTS = [
    Fault("drop", "drop rate=1%"),
    Fault("drop all", "drop from=1s"),
    Fault("duplicate", "duplicate rate=1%"),
    Fault("corrupt", "corrupt rate=1%"),
    Fault("alter", "alter rate=1% direction=out"),
    Fault("delay", "delay 5ms rate=1%"),
    Fault("reorder", "reorder 2 rate=1%"),
    Fault("mark", "mark rate=5%"),
    Fault("down 0.2 s", "down from=1s until=1.2s"),
    Fault("gid-gone", "gid-gone from=1s until=1.2s"),
    Fault("pause 0.2 s", "pause from=1s until=1.2s"),
    Fault("rnr", "rnr 2ms qp=1 nth=3"),
    Fault("refuse memory", "refuse ENOMEM call=ibv_reg_mr nth=1"),
    Fault("refuse post", "refuse ENOMEM call=ibv_post_send nth=10"),
    Fault("complete", "complete IBV_WC_RETRY_EXC_ERR nth=10"),
    Fault("qp-error", "qp-error nth=50"),
    Fault("kill peer", "kill from=1500ms", at="server"),
    Fault("stop peer", "stop from=1500ms", at="server"),
]


def installed(program):
    words = [word for word in shlex.split(program.client) if "=" not in word and word != "env"]
    return shutil.which(words[0]) is not None


class Hosts:
    """Two hosts; ended with the object's context."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-faults-")
        os.environ["WEIR_RUNTIME_DIR"] = f"{self.folder.name}/runtime"
        made = subprocess.run([WEIR, "fabric", "up", "--name", NETWORK, "--hosts", "2"], capture_output=True, text=True)
        if made.returncode:
            self.folder.cleanup()
            print(f"skipped: {made.stderr}")
            sys.exit(SKIPPED)
        return self

    def __exit__(self, *_):
        subprocess.run([WEIR, "fabric", "down", NETWORK], capture_output=True)
        self.folder.cleanup()


def listens(program):
    if program.ready == "rdma":  # Weir's port space is files, whose byte 18 is set by rdma_listen (verbs/cm/port_space.cpp)
        runtime = os.environ["WEIR_RUNTIME_DIR"]
        return any(pathlib.Path(file).read_bytes()[18:19] == b"\1" for file in glob.glob(f"{runtime}/**/cm/*-{PORT}/*", recursive=True))
    lines = subprocess.run([WEIR, "fabric", "run", "--fabric", NETWORK, "--host", "h1", "--", "cat", "/proc/net/tcp", "/proc/net/tcp6"],
                           capture_output=True, text=True).stdout
    return re.search(rf":{int(PORT):04X} [0-9A-F]+:0000 0A", lines) is not None


def packets_sent():
    shown = subprocess.run([WEIR, "fabric", "list", "--json", NETWORK], capture_output=True, text=True).stdout
    return sum(host["sent"]["packets"] for host in json.loads(shown)["fabrics"][0]["hosts"])


class Cell:
    """One program with one fault. Ends what it started."""

    def __init__(self, program, fault):
        self.program, self.fault = program, fault
        self.texts = {}
        self.processes = []
        folder = tempfile.TemporaryDirectory(prefix="weir-cell-")
        with folder:
            self.folder = folder.name
            try:
                self.play()
            finally:
                for process in self.processes:
                    self.kill(process)

    def kill(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def options(self, end):
        faults = ["--fault", self.fault.fault] if self.fault.at == end and self.fault.fault else []
        return [*faults]

    def start(self, end, words):
        self.output[end] = open(f"{self.folder}/{end}", "w+")
        host = ["--fabric", NETWORK, "--host", "h1" if end == "server" else "h2"]
        process = subprocess.Popen([WEIR, "fabric", "run", *host, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.output[end],
                                   stderr=subprocess.STDOUT, start_new_session=True)
        self.processes.append(process)
        return process

    def command(self, end):
        text = self.program.server if end == "server" else self.program.client
        return [*self.options(end), "--", *(word.format(port=PORT, host=ADDRESS) for word in shlex.split(text))]

    def wait(self, client):
        """The exit status, or None: it does nothing any more."""
        begun = quiet = time.monotonic()
        seen = 0
        while time.monotonic() < min(begun + LIMIT_S, quiet + SILENT_S):
            try:
                return client.wait(2)
            except subprocess.TimeoutExpired:
                now = packets_sent()
                if now > seen + ALIVE:  # some ask now and then whether the other end is there
                    quiet = time.monotonic()
                seen = now
        return None

    def play(self):
        self.output, self.texts = {}, {}
        begun = time.monotonic()
        server = None
        if self.program.server:
            server = self.start("server", self.command("server"))
            while not listens(self.program):
                if time.monotonic() > begun + READY_S or server.poll() is not None:
                    break
                time.sleep(0.02)
            client = self.start("client", self.command("client"))
        else:  # MPI: the rank in the second host is the client
            mpirun = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--mca", "plm_rsh_agent", f"{WEIR} fabric ssh",
                      "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
                      "-x", "UCX_TLS=rc_v,self"]
            ranks = [["--host", host, "-n", "1", WEIR, "run", *self.options(end), "--", *self.program.client.split()]
                     for end, host in (("server", "h1"), ("client", "h2"))]
            client = self.start("server", ["--", *mpirun, *ranks[0], ":", *ranks[1]])
        begun = time.monotonic()
        status = self.wait(client)
        self.seconds = time.monotonic() - begun
        peer = None
        if server is not None and not self.program.serves and status is not None:
            try:
                peer = server.wait(5)
            except subprocess.TimeoutExpired:
                pass
        if status is None:
            for process in self.processes:  # so that the faults are reported, if the program ends by it
                try:
                    os.killpg(process.pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            time.sleep(0.5)
        for process in self.processes:
            self.kill(process)
        for end, file in self.output.items():
            file.seek(0)
            self.texts[end] = file.read()
            file.close()
        self.status, self.peer = status, peer

    def fired(self):
        return re.search(r": fired\b", "".join(self.texts.values())) is not None

    def outcome(self):
        """A word for the table."""
        if self.status is None:
            return "hangs"
        if self.status < 0 or self.status in (128 + signal.SIGSEGV, 128 + signal.SIGABRT):
            number = -self.status if self.status < 0 else self.status - 128
            return f"dies ({signal.Signals(number).name})"
        if not self.fired() and self.fault.fault and self.fault.name != "stop peer":
            return "-"
        if self.status == 0 and re.search(r"failed|rror:|Couldn't", self.texts.get("client", "")):
            return "ends, status 0"
        return "goes on" if self.status == 0 else "ends"


def found(names, wanted):
    return next(each for each in names if each.name == wanted)


def print_cell(cell):
    for end, text in cell.texts.items():
        print(f"---- {end}\n{text}")
    print(f"status {cell.status}, the server's {cell.peer}, {cell.seconds:.1f} s: {cell.outcome()}")


# ---- the page

def last_words(cell):
    """What the program says of its end: its last line about something that went wrong."""
    for end in "client", "server":
        text = cell.texts.get(end, "").split("weir faults: ")[0]
        lines = [line.strip() for line in text.splitlines() if re.search(WRONG, line, re.I)]
        if lines:
            return re.sub(r"0x[0-9a-f]{4,}|\b\d{4,}\b|\[[\d.]+\]", "N", lines[-1])[:110].replace("`", "'").replace("|", "/")
    return ""


WRONG = r"fail|error|couldn't|unable|timed? ?out|exceeded|cannot|closed|reset|refused|unexpected|bad |invalid|mismatch|abort"


def read_page():
    """{(program, fault): outcomes}, and what was said: {(program, fault): words}."""
    text = PAGE.read_text()
    written = text[text.index(BEGIN) + len(BEGIN):text.index(END)]
    outcomes, said = {}, {}
    for line in written.splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if line.startswith("| `"):
            outcomes.update({(parts[0].strip("`"), fault.name): part for fault, part in zip(FAULTS, parts[1:])})
        elif at := re.fullmatch(r"- `(.+?)`, (.+?): `(.*)`", line):
            said[at[1], at[2]] = at[3]
    return outcomes, said


def write_page(outcomes, said):
    lines = ["| | " + " | ".join(fault.name for fault in FAULTS) + " |", "|---" * (len(FAULTS) + 1) + "|"]
    lines += ["| `" + program.name + "` | " + " | ".join(outcomes.get((program.name, fault.name), "") for fault in FAULTS) + " |" for program in PROGRAMS]
    lines += ["", "What they say when they end:", ""]
    lines += [f"- `{program.name}`, {fault.name}: `{said[program.name, fault.name]}`" for program in PROGRAMS for fault in FAULTS
              if said.get((program.name, fault.name))]
    text = PAGE.read_text()
    new = PAGE.with_suffix(".new")
    new.write_text(text[:text.index(BEGIN) + len(BEGIN)] + "\n".join(lines) + "\n" + text[text.index(END):])
    new.rename(PAGE)


def write(names):
    for program in PROGRAMS:
        for fault in FAULTS if installed(program) else []:
            if names and not {program.name, fault.name, f"{program.name}/{fault.name}"} & set(names):
                continue
            cell = Cell(program, fault)
            outcomes, said = read_page()
            outcomes[program.name, fault.name] = cell.outcome()
            said[program.name, fault.name] = last_words(cell) if cell.outcome().startswith("ends") else ""
            write_page(outcomes, said)
            print(f"{program.name}, {fault.name}: {cell.outcome()} after {cell.seconds:.1f} s", flush=True)


# ---- the test

def chosen():
    """Each program and each fault at least once, without those that hang: they take their time limit."""
    outcomes, _ = read_page()
    programs = [program for program in PROGRAMS if installed(program)]
    cells = []
    for index in range(max(len(programs), len(FAULTS))):
        fault = FAULTS[index % len(FAULTS)]
        turn = [programs[(index + step) % len(programs)] for step in range(len(programs))]
        cells += [(program, fault) for program in turn if outcomes[program.name, fault.name] not in ("hangs", "-", "")][:1]
    return cells


def test(cells):
    outcomes, _ = read_page()
    different = 0
    for program, fault in cells:
        cell, expected = Cell(program, fault), outcomes[program.name, fault.name]
        right = cell.outcome() in expected.split(" or ") or "-" in (cell.outcome(), expected)  # -: the work was over before the fault
        print(f"{'ok' if right else 'DIFFERENT'}  {program.name}, {fault.name}: {cell.outcome()} after {cell.seconds:.1f} s, expected: {expected}", flush=True)
        if not right:
            print_cell(cell)
        different += not right
    return different


if __name__ == "__main__":
    words = sys.argv[2:]
    with Hosts():
        if words[:1] == ["--try"]:
            print_cell(Cell(found(PROGRAMS, words[1]), found(FAULTS, words[2]) if len(words) > 2 else Fault("none", "")))
        elif words[:1] == ["--write"]:
            write(words[1:])
        else:
            every = [(program, fault) for program in PROGRAMS if installed(program) for fault in FAULTS]
            sys.exit(test(every if words else chosen()) != 0)
