#!/usr/bin/env python3
"""Makes a website with a search from the tree's Markdown files, by MkDocs.

usage: make-site.py [TARGET]        build/site unless told

The pages are the files as they are, in the folders where they are, so their links to each other hold. Files that a page links and
that are no pages (sources, pictures) come with it. A broken link fails.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tree_files

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The menu; the search finds all other pages, too.
MENU = [
    {"Start": "README.md"},
    {"Guides": [{"Verbs programs": "docs/verbs.md"}, {"Failing on purpose": "docs/faults.md"}, {"Several hosts": "docs/fabric.md"}, {"TCP programs": "docs/sockets.md"}, {"Redis": "docs/server.md"},
                {"RPC": "docs/rpc.md"}, {"Tensors": "docs/tensors.md"}, {"NCCL": "docs/nccl.md"}, {"Lossless networks": "docs/lossless.md"}]},
    {"Reference": [{"RPC": "docs/rpc-reference.md"}, {"Compatibility": "docs/compatibility.md"}, {"Performance": "docs/performance.md"},
                   {"Threat model": "docs/threat-model.md"}, {"All pages": "docs/README.md"}]},
    {"Project": [{"Architecture": "docs/ARCHITECTURE.md"}, {"Changes": "CHANGELOG.md"}, {"Security": "SECURITY.md"},
                 {"Contributing": "CONTRIBUTING.md"}]},
]
STYLE = """table { display: block; overflow-x: auto }
"""
LINK = re.compile(r"\]\(<?([^)#\s>]+)")


def copy(name, pages):
    target = pages / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / name, target)


def collect(pages):
    """Copies the pages and what they link."""
    names = tree_files.tree_files(ROOT)
    markdown = {name for name in names if name.endswith(".md")}
    linked = set()
    for name in markdown:
        copy(name, pages)
        for target in LINK.findall((ROOT / name).read_text(encoding="utf-8")):
            path = (ROOT / name).parent / target
            if re.match(r"[a-z]+:", target) or not path.exists():
                continue
            inside = path.resolve().relative_to(ROOT)
            if path.is_file():
                linked.add(str(inside))
            elif f"{inside}/README.md" not in markdown:
                entries = sorted(entry for entry in names if entry.startswith(f"{inside}/"))
                (pages / inside).mkdir(parents=True, exist_ok=True)
                (pages / inside / "index.md").write_text(f"# {inside}\n\n" + "".join(f"- {entry}\n" for entry in entries), encoding="utf-8")
    for name in (linked & set(names)) - markdown:
        copy(name, pages)


def main():
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
    if shutil.which("mkdocs") is None:
        sys.exit("make-site: mkdocs is missing: tools/install-packages.sh --groups site")
    with tempfile.TemporaryDirectory(prefix="weir-site-") as folder:
        pages = pathlib.Path(folder) / "pages"
        collect(pages)
        (pages / "style.css").write_text(STYLE, encoding="utf-8")
        settings = {"site_name": "Weir", "docs_dir": str(pages), "theme": {"name": "mkdocs", "highlightjs": False}, "use_directory_urls": False,
                    "plugins": ["search"], "extra_css": ["style.css"], "markdown_extensions": ["tables", "fenced_code", "toc"], "nav": MENU}
        configuration = pathlib.Path(folder) / "mkdocs.yml"
        configuration.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        sys.exit(subprocess.run(["mkdocs", "build", "--quiet", "--strict", "--clean", "--config-file", configuration, "--site-dir", target]).returncode)


if __name__ == "__main__":
    main()
