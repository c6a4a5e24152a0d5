"""The blocks of a page, as a reader pastes them.

A block is indented by four spaces or fenced. A comment above it says what is otherwise not seen:

  <!-- not run: REASON -->            what it shows cannot be run here
  <!-- prints otherwise: REASON -->   what it shows as output differs from run to run in more than its numbers
  <!-- python: NAME -->               it goes on in the Python program NAME, where the others go on in that of the page
"""
import dataclasses
import re

# First words of commands, besides the programs of the build and settings of variables.
COMMANDS = {"weir", "make", "cat", "sed", "seq", "export", "unshare", "cmake", "build/venv/bin/pip", "apt", "prometheus", "promtool", "redis-cli", "redis-server",
            "docker", "curl", "mkdir", "mpirun", "sudo", "until", "python3", "cc", "(umask"}
MARK = re.compile(r"^<!-- (not run|prints otherwise|python): (.+) -->$")
SHELLS = ("", "sh", "bash", "console")
# Beginnings of shown lines that no command prints.
NOT_PRINTED = ("...", "{device=")
NUMBER = re.compile(r"0x[0-9a-f]+|\d[\d.,:]*")


@dataclasses.dataclass
class Block:
    line: int
    language: str
    lines: list
    marks: dict

    def commands(self):
        """The commands; each may span several lines."""
        if self.language not in SHELLS:
            return []
        if any(line.startswith("$ ") for line in self.lines):
            return [line[2:] for line in self.lines if line.startswith("$ ")]
        found = []
        rest = iter(self.lines)
        for line in rest:
            first = line.split(" ")[0]
            if first not in COMMANDS and not first.startswith("build/release/bin/") and not re.match(r"[A-Z_]+=\S", first):
                break
            command = line
            while command.endswith("\\"):
                command += "\n" + next(rest)
            if here := re.search(r"<<'?(\w+)'?", line):
                for inner in rest:
                    command += "\n" + inner
                    if inner == here[1]:
                        break
            found.append(command)
        return found

    def shown_output(self):
        """The lines that are no commands, each with single spaces."""
        if self.language not in SHELLS or "not run" in self.marks or "prints otherwise" in self.marks:
            return []
        inside = {line for command in self.commands() for line in command.split("\n")}
        lines = [spaced(line) for line in self.lines if line not in inside and line.removeprefix("$ ") not in inside]
        return [line for line in lines if line and not line.startswith(NOT_PRINTED)]


def spaced(line):
    return " ".join(line.split())


def shape(line):
    """The line with the same number wherever it has one."""
    return NUMBER.sub("0", spaced(line))


def blocks(text):
    lines = text.split("\n")
    number = 0
    marks = {}
    while number < len(lines):
        if fence := re.match(r"^```(\w*)$", lines[number]):
            end = number + 1 + lines[number + 1:].index("```")
            yield Block(number + 2, fence[1], lines[number + 1:end], marks)
            marks = {}
            number = end + 1
        elif lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield Block(number + 1, "", [line[4:] for line in lines[number:end]], marks)
            marks = {}
            number = end
        else:
            if mark := MARK.match(lines[number]):
                marks = {**marks, mark[1]: mark[2]}
            elif lines[number].strip():
                marks = {}
            number += 1
