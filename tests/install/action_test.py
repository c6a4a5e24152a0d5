#!/usr/bin/env python3
"""action.yml, the GitHub action, run step by step as a runner would: it builds once, and then takes the package from the cache.

  action_test.py SOURCE

`make`, `sudo` and `apt-get` are stand-ins that write down how they were called; actions/cache is a folder that stays.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

SOURCE = pathlib.Path(sys.argv[1]).resolve()
STEPS = yaml.safe_load((SOURCE / "action.yml").read_text())["runs"]["steps"]
STAND_INS = {
    "make": 'echo "make ${@: -1}" >> "$CALLS"; mkdir -p "$2/build/release/packages"; touch "$2/build/release/packages/weir-nic_1.deb"',
    "apt-get": 'echo "apt-get $*" >> "$CALLS"',
    "sudo": 'exec "$@"',
    "weir": 'echo "weir $*" >> "$CALLS"',
}


class Action(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-action-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("bin", "home", "action"):
            (self.folder / name).mkdir()
        for name, script in STAND_INS.items():
            (self.folder / "bin" / name).write_text(f"#!/bin/bash\n{script}\n")
            (self.folder / "bin" / name).chmod(0o755)
        (self.folder / "action/a.cpp").write_text("int a;\n")

    def job(self, packages="nic", annotations="true"):
        """Runs the action; returns its calls and the cache's key. What it adds to the job's environment is in `environment`."""
        for name in ("calls", "environment"):
            (self.folder / name).write_text("")
        values = {"inputs.packages": packages, "inputs.annotations": annotations}
        values["inputs.packages == 'all' && 'packages' || 'nic-package'"] = "packages" if packages == "all" else "nic-package"
        for step in STEPS:
            if "if" in step and not self.holds(step["if"], values):
                continue
            if "uses" in step:
                self.assertRegex(step["uses"], r"^actions/cache@v\d+$")
                self.assertEqual(step["with"]["path"], "~/.cache/weir-packages")
                key = self.filled(step["with"]["key"], values)
                hit = any((self.folder / "home/.cache/weir-packages").glob("*.deb"))
                values["steps.cache.outputs.cache-hit"] = "true" if hit else "false"
                continue
            (self.folder / "output").write_text("")
            done = subprocess.run([step["shell"], "--noprofile", "--norc", "-eo", "pipefail", "-c", self.filled(step["run"], values)],
                                  env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder / "home"),
                                       "CALLS": str(self.folder / "calls"), "GITHUB_ACTION_PATH": str(self.folder / "action"),
                                       "GITHUB_OUTPUT": str(self.folder / "output"),
                                       "GITHUB_ENV": str(self.folder / "environment")}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for line in (self.folder / "output").read_text().splitlines():
                name, value = line.split("=", 1)
                values[f"steps.{step['id']}.outputs.{name}"] = value
        return (self.folder / "calls").read_text().splitlines(), key

    def holds(self, condition, values):
        found = re.fullmatch(r"(\S+) (==|!=) '(\w*)'", condition)
        self.assertTrue(found, condition)
        return (values[found[1]] == found[3]) == (found[2] == "==")

    @staticmethod
    def filled(text, values):
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], text)

    def test_builds_once_and_installs_what_it_built(self):
        calls, _ = self.job()
        self.assertEqual(calls[0], "make nic-package")
        self.assertIn("weir-nic_1.deb", calls[2])
        self.assertEqual(calls[-1], "weir version")
        again, _ = self.job()
        self.assertEqual(again, calls[1:])

    def test_all_packages_are_another_target_and_another_key(self):
        _, nic = self.job()
        (self.folder / "home/.cache/weir-packages/weir-nic_1.deb").unlink()
        calls, every = self.job("all")
        self.assertEqual(calls[0], "make packages")
        self.assertNotEqual(nic, every)

    def test_the_key_changes_with_the_source_and_not_with_what_was_built(self):
        _, first = self.job()
        _, second = self.job()
        (self.folder / "action/a.cpp").write_text("int b;\n")
        _, third = self.job()
        self.assertEqual(first, second)
        self.assertNotEqual(second, third)

    def test_annotations_are_a_setting_of_the_whole_job_unless_refused(self):
        for wanted, expected in (("true", "WEIR_FAULTS_ANNOTATIONS=1\n"), ("false", "")):
            self.job(annotations=wanted)
            self.assertEqual((self.folder / "environment").read_text(), expected)

    def test_its_targets_are_in_the_makefile(self):
        targets = set(re.findall(r"^([a-z-]+):", (SOURCE / "Makefile").read_text(), re.M))
        self.assertLessEqual({"packages", "nic-package"}, targets)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
