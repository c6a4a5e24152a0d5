#!/usr/bin/env python3
"""Runs the commands that README and the guides show in a shell, page by page, and expects every one to succeed.

  snippets_test.py BUILD_DIRECTORY SOURCE PAGE ...

A block is indented by four spaces or fenced as sh. Its commands are the lines behind "$ ", or else those up to the first
empty line that ends none of its here-documents; what follows is what they printed. The blocks of a page run in one bash, in a
network namespace of its own, so that the ports that they name are free, and in a folder that looks like this tree.
What make would install or build is not run again: such lines need a target of the Makefile. NOT_RUN says what else is not.
"""
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PAGES = sys.argv[3:]
SECONDS = 300  # for one page

# First words of commands, besides the programs of the build.
COMMANDS = {"weir", "make", "cat", "sed", "seq", "export", "unshare", "cmake", "pip", "apt", "prometheus", "promtool", "redis-cli", "redis-server", "docker"}
# Beginnings of lines that are not run, and why.
NOT_RUN = {
    "apt ": "changes the system",
    "pip ": "install.wheel installs it",
    "cmake --preset": "configured already",
    "cmake --build": "built already",
    "build/release/bin/weir stat": "runs until it is stopped; cli.stat_of_many looks at it",
    "weir run -- ib_write_bw": "two hosts; verbs.between_hosts has them",
    "weir run --packets -- ib_write_bw": "the address is the reader's; interop.packets has it",
    "weir run --sockets --sockets-peers": "two hosts; interop.between_hosts.sockets has them",
    "weir run -- mckey": "two hosts; interop.between_hosts has them",
    "weir plan --import": "what is cabled is the reader's; cli_plan_test imports",
    "weir rpc diff released.json": "what was released is the reader's",
    "docker ": "no engine is taken for granted; tests/containers does by hand what containers/ says",
    "prometheus ": "Prometheus is in no package that the tests install",
    "promtool ": "Prometheus is in no package that the tests install",
}
# What a page assumes, as its own text says.
BEFORE = {
    "docs/rpc.md": "build/release/bin/rpc_shop serve tcp://127.0.0.1:9000 & sleep 1\n",
    "docs/rpc-reference.md": "build/release/bin/rpc_shop serve tcp://127.0.0.1:9000 & sleep 1\n",
    "docs/tensors.md": "export WEIR_TENSOR_LIBRARY=$PWD/build/release/lib/libweir_tensor.so.0 PYTHONPATH=$PWD/tensor/python\n"
                       "/usr/bin/python3 -c '\nimport time, numpy, weir_tensor\n"
                       "hub = weir_tensor.listen(\"rdma://127.0.0.1:7800\")\n"
                       "hub.publish(\"layer1.w\", numpy.arange(6.0))\ntime.sleep(600)' & sleep 2\n",
}
# Pages whose commands print the same on every machine: what they show as output must be what was printed.
PRINT_THE_SAME = {"docs/lossless.md"}
# Beginnings of shown lines that no command here prints.
NOT_PRINTED = ("...", "{device=")
# Commands that are shown to fail, with their exit status.
MAY_FAIL = {}


def blocks(text):
    """Returns (line, lines) of each block that may hold commands."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        fence = re.match(r"^```(\w*)$", lines[number])
        if fence:
            end = number + 1 + lines[number + 1:].index("```")
            if fence[1] in ("", "sh", "bash", "console"):
                yield number + 2, lines[number + 1:end]
            number = end + 1
        elif lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield number + 1, [line[4:] for line in lines[number:end]]
            number = end
        else:
            number += 1


def commands(block):
    """The commands of a block; each may span several lines."""
    if any(line.startswith("$ ") for line in block):
        return [line[2:] for line in block if line.startswith("$ ")]
    found = []
    rest = iter(block)
    for line in rest:
        first = line.split(" ")[0]
        if first not in COMMANDS and not first.startswith("build/release/bin/"):
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


# What starts a program in the background and goes on at once: what comes next may find nobody there yet.
STARTED = re.compile(r"""^\s*["]?\s*(?:\$ )?(?:sudo \S+ \S+ |[a-z/]+/bin/)?(?:weir|rpc|rdma|redis|prometheus|rping|ib)\S* .*&(?:\\n"?)?\s*$""")


def starts_without_waiting():
    """(file:line) of the examples in pages, manual pages, helps and sources that start a server and do not wait for it."""
    places = ("README.md", "docs/*.md", "docs/man/*", "cli/**/*.cpp", "examples/**/*", "rdma/**/*.md", "rpc/**/*.md", "tensor/**/*.md", "containers/*")
    for place in places:
        for path in SOURCE.glob(place):
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n") if path.is_file() else (), 1):
                if STARTED.match(line) and "&&" not in line:
                    yield f"{path.relative_to(SOURCE)}:{number}"


def shown_output(block):
    """The lines of a block that are no commands, each with single spaces."""
    inside = {line for command in commands(block) for line in command.split("\n")}
    lines = [" ".join(line.split()) for line in block if line not in inside and line.removeprefix("$ ") not in inside]
    return [line for line in lines if line and not line.startswith(NOT_PRINTED)]


def make_targets():
    return set(re.findall(r"^([a-z-]+):", (SOURCE / "Makefile").read_text(), re.M))


def script_of(page):
    """A script of the page's commands, and how many there are."""
    script = ["set -e", BEFORE.get(page, "")]
    count = 0
    for number, block in blocks((SOURCE / page).read_text()):
        for command in commands(block):
            if command.startswith("make") or any(command.startswith(start) for start in NOT_RUN):
                continue
            count += 1
            command = command.replace("& sleep 1", "& sleep 5")  # the machine also runs other tests
            for start, status in MAY_FAIL.items():
                if command.startswith(start):
                    command += f" || [ $? = {status} ]"
            script += [f"echo '## {page}:{number}' >&2", command]
    return "\n".join(script), count


