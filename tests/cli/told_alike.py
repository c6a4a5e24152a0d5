#!/usr/bin/env python3
"""Every option in --help is on the manual page and is completed, and the page has no others.

  told_alike.py BINARIES SOURCE
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARIES, SOURCE = map(pathlib.Path, sys.argv[1:3])
COMPLETION = SOURCE / "cli/completion"
SUBCOMMANDS = ("run", "trace", "faults", "fabric", "devices", "sockets", "stat", "plan", "sim", "collector", "rpc", "tensor")
PAGES = [(f"weir-{name}", "weir", name) for name in SUBCOMMANDS]
PAGES += [(name, name) for name in ("weir-cli", "weir-benchmark", "weir-server", "weir-check")]

# On a page only, because --help is kept short; or options of other programs, in examples.
ON_PAGES_ONLY = {
    "weir-server": {"--name", "--maxmemory-samples", "--lfu-log-factor", "--lfu-decay-time", "--rdma-comp-vector",
                    "--rdbcompression", "--rdbchecksum", "--rdb-dialect", "--rdb-key-save-delay",
                    "--auto-aof-rewrite-percentage", "--auto-aof-rewrite-min-size"},
    "weir-run": {"--test-dir"},
    "weir-fabric": {"--mca"},
    "weir-collector": {"--telemetry"},
    "weir-sim": {"--hostfile", "--allow-run-as-root", "--oversubscribe"},
}
# "Those of weir-run(1), and:".
ON_ANOTHER_PAGE = {"weir-trace": {"--help"}}
COMPLETE = r"""
source "$1"; shift
compopt() { :; }
function=$1; COMP_LINE=$2; COMP_POINT=${#COMP_LINE}; shift 2
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"$function" "$1"
printf '%s\n' "${COMPREPLY[@]}"
"""


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z](?:[a-z0-9-]*[a-z0-9])?", text))


def options_of_help(words):
    text = subprocess.run([BINARIES / words[0], *words[1:], "--help"], capture_output=True, text=True, check=True).stdout
    return options_in(re.sub(r"^ *(\$ )?(weir|mpirun)\b.*", "", text, flags=re.M))  # without the examples


def completed(line):
    """Returns bash's completions at the end of `line`, whose words readline splits according to COMP_WORDBREAKS."""
    words = []
    for word in re.split(r" +", line):
        words += [piece for piece in re.split(r"([:=]+)", word) if piece] or [""]
    name = pathlib.Path(words[0]).name
    function = "_weir" if name == "weir" else "_weir_subcommand" if name.removeprefix("weir-") in SUBCOMMANDS else "_weir_program"
    done = subprocess.run(["bash", "-c", COMPLETE, "bash", COMPLETION / "weir.bash", function, line, *words],
                          capture_output=True, text=True, check=True)
    assert done.stderr == "", (line, done.stderr)
    return done.stdout.split()


class ToldAlike(unittest.TestCase):
    def test_pages_have_the_options_of_the_help(self):
        for page, *words in PAGES:
            source = (SOURCE / f"docs/man/{page}.1").read_text().replace("\\-", "-")
            listed = options_in(re.sub(r"\\f[A-Z]", " ", source)) | ON_ANOTHER_PAGE.get(page, set())
            self.assertEqual(listed - ON_PAGES_ONLY.get(page, set()), options_of_help(words), page)

    def test_commands_are_on_the_page_and_completed(self):
        page = (SOURCE / "docs/man/weir.1").read_text()
        offered = completed("weir ")
        for name in SUBCOMMANDS:
            self.assertIn(f".B {name}\n", page)
            self.assertIn(f".BR weir-{name} (1)", page)
            self.assertIn(name, offered)

    def test_bash_completes_the_options_of_the_help(self):
        for page, *words in PAGES:
            self.assertEqual(options_of_help(words) - set(completed(" ".join(words) + " --")), set(), page)

    def test_fish_and_zsh_complete_the_options_of_the_help(self):
        zsh = options_in((COMPLETION / "_weir").read_text())
        fish = (COMPLETION / "weir.fish").read_text()
        fish = {"--" + name for name in re.findall(r"-l ([a-z0-9-]+)", fish)} | {
            "--" + name for names in re.findall(r"^for option in ((?:.*\\\n)*.*)", fish, re.M)
            for name in names.replace("\\", " ").split()}
        for page, *words in PAGES:
            told = options_of_help(words)
            self.assertEqual((told - zsh, told - fish), (set(), set()), page)

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_completes_programs_that_are_called_by_their_own_name(self):
        for line, expected in (("weir-plan --js", "--json"), ("weir-tensor --do", "--done"), ("weir-sim --fail-on de", "deadlock"),
                               ("weir-rpc ca", "call"), ("weir plan --js", "--json")):
            said = subprocess.run(["fish", "--no-config", "-c", f"source {COMPLETION}/weir.fish; complete -C '{line}'"], check=True,
                                  capture_output=True, text=True).stdout
            self.assertEqual([each.split("\t")[0] for each in said.splitlines()], [expected], line)

    def test_bash_completes_what_stands_between(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / "weir"  # replaces the program that would ask a server
            fake.write_text('#!/bin/sh\n[ "$*" = "rpc list --names tcp://127.0.0.1:9000" ] && echo shop.add shop.brew\n'
                            '[ "$*" = "sim --settings" ] && echo "buffer.alpha  number" && echo "ecn.kmin  bytes"\n')
            fake.chmod(0o755)
            rows = [
                ("weir co", ["collector", "completion"]),
                ("weir help tr", ["trace"]),
                ("weir fabric do", ["down"]),
                ("weir fabric link h2 d", ["down"]),
                ("weir fabric run --mtu 10", ["1024"]),
                ("weir rpc ca", ["call"]),
                ("weir rpc list rdma", ["rdma://", "rdma+tls://"]),
                ("weir rpc list tcp:", ["//"]),
                (f"{fake} rpc call tcp://127.0.0.1:9000 shop.b", ["shop.brew"]),
                ("weir plan -f h", ["html"]),
                ("weir-plan -f h", ["html"]),
                ("weir-rpc ca", ["call"]),
                (f"{fake} sim --set al", ["alpha="]),
                (f"{fake} sim --set buf", ["buffer.alpha="]),
                (f"{fake}-sim --sweep ecn", ["ecn.kmin="]),
                ("weir run --gid fd00::1 --mt", ["--mtu"]),
                ("weir run --mtu 10", ["1024"]),
                ("weir-server --tls-auth-clients o", ["optional"]),
                ("weir-cli --rdma-provider s", ["system"]),
                ("weir-benchmark -t lrange_3", ["lrange_300"]),
            ]
            for line, expected in rows:
                self.assertEqual(completed(line), expected, line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
