#!/usr/bin/env python3
"""Runs the whole matrix, one case after the other, and reports the results: this is `make interop`.

usage: matrix.py --build DIR [--rows FILE] [WORD ...]      WORD: only cases whose name has it

A line for each case as it ends, with how many are done; then a table of programs with how many of their cases passed,
failed and were skipped. FILE (default: DIR/interop/rows.md) gets a row for each case with its commands and its result:
docs/compatibility-rows.md is one. The output of each case stays in DIR/interop/NAME.log.

A case that fails is run once more, as `make test` does: where programs that spin share two cores one may run out of time
once. "again" beside a result says so. The last rows are rdma-core's pyverbs suite and UCX's unit tests
(pyverbs_suite.py and ucx_suite.py say what they need).
Exit status 0: nothing failed.
"""
import argparse
import collections
import dataclasses
import pathlib
import platform
import shlex
import subprocess
import sys
import time

import cases
from case import HOST
from run_case import SKIPPED
from two_namespaces import ADDRESSES

HERE = pathlib.Path(__file__).resolve().parent
OUTCOMES = ("passed", "failed", "skipped")
SUITES = {"pyverbs_suite": ["pyverbs_suite.py"], "pyverbs_suite.packets": ["pyverbs_suite.py", "--packets"], "ucx_suite": ["ucx_suite.py"]}
PLACES = {"port": "PORT", "server_namespace": "PID", "here": "tests/interop", "programs": "build/release/tests/interop", "scratch": "FOLDER",
          "file": "FILE", "copy": "COPY", "bin": "build/release/bin"}


@dataclasses.dataclass
class Row:
    name: str
    commands: list
    outcome: str
    again: bool
    seconds: float
    last_line: str

    @property
    def program(self):
        return self.name.partition(".")[0]

    @property
    def result(self):
        return self.outcome + (", again" if self.again else "")


def commands_of(case):
    """The commands as a user would type them."""
    launcher = ["weir", "run", *case.options, "--"]
    addresses = ADDRESSES[case.between_hosts] if case.between_hosts else dict.fromkeys(("server", "client"), HOST)
    ends = {"client": case.server} if case.how == "alone" else {"server": case.server, "client": case.client}
    return [shlex.join([*launcher, *(word.format(**{**PLACES, "host": addresses["server"], "own": addresses[end]}) for word in words)])
            for end, words in ends.items()]


def run_once(words, log):
    began = time.monotonic()
    with open(log, "w", encoding="utf-8") as out:
        status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT).returncode
    outcome = {0: "passed", SKIPPED: "skipped"}.get(status, "failed")
    lines = log.read_text(errors="replace").strip().splitlines()
    return outcome, time.monotonic() - began, lines[-1] if lines else ""


def run(name, commands, words, log):
    outcome, seconds, last_line = run_once(words, log)
    again = outcome == "failed"
    if again:
        log.rename(log.with_suffix(".first.log"))
        outcome, more_s, last_line = run_once(words, log)
        seconds += more_s
    return Row(name, commands, outcome, again, seconds, last_line)


def work(build, words):
    """(name, commands to show, command to run) of each requested case."""
    found = [(case.name, commands_of(case), [str(HERE / "run_case.py"), "--build", str(build), case.name]) for case in cases.CASES]
    found += [(suite, [shlex.join([f"tests/interop/{script}", "--build", "build/release", *more])],
               [str(HERE / script), "--build", str(build), *more]) for suite, (script, *more) in SUITES.items()]
    return [row for row in found if all(word in row[0] for word in words)]


def summary(rows):
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        counts[row.program][row.outcome] += 1
        counts["all"][row.outcome] += 1
    width = max(map(len, counts))
    yield f"{'':{width}} {'passed':>8}{'failed':>8}{'skipped':>8}"
    for program, count in counts.items():
        if program != "all":
            yield f"{program:{width}} " + "".join(f"{count[outcome]:8}" for outcome in OUTCOMES)
    yield f"{'all':{width}} " + "".join(f"{counts['all'][outcome]:8}" for outcome in OUTCOMES)


def markdown(rows):
    """A table for each program; `weir run -- SERVER`, `weir run -- CLIENT`."""
    yield "# Compatibility, row by row"
    yield ""
    yield "What `make interop` ran last, with each command and its result; [compatibility.md](compatibility.md) says what it means."
    yield f"Made by `make interop ROWS=docs/compatibility-rows.md` on {platform.machine()} Linux; not edited by hand."
    for program in dict.fromkeys(row.program for row in rows):
        yield from ("", f"## {program}", "", "| case | commands | result |", "|---|---|---|")
        for row in rows:
            if row.program == program:
                shown = "<br>".join(f"`{command}`" for command in row.commands).replace("|", "\\|")
                more = f": {row.last_line}" if row.name in SUITES else ""  # how many of its tests passed
                yield f"| {row.name} | {shown} | {row.result}{more} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rows", type=pathlib.Path)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    logs = build / "interop"
    logs.mkdir(exist_ok=True)
    todo = work(build, arguments.words)
    if not todo:
        parser.error("no case has all those words in its name")
    rows = []
    for number, (name, commands, words) in enumerate(todo, 1):
        row = run(name, commands, words, logs / f"{name}.log")
        rows.append(row)
        print(f"[{number:{len(str(len(todo)))}}/{len(todo)}] {name:55} {row.result:14}{row.seconds:6.1f} s", flush=True)
        if row.outcome != "passed" or name in SUITES:
            print(f"    {row.last_line}", flush=True)
    target = arguments.rows or logs / "rows.md"
    target.write_text("\n".join(markdown(rows)) + "\n", encoding="utf-8")
    print("", *summary(rows), "", f"Rows: {target}; output of each case: {logs}/NAME.log", sep="\n")
    for row in rows:
        if row.outcome == "failed":
            print(f"FAILED {row.name}: {row.last_line}")
    return 1 if any(row.outcome == "failed" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