def paste(script):
    """Returns the exit status of the script, and what it printed."""
    with tempfile.TemporaryDirectory(prefix="weir-snippets-") as folder:
        for name in SOURCE.iterdir():
            if name.name != "build":
                (pathlib.Path(folder) / name.name).symlink_to(name)
        (pathlib.Path(folder) / "build").mkdir()
        (pathlib.Path(folder) / "build/release").symlink_to(BUILD)
        namespace = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
        output = pathlib.Path(folder) / "output"
        with open(output, "wb") as file:
            run = subprocess.Popen([*namespace, "bash", "-c", f"ip link set lo up\n{script}"], cwd=folder,
                                   start_new_session=True, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                   env={**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}",
                                        "WEIR_RUNTIME_DIR": f"{folder}/run"})
        try:
            run.wait(timeout=SECONDS)
        finally:
            try:
                os.killpg(run.pid, signal.SIGKILL)  # including servers in the background
            except ProcessLookupError:
                pass
            run.wait()
        return run.returncode, output.read_text(errors="replace")


class Snippets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scripts = {page: script_of(page) for page in PAGES}
        longest_first = sorted((page for page in PAGES if scripts[page][1]), key=lambda page: -scripts[page][1])
        # Most of the time they wait for each other's servers.
        pages_at_once = concurrent.futures.ThreadPoolExecutor(2)
        cls.addClassCleanup(pages_at_once.shutdown)
        cls.pasted = {page: pages_at_once.submit(paste, scripts[page][0]) for page in longest_first}

    def check(self, page):
        status, printed = self.pasted[page].result()
        self.assertEqual(status, 0, printed[-4000:])
        if page in PRINT_THE_SAME:
            lines = {" ".join(line.split()) for line in printed.splitlines()}
            for number, block in blocks((SOURCE / page).read_text()):
                self.assertEqual([line for line in shown_output(block) if line not in lines], [], f"{page}:{number} shows other output")

    def test_make_has_the_targets(self):
        for page in PAGES:
            for number, block in blocks((SOURCE / page).read_text()):
                for command in commands(block):
                    words = command.split("#")[0].split()
                    if words[0] == "make":
                        self.assertLessEqual({word for word in words[1:] if "=" not in word}, make_targets(), f"{page}:{number}")

    def test_examples_wait_for_what_they_start(self):
        for line in ('$ weir run -- ib_write_lat &', '    "  weir collector -o a.jsonl &\\n"', "    sudo -u alice weir run -- rping -s &"):
            self.assertRegex(line, STARTED)
        self.assertEqual(list(starts_without_waiting()), [])

    def test_finds_commands_and_not_what_they_print(self):
        text = ("a\n\n    weir plan x\n    cat <<EOF\n\n    y\n    EOF\n\n    weir: printed\n\nb\n\n    $ weir a\n    printed\n    $ seq 2\n"
                "\n```cpp\nmake it\n```\n")
        self.assertEqual([commands(block) for _, block in blocks(text)],
                         [["weir plan x", "cat <<EOF\n\ny\nEOF"], ["weir a", "seq 2"]])

    def test_tells_what_is_printed_from_commands(self):
        block = ["weir sim x", "", "    lossless  drops 0", "...", "cat <<EOF"]
        self.assertEqual(shown_output(block), ["lossless drops 0", "cat <<EOF"])
        self.assertEqual(shown_output(["$ weir a", "printed"]), ["printed"])

    def test_a_page_with_commands_has_some_that_run(self):
        for page in PAGES:
            self.assertGreater(script_of(page)[1], 0, page)


def checked(page):
    return lambda self: self.check(page)


for page in PAGES:
    setattr(Snippets, "test_" + re.sub(r"\W+", "_", page.removesuffix(".md").lower()), checked(page))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
