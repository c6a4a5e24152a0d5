#!/usr/bin/env python3
"""Pastes README and the guides, page by page: their shell into one bash, their Python into programs, and expects all of it to succeed.

  snippets_test.py BUILD_DIRECTORY SOURCE PAGE ...

The blocks of a page run in order in one folder, which looks like this tree, and in a network namespace of its own, so that the ports that
they name are free. An error reply of Redis is a failure, and what a block shows below its commands must have been printed, but for the numbers.
What would install or build is not done again: `make` needs a target of the Makefile. What else is not run says so in the page's source
(page_blocks.py). C++ and C are compiled by cpp_blocks_test.py.
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

from page_blocks import Block, blocks, shape, spaced

BUILD, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PAGES = sys.argv[3:]
SECONDS = 600  # for one page, on a machine that also runs other tests
BUILDS_OR_INSTALLS = ("make", "apt ", "build/venv/", "python3 -m venv", "cmake --preset", "cmake --build")
# Pages whose commands print the same on every machine, numbers included; blocks without commands show output of those above.
PRINT_THE_SAME = {"docs/lossless.md"}
BEFORE = r"""
redis-cli() { command redis-cli -e "$@"; }
weir-cli() { command weir-cli -e "$@"; }
build/release/bin/weir-cli() { command build/release/bin/weir-cli -e "$@"; }
python_block() {  # NAME: runs standard input in the Python program of that name, which lives as long as the page
  local at=python/$1
  if [ ! -d "$at" ]; then
    mkdir -p "$at"; mkfifo "$at/asked" "$at/answered"
    /usr/bin/python3 PYTHON_SESSION "$at/asked" "$at/answered" &
  fi
  cat >"$at/block.py"; echo "$at/block.py" >"$at/asked"
  [ "$(cat "$at/answered")" = 0 ]
}
"""


def guide(page):
    return list(blocks((SOURCE / page).read_text(encoding="utf-8")))


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


def make_targets():
    return set(re.findall(r"^([a-z-]+):", (SOURCE / "Makefile").read_text(), re.M))


def script_of(page):
    """A script of the page's commands, and how many there are."""
    script = ["set -e", BEFORE.replace("PYTHON_SESSION", str(SOURCE / "tests/docs/python_session.py"))]
    count = 0
    for block in guide(page):
        if "not run" in block.marks:
            continue
        here = f"echo '## {page}:{block.line}' >&2"
        if block.language == "python":
            script += [here, "\n".join([f"python_block '{block.marks.get('python', 'page')}' <<'END_OF_BLOCK'", *block.lines, "END_OF_BLOCK"])]
            count += 1
        for command in block.commands():
            if not command.startswith(BUILDS_OR_INSTALLS):
                script += [here, command.replace("& sleep 1", "& sleep 5")]  # the machine also runs other tests
                count += 1
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
                                        "WEIR_RUNTIME_DIR": f"{folder}/run",
                                        # What the wheel would bring.
                                        "PYTHONPATH": f"{SOURCE}/rpc/python", "WEIR_RPC_LIBRARY": f"{BUILD}/lib/libweir_rpc.so.0"})
        try:
            run.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return 124, output.read_text(errors="replace")
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
        self.assertEqual(status, 0, printed[-2500:])
        comparable = spaced if page in PRINT_THE_SAME else shape
        lines = {comparable(line) for line in printed.splitlines()}
        for block in guide(page):
            if page in PRINT_THE_SAME or block.commands():
                self.assertEqual([line for line in block.shown_output() if comparable(line) not in lines], [],
                                 f"{page}:{block.line} shows other output; it was:\n{printed[-2500:]}")

    def test_make_has_the_targets(self):
        for page in PAGES:
            for block in guide(page):
                for command in block.commands():
                    words = command.split("#")[0].split()
                    if words[0] == "make":
                        self.assertLessEqual({word for word in words[1:] if "=" not in word}, make_targets(), f"{page}:{block.line}")

    def test_examples_wait_for_what_they_start(self):
        for line in ('$ weir run -- ib_write_lat &', '    "  weir collector -o a.jsonl &\\n"', "    sudo -u alice weir run -- rping -s &"):
            self.assertRegex(line, STARTED)
        self.assertEqual(list(starts_without_waiting()), [])

    def test_finds_commands_and_not_what_they_print(self):
        text = ("a\n\n    weir plan x\n    cat <<EOF\n\n    y\n    EOF\n\n    weir: printed\n\nb\n\n    $ weir a\n    printed\n    $ seq 2\n"
                "\n```cpp\nmake it\n```\n\n    A=1 weir b\n")
        self.assertEqual([block.commands() for block in blocks(text)],
                         [["weir plan x", "cat <<EOF\n\ny\nEOF"], ["weir a", "seq 2"], [], ["A=1 weir b"]])

    def test_marks_belong_to_the_next_block_alone(self):
        text = "<!-- not run: a -->\n\n    weir a\n\n<!-- python: hub -->\n```python\nb\n```\n<!-- not run: b -->\ntext\n\n    weir c\n"
        self.assertEqual([block.marks for block in blocks(text)], [{"not run": "a"}, {"python": "hub"}, {}])

    def test_tells_what_is_printed_from_commands(self):
        def shown(*lines, **marks):
            return Block(1, "", list(lines), marks).shown_output()
        self.assertEqual(shown("weir sim x", "", "    lossless  drops 0", "...", "cat <<EOF"), ["lossless drops 0", "cat <<EOF"])
        self.assertEqual(shown("$ weir a", "printed"), ["printed"])
        self.assertEqual(shown("$ weir a", "printed", **{"prints otherwise": "x"}), [])

    def test_compares_lines_by_their_shape(self):
        self.assertEqual(shape(" 1  0.05   192.0.2.2 -> 1,000 QP=0x02f"), shape("12 7.1 127.0.0.1 -> 5 QP=0x1"))
        self.assertNotEqual(shape("drops 0"), shape("lost 0"))

    def test_fails_where_a_page_would(self):
        rows = [("a_command", "false"), ("a_python_block", "python_block page <<'E'\n1 / 0\nE"),
                ("a_name_of_another_program", "python_block a <<'E'\nx = 1\nE\npython_block b <<'E'\nprint(x)\nE")]
        before = "set -e\n" + BEFORE.replace("PYTHON_SESSION", str(SOURCE / "tests/docs/python_session.py"))
        for name, script in rows:
            with self.subTest(name):
                self.assertNotEqual(paste(f"{before}\n{script}")[0], 0)
        status, printed = paste(before + "\npython_block a <<'E'\nx = 1\nE\npython_block a <<'E'\nawait asyncio.sleep(0)\nprint('x is', x)\nE")
        self.assertEqual((status, printed.strip()), (0, "x is 1"))

    def test_a_page_with_commands_has_some_that_run(self):
        for page in PAGES:
            self.assertGreater(script_of(page)[1], 0, page)


def checked(page):
    return lambda self: self.check(page)


for page in PAGES:
    setattr(Snippets, "test_" + re.sub(r"\W+", "_", page.removesuffix(".md").lower()), checked(page))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
