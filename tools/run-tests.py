#!/usr/bin/env python3
"""Runs the checks and tests that `make test` and `make test-all` stand for, stage by stage, and counts them.

usage: run-tests.py [STAGE ...]        the stages of `make test` unless told
       run-tests.py all                those of `make test-all`

Unit tests, golden tests and fuzz corpora are compiled and run once, with the sanitizers (asan). The stage release builds what users get
and runs other programs on it. Each stage's first line says what it covers; `all` repeats these lines at the end.
A stage that fails does not stop the ones after it, unless they need what it builds. The last line printed is
'N passed, N failed, N skipped': CTest's tests, and each check that is not a CTest test counted as one.
Exit status 0 when nothing failed.
"""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAILURE_LINES = 8  # of what a failed test printed, again in the summary: logs are often kept from their end
JOBS = os.environ.get("JOBS") or str(os.cpu_count() or 2)


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.failures, self.stages = [], []
        self.second_try = []  # failed once, then passed

    def one(self, name, ok, output=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append((name, output))


def say(text):
    print(text, flush=True)


def command(*words, env=None):
    say("$ " + " ".join(map(str, words)))
    return subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}).returncode == 0


def check(tally, name, *words):
    ok = command(*words)
    tally.one(name, ok)
    return ok


def build(tally, preset, targets=()):
    """Configures and builds; only a failure is counted, as one failed test."""
    options = ["--target", *targets] if targets else []
    ok = command("cmake", "--preset", preset, "--log-level=WARNING") and command(
        "cmake", "--build", "--preset", preset, "-j", JOBS, *options)
    if not ok:
        tally.one(f"{preset}: build", False)
    return ok


def without_randomised_addresses():
    """ThreadSanitizer cannot always place its shadow where the kernel randomises addresses by 32 bits."""
    words = ["setarch", platform.machine(), "-R"]
    try:
        return words if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
    except FileNotFoundError:
        return []


