#!/usr/bin/env python3
"""Compiles the C++ and C that a page shows, against the headers of this tree.

  cpp_blocks_test.py SOURCE PAGE ...

What a reader of the page has already is in blocks/PAGE.hpp (blocks/rdma-README.hpp for rdma/README.md): declarations, and after a line `//@ N` what the page's N-th block of C++ finds
in its function. Of a block, includes, templates, namespaces, classes and functions stay outside; the rest is the body of a
function, a coroutine if it awaits something. `{ ... }` and a `...` behind a condition are what a page leaves out.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from page_blocks import blocks

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PAGES = sys.argv[2:]
HERE = pathlib.Path(__file__).resolve().parent
# As weir::rpc and weir-rpc-cpp pass them to programs.
OPTIONS = ("-std=c++23", "-DASIO_STANDALONE", "-DASIO_NO_DEPRECATED", "-DASIO_SEPARATE_COMPILATION", "-DASIO_HAS_STD_ALIGNED_ALLOC")
OUTSIDE = re.compile(r"template <>|namespace \w+ \{|struct \w+|class \w+|using |#include|asio::awaitable<.*\{$"
                     r"|[\w:]+ \w+\((const )?[\w:]+&? \w+(, (const )?[\w:]+&? \w+)*\);")  # a function's declaration


def chunks(lines):
    """The pieces of a block: a line, or all to the brace that closes what the line opens."""
    piece, depth = [], 0
    for line in lines:
        piece.append(line)
        code = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
        depth += code.count("{") + code.count("(") - code.count("}") - code.count(")")
        if depth == 0:
            yield piece
            piece = []
    if piece:
        yield piece


def surroundings(page):
    """What stands before the blocks, and before the body of block N."""
    path = HERE / "blocks" / (page.removeprefix("docs/").removesuffix(".md").replace("/", "-") + ".hpp")
    parts = re.split(r"^//@ (\d+)\n", path.read_text(encoding="utf-8"), flags=re.M) if path.exists() else [""]
    return parts[0], {int(number): text for number, text in zip(parts[1::2], parts[2::2])}


def as_program(page, text):
    """One C++ source with all blocks of the page; the compiler's messages name the page's lines."""
    before, local = surroundings(page)
    includes, outside, bodies = [], [], []
    for number, block in enumerate((block for block in blocks(text) if block.language == "cpp"), 1):
        inside = []
        at = block.line
        for piece in chunks(block.lines):
            code = [f'#line {at} "{page}"', *piece]
            at += len(piece)
            (includes if piece[0].startswith("#include") else outside if OUTSIDE.match(piece[0]) else inside).extend(code)
        body = "\n".join(inside)
        body = re.sub(r"\{ \.\.\. \}", "{ return weir::rpc::Result<void>(); }", re.sub(r"\) \.\.\.", ") {}", body))
        kind = "asio::awaitable<void>" if "co_await" in body else "weir::rpc::Result<int>"
        end = "" if "co_await" in body else "return 0;"
        bodies.append(f"{kind} block_{number}() {{\n{local.get(number, '')}\n{body}\n{end}\n}}")
        outside.append(bodies.pop())
    return "\n".join([*includes, before, *outside])


def as_c_program(page, text):
    shown = [block for block in blocks(text) if block.language == "c"]
    includes = [line for block in shown for line in block.lines if line.startswith("#include")]
    bodies = [f"int block_{number}(void) {{\n#line {block.line} \"{page}\"\n"
              + "\n".join("" if line.startswith("#include") else line for line in block.lines) + "\nreturn 0;\n}"
              for number, block in enumerate(shown)]
    return "\n".join(["#include <stdio.h>", *includes, *bodies]) if shown else None


def compile_errors(source, ending, compiler, *options):
    with tempfile.TemporaryDirectory(prefix="weir-blocks-") as folder:
        (pathlib.Path(folder) / "weir").symlink_to(SOURCE)
        path = pathlib.Path(folder) / f"page.{ending}"
        path.write_text(source)
        done = subprocess.run([compiler, "-fsyntax-only", *options, f"-I{folder}", f"-I{SOURCE}", f"-I{SOURCE}/rpc/c", f"-I{SOURCE}/tensor/c", path],
                              capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stderr[:3000] or "failed without a word"


class Compiles(unittest.TestCase):
    def test_finds_an_error_where_the_page_has_it(self):
        page = "```cpp\nint a = 1;\na.b();\n```\n"
        errors = compile_errors("#include <asio/awaitable.hpp>\n#include \"rpc/error.hpp\"\n" + as_program("nowhere.md", page), "cpp", "g++", *OPTIONS)
        self.assertIn("nowhere.md:3", errors)

    def test_takes_a_block_apart(self):
        program = as_program("nowhere.md", "```cpp\n#include <a>\nstruct A {\n  int b;\n};\nA a;\nif (a.b) ...\n```\n")
        self.assertLess(program.index("#include <a>"), program.index("struct A {"))
        self.assertLess(program.index("int b;"), program.index("block_1()"))
        self.assertIn("if (a.b) {}", program)


def compiles(page):
    def test(self):
        text = (SOURCE / page).read_text(encoding="utf-8")
        self.assertIn("```c", text)
        self.assertEqual(compile_errors(as_program(page, text), "cpp", "g++", *OPTIONS), "")
        if source := as_c_program(page, text):
            self.assertEqual(compile_errors(source, "c", "gcc"), "")
    return test


for page in PAGES:
    setattr(Compiles, "test_" + re.sub(r"\W+", "_", page.removesuffix(".md").lower()), compiles(page))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
