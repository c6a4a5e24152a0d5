#!/usr/bin/env python3
"""The TOML and YAML that pages show can be read, and names only keys that there are.

  settings_blocks_test.py SOURCE

A block without commands is TOML if it begins with a table, and YAML if it begins with a key. Keys of scenarios are those that some
scenario of this tree has, which the tests run, or that the reader of scenarios names. The C++ and C are compiled by cpp_blocks_test.py, the rest runs in snippets_test.py.
"""
import pathlib
import re
import sys
import tomllib
import unittest

import yaml

from page_blocks import blocks

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PAGES = ["README.md", *sorted(str(path.relative_to(SOURCE)) for path in SOURCE.glob("docs/*.md"))]
TOML, YAML = re.compile(r"\[\[?\w+\]\]?$"), re.compile(r"[a-z_]+:$")


def beginning_with(pattern):
    for page in PAGES:
        for block in blocks((SOURCE / page).read_text(encoding="utf-8")):
            if not block.commands() and block.language in ("", "toml", "yaml") and pattern.match(block.lines[0]):
                yield f"{page}:{block.line}", "\n".join(block.lines)


def keys_of(tables, where=""):
    """"program.host" of {"program": [{"host": ...}]}."""
    for key, value in tables.items():
        yield where + key
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from keys_of(inner, f"{where}{key}.")


class SettingsBlocks(unittest.TestCase):
    def test_toml_has_keys_of_scenarios(self):
        known = set()
        for path in [*SOURCE.glob("twin/scenarios/*.toml"), *SOURCE.glob("fabric/*/*.toml"), *SOURCE.glob("tests/twin/**/*.toml")]:
            known |= set(keys_of(tomllib.loads(path.read_text(encoding="utf-8"))))
        source = "".join(path.read_text(encoding="utf-8") for path in [*SOURCE.glob("twin/*.cpp"), *SOURCE.glob("fabric/*/*.cpp")])
        found = list(beginning_with(TOML))
        self.assertGreaterEqual(len(found), 3)
        for where, text in found:
            with self.subTest(where):
                used = set(keys_of(tomllib.loads(text)))
                self.assertEqual({key for key in used - known if f'"{key.split(".")[-1]}"' not in source}, set())

    def test_yaml_of_ci_uses_the_action_and_its_inputs(self):
        action = yaml.safe_load((SOURCE / "action.yml").read_text())
        jobs = [yaml.safe_load(text) for _, text in beginning_with(YAML) if text.startswith("jobs:")]
        self.assertEqual(len(jobs), 1)
        for job in jobs[0]["jobs"].values():
            steps = job["steps"]
            self.assertTrue(all(("run" in step) != ("uses" in step) for step in steps), steps)
            ours = [step for step in steps if "/weir@" in step.get("uses", "")]
            self.assertEqual(len(ours), 1)
            self.assertLessEqual(set(ours[0].get("with", {})), set(action["inputs"]))

    def test_yaml_of_prometheus_has_targets(self):
        configurations = [yaml.safe_load(text) for _, text in beginning_with(YAML) if "scrape_configs" in text]
        self.assertGreaterEqual(len(configurations), 1)
        for configuration in configurations:
            for job in configuration["scrape_configs"]:
                self.assertRegex(job["static_configs"][0]["targets"][0], r"^[\w.]+:\d+$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
