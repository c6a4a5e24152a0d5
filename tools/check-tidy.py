#!/usr/bin/env python3
"""Runs clang-tidy 19 with .clang-tidy on the tracked C++ sources, several at once.

usage: check-tidy.py [-j JOBS] [FOLDER ...]        every folder unless told

The compile commands come from the preset 'lint' (clang, no precompiled headers), which is configured, never built. A
file found clean is not looked at again until something it is made of changes: its text, the tree's headers that it
reaches, its flags, .clang-tidy, or clang-tidy itself (remembered.py).
Nearly all of the time goes into headers, so neighbours are looked at together, as one translation unit; those
that are not clean there, or have a name in common with another, are looked at once more, down to the single file.
Prints what clang-tidy says; exit status 1 when it said something.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

from remembered import Remembered
from tree_files import tree_files

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/lint"
BATCHES = BUILD / "tidy-batches"
BATCH = 16  # files that are looked at together, at most: more find no more headers in common
TIDY = "clang-tidy-19"
COMPLAINT = re.compile(r"^(/[^:]+):\d+:\d+: error:", re.MULTILINE)
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
    digest = hashlib.sha256(constants + command.replace(str(ROOT), "TREE").encode())
    for file in reached(name, texts):
        digest.update(file.encode() + b"\0" + texts[file] + b"\0")
    return digest.hexdigest()


def flags_of(name, command):
    """The command without what it compiles: files of equal flags can be looked at together."""
    return re.sub(r" -o \S+ -c \S+$", "", command)


def batches_of(wanted, commands):
    """Lists of neighbours with equal flags, the longest first: the headers that they share are parsed once for all."""
    groups = {}
    for name in wanted:
        groups.setdefault((name.split("/")[0], flags_of(name, commands[name])), []).append(name)
    batches = []
    for names in groups.values():
        count = -(-len(names) // BATCH)
        size = -(-len(names) // count)
        batches += [names[start:start + size] for start in range(0, len(names), size)]
    return sorted(batches, key=len, reverse=True)


def parts_of(batch, said):
    """The files that were complained of (a finding, or a name that another file has, too) apart from the others."""
    named = {os.path.relpath(name, ROOT) for name in COMPLAINT.findall(said)}
    parts = [name for name in batch if name not in named], [name for name in batch if name in named]
    return parts if all(parts) else (batch[:len(batch) // 2], batch[len(batch) // 2:])


def tidy(names, commands):
    """(clean, what was said) of one file as it is compiled, or of several in one translation unit."""
    options = ["-p", str(BUILD), names[0]]
    if len(names) > 1:
        together = BATCHES / (hashlib.sha256("\n".join(names).encode()).hexdigest()[:16] + ".cpp")
        together.write_text("".join(f'#include "{name}"\n' for name in names))
        # Its flags come behind "--": clang-tidy looks for no compilation database then.
        options = ["--config-file=.clang-tidy", "--checks=-bugprone-suspicious-include", str(together), "--",
                   *shlex.split(flags_of(names[0], commands[names[0]]))[1:], "-ferror-limit=0"]
    done = subprocess.run([TIDY, "--quiet", *options], cwd=ROOT, capture_output=True, text=True)
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
    found_clean = Remembered("tidy-clean")
    BATCHES.mkdir(exist_ok=True)
    names = [name for name in tree_files(ROOT)
             if name in commands and (not arguments.folders or name.split("/")[0] in arguments.folders)]
    if not names:
        sys.exit(f"tidy: no source in {' '.join(arguments.folders) or 'the tree'} is compiled")
    texts = {}
    # Made by a build, and the preset lint is never built.
    generated = {name for name in names if any(b".pb.h" in texts[file] for file in reached(name, texts))}
    if generated:
        print(f"tidy: {len(generated)} files that include generated headers are left out", flush=True)
    names = [name for name in names if name not in generated]
    keys = {name: key_of(name, commands[name], constants, texts) for name in names}
    wanted = [name for name in names if not found_clean.good(keys[name])]
    print(f"tidy: {len(wanted)} of {len(names)} files have changed since they were found clean", flush=True)

    done, dirty, began = 0, 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.j) as pool:
        running = {}

        def look_at(batch):
            running[pool.submit(tidy, batch, commands)] = batch

        for batch in batches_of(wanted, commands):
            look_at(batch)
        while running:
            for future in concurrent.futures.wait(running, return_when="FIRST_COMPLETED").done:
                batch, (clean, said) = running.pop(future), future.result()
                if not clean and len(batch) > 1:
                    for part in parts_of(batch, said):
                        look_at(part)
                    continue
                done += len(batch)
                dirty += not clean
                print(f"[{done}/{len(wanted)} {time.monotonic() - began:.0f} s] {' '.join(batch)}: "
                      f"{'clean' if clean else 'NOT CLEAN'}", flush=True)
                if not clean:
                    print(said, flush=True)
                for name in batch if clean else []:
                    found_clean.remember(keys[name])
    found_clean.forget_old()
    print("tidy: ok" if not dirty else f"tidy: {dirty} files are not clean")
    sys.exit(1 if dirty else 0)


if __name__ == "__main__":
    main()
