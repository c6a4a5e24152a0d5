"""Parses a Dockerfile into the instructions of each stage. It knows only what containers/Dockerfile uses, and refuses the
rest."""
import json
import re
import shlex

KNOWN = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "EXPOSE", "CMD"}


def read(text):
    """Returns [(stage's name or "", base, [(instruction, its arguments)])]."""
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    stages = []
    for line in filter(str.strip, re.sub(r"\\\n", " ", "\n".join(lines)).split("\n")):
        instruction, rest = line.split(None, 1)
        if instruction not in KNOWN:
            raise ValueError(f"{instruction}: not known here")
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append((name.strip(), base.strip(), []))
        else:
            stages[-1][2].append((instruction, rest.strip()))
    return stages


def command(text):
    """The words of CMD's exec form; the shell form would put a shell between the signal and the program."""
    words = json.loads(text)
    if not isinstance(words, list):
        raise ValueError(f"{text}: not a list of words")
    return words


def copied(text):
    """Returns (stage, sources, target) of COPY; the stage is "" for the build context."""
    words = shlex.split(text)
    stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
    return stage, words[:-1], words[-1]