def run_ctest(preset, before, *selection):
    """One run: whether it ended well, and its test cases by name; None where it wrote no report."""
    report = ROOT / "build" / preset / "tests.xml"
    report.unlink(missing_ok=True)
    ended_well = command(*before, "ctest", "--preset", preset, "-j", JOBS, "--output-junit", str(report), *selection)
    if not report.exists():
        return ended_well, None
    return ended_well, {case.get("name"): case for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase")}


def tests_of_suite(preset, name):
    """What the suite of that name wrote of each of its tests (cmake/TestsBySuite.cmake): name, whether it ended well, whether
    it was skipped, and what it printed; nothing for a CTest test that is no suite."""
    report = ROOT / "build" / preset / "suites" / (name.replace("/", "+") + ".xml")
    try:
        cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
    except (FileNotFoundError, xml.etree.ElementTree.ParseError):
        return []
    return [(f"{case.get('classname')}.{case.get('name')}", case.find("failure") is None,
             case.find("skipped") is not None or case.get("status") == "notrun",
             "\n".join(failure.text or "" for failure in case.iter("failure"))) for case in cases]


def failed(case):
    return case.get("status") not in ("run", "notrun", "disabled") and case.find("skipped") is None


def ctest(tally, preset, *selection, before=()):
    shutil.rmtree(ROOT / "build" / preset / "suites", ignore_errors=True)
    ended_well, cases = run_ctest(preset, before, *selection)
    if cases is None:
        tally.one(f"{preset}: ctest", False)
        return
    # Debian's own programs are run against each other on however few cores there are; one that ran out of time once
    # gets a second chance. What fails twice in a row fails. What does not is named at the end: a test of ours that
    # fails every second time is a defect to find.
    if any(map(failed, cases.values())):
        ended_well, again = run_ctest(preset, before, "--rerun-failed")
        for name, case in (again or {}).items():
            if not failed(case):
                tally.second_try.append(f"{preset}: {name}")
            cases[name] = case
    failed_before = tally.failed
    for name, case in cases.items():
        status = case.get("status")
        tests = tests_of_suite(preset, name)
        # A suite whose process died says nothing of the test it died in.
        if tests and (status == "run" or not all(ok for _, ok, _, _ in tests)):
            for test, ok, was_skipped, output in tests:
                if was_skipped:
                    tally.skipped += 1
                else:
                    tally.one(f"{preset}: {test}", ok, output)
        elif status in ("notrun", "disabled") or case.find("skipped") is not None:
            tally.skipped += 1
        else:
            tally.one(f"{preset}: {name}", status == "run", case.findtext("system-out", ""))
    if not ended_well and tally.failed == failed_before:
        tally.one(f"{preset}: ctest", False)


def stage_format(tally):
    """the sources are as clang-format writes them"""
    check(tally, "format", "tools/check-format.sh")


def stage_tree(tally):
    """include directions, missing includes, READMEs, lengths, forbidden words (in the release stage these are CTest tests, label lint)"""
    check(tally, "layers", "tools/check-layers.py")
    check(tally, "includes", "tools/check-includes.py")
    check(tally, "tree", "tools/check-tree.py")


def stage_tidy(tally):
    """clang-tidy on the layers below the applications"""
    check(tally, "tidy", "tools/check-tidy.py", "-j", JOBS, "wire", "link", "rnic", "verbs", "waiting", "transport", "rdma")


def stage_tidy_all(tally):
    """clang-tidy on everything"""
    check(tally, "tidy", "tools/check-tidy.py", "-j", JOBS)


def stage_release(tally):
    """the product as users get it; other people's programs on it (a pairwise cover), cli, docs, installing; what the sanitizers cannot run"""
    if build(tally, "release"):
        ctest(tally, "release", "-L", "interop|lint|optimised", "-LE", "bench|slow")


def stage_release_all(tally):
    """the product and every unit test, optimised; all cases of the matrix and all slow tests"""
    if build(tally, "release") and build(tally, "release", ["unit_tests"]):
        ctest(tally, "release", "-LE", "bench|vm")


def stage_vm(tally):
    """Weir's programs on the kernel's Soft-RoCE, and its packets against it, in a virtual machine (with KVM where it opens)"""
    if command("tools/install-packages.sh", "tools/packages-vm.txt") and build(tally, "release"):
        ctest(tally, "release", "-L", "vm")


def stage_asan(tally):
    """unit tests, golden tests and fuzz corpora under AddressSanitizer and UndefinedBehaviorSanitizer"""
    if build(tally, "asan", ["unit_tests"]):
        ctest(tally, "asan", "-L", "unit|golden|fuzz|sanitized", "-LE", "bench|slow|interop$|lint")


def stage_tsan(tally):
    """unit tests of what has threads, under ThreadSanitizer"""
    if build(tally, "tsan", ["threaded_tests"]):
        ctest(tally, "tsan", "-L", "unit|sanitized", "-LE", "bench|slow|interop$|lint", before=without_randomised_addresses())


STAGES = {"format": stage_format, "tree": stage_tree, "tidy": stage_tidy, "tidy-all": stage_tidy_all, "release": stage_release,
          "release-all": stage_release_all, "asan": stage_asan, "tsan": stage_tsan, "vm": stage_vm}
TEST = ["format", "release", "tidy", "asan"]
TEST_ALL = ["format", "tree", "release-all", "tidy-all", "asan", "tsan", "vm"]  # for a release, and before a piece of work is called done


def main():
    names = sys.argv[1:] or TEST
    if names == ["all"]:
        names = TEST_ALL
        os.environ["WEIR_TEST_ALL"] = "1"  # tools/run-if-changed.py
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        sys.exit(f"no stage {unknown[0]}; there are {', '.join(STAGES)}")
    tally = Tally()
    for number, name in enumerate(names, 1):
        say(f"\n=== {number}/{len(names)} {name}: {STAGES[name].__doc__}")
        began, failed = time.monotonic(), tally.failed
        STAGES[name](tally)
        tally.stages.append((name, time.monotonic() - began, tally.failed - failed))
    say("\n=== summary")
    for name, seconds, failed in tally.stages:
        covered = f": {STAGES[name].__doc__}" if names == TEST_ALL else ""
        say(f"{name:11} {seconds:6.0f} s  {'ok' if failed == 0 else f'{failed} failed'}{covered}")
    for name in tally.second_try:
        say(f"passed only the second time: {name}")
    for name, output in tally.failures:
        say(f"FAILED {name}")
        for line in [line for line in output.splitlines() if line.strip()][-FAILURE_LINES:]:
            say(f"    {line[:200]}")
    say("stages: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds, _ in tally.stages))
    say(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()
