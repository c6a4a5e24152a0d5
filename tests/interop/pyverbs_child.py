#!/usr/bin/env python3
"""Runs tests of rdma-core's pyverbs suite in this process and reports each as a line of JSON.

usage: pyverbs_child.py SUITE RESULTS --list | TEST...     SUITE: rdma-core's tests/ folder; RESULTS: a file to append to

Before a test starts its name is written, so that whoever started us knows which one ended the process.
"""
import faulthandler
import importlib
import importlib.util
import json
import os
import sys
import unittest

TEST_LIMIT_S = 60  # after that every thread's stack is printed and the process ends


def load(suite):
    """Makes the folder the package `tests`. Its parent is not on the path, because it has the sources of another pyverbs."""
    sys.path.insert(0, suite)
    sys.argv[1:] = []
    parser = importlib.import_module("args_parser").parser
    parser.parse_args()
    spec = importlib.util.spec_from_file_location("tests", os.path.join(suite, "__init__.py"),
                                                  submodule_search_locations=[suite])
    sys.modules["tests"] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


def cases_in(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases_in(test)
        else:
            yield test


class Reporter(unittest.TestResult):
    def __init__(self, results):
        super().__init__()
        self.results = results

    def report(self, test, outcome, why=""):
        self.results.write(json.dumps({"test": test.id(), "outcome": outcome, "why": why}) + "\n")
        self.results.flush()

    def startTest(self, test):
        super().startTest(test)
        faulthandler.dump_traceback_later(TEST_LIMIT_S, exit=True)
        self.report(test, "started")

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def addSuccess(self, test):
        self.report(test, "passed")

    def addSkip(self, test, reason):
        self.report(test, "skipped", reason)

    def addFailure(self, test, err):
        self.report(test, "failed", self._exc_info_to_string(err, test))

    addError = addFailure


def main():
    faulthandler.enable()
    suite, results, *names = sys.argv[1:]
    load(suite)
    if names == ["--list"]:
        modules = sorted(name[:-3] for name in os.listdir(suite) if name.startswith("test_") and name.endswith(".py"))
        found = unittest.defaultTestLoader.loadTestsFromNames([f"tests.{module}" for module in modules])
        with open(results, "a", encoding="utf-8") as out:
            out.writelines(json.dumps({"test": test.id(), "outcome": "listed", "why": ""}) + "\n" for test in cases_in(found))
        return
    with open(results, "a", encoding="utf-8") as out:
        unittest.defaultTestLoader.loadTestsFromNames(names).run(Reporter(out))


if __name__ == "__main__":
    main()
