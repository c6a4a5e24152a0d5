#!/usr/bin/env python3
"""Runs clang-tidy 19 with .clang-tidy on the tracked C++ sources, several at once.

usage: check-tidy.py [-j JOBS] [FOLDER ...]        every folder unless told

The compile commands come from the preset 'lint' (clang, no precompiled headers), which is configured, never built. A
file found clean is not looked at again until something it is made of changes: its text, the tree's headers that it
reaches, its flags, .clang-tidy, or clang-tidy itself. Those keys are files in build/lint/tidy-clean/.
Prints what clang-tidy says; exit status 1 when it said something.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from tree_files import tree_files

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/lint"
CLEAN = BUILD / "tidy-clean"
TIDY = "clang-tidy-19"
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def compile_commands():
    subprocess.run(["cmake", "--preset", "lint", "--log-level=WARNING"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    commands = {}
    for entry in entries:  # the first command of a file that several targets compile
        commands.setdefault(os.path.relpath(entry["file"], ROOT), entry["command"])
    return commands


def reached(name, texts):
    """`name` and every file of this tree that it includes, directly or not."""
    seen, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if current not in texts:
            texts[current] = (ROOT / current).read_bytes()
        waiting += [found.decode() for found in INCLUDE.findall(texts[current]) if (ROOT / found.decode()).is_file()]
    return sorted(seen)


def key_of(name, command, constants, texts):
    digest = hashlib.sha256(constants + command.encode())
    for file in reached(name, texts):
        digest.update(file.encode() + b"\0" + texts[file] + b"\0")
    return digest.hexdigest()


def tidy(name):
    done = subprocess.run([TIDY, "-p", str(BUILD), "--quiet", name], cwd=ROOT, capture_output=True, text=True)
    # What clang-tidy says of itself ("12 warnings generated") goes to stderr; findings and compile errors to stdout.
    return done.returncode == 0, done.stdout.strip() or done.stderr.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", type=int, default=os.cpu_count() or 2)
    parser.add_argument("folders", nargs="*")
    arguments = parser.parse_args()

    commands = compile_commands()
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    constants = version + (ROOT / ".clang-tidy").read_bytes()
    CLEAN.mkdir(exist_ok=True)
    texts, wanted = {}, []
    for name in tree_files(ROOT):
        if name not in commands or (arguments.folders and name.split("/")[0] not in arguments.folders):
            continue
        key = CLEAN / key_of(name, commands[name], constants, texts)
        if not key.exists():
            wanted.append((name, key))
    total = sum(1 for name in tree_files(ROOT) if name in commands and (
        not arguments.folders or name.split("/")[0] in arguments.folders))
    if total == 0:
        sys.exit(f"tidy: no source in {' '.join(arguments.folders) or 'the tree'} is compiled")
    print(f"tidy: {len(wanted)} of {total} files have changed since they were found clean", flush=True)

    dirty, began = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.j) as pool:
        running = {pool.submit(tidy, name): (name, key) for name, key in wanted}
        for number, future in enumerate(concurrent.futures.as_completed(running), 1):
            name, key = running[future]
            clean, said = future.result()
            print(f"[{number}/{len(wanted)} {time.monotonic() - began:.0f} s] {name}: {'clean' if clean else 'NOT CLEAN'}",
                  flush=True)
            if clean:
                key.touch()
            else:
                dirty += 1
                print(said, flush=True)
    print("tidy: ok" if not dirty else f"tidy: {dirty} files are not clean")
    sys.exit(1 if dirty else 0)


if __name__ == "__main__":
    main()
