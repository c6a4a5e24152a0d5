#!/usr/bin/env python3
"""Makes a website with a search from the tree's Markdown files and manual pages, by MkDocs and its Material theme.

usage: make-site.py [TARGET]        build/site unless told

The pages are the files as they are, in the folders where they are, so their links to each other hold. Files that a page links and
that are no pages (sources, pictures) come with it. All pages are in the menu. A broken link fails.
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
sys.path.insert(0, str(ROOT / "tests/docs"))
import page_blocks  # noqa: E402  which lines of a page are a block, and of what

# The beginning of the menu; what follows is found: manual pages, decisions, and the README of each folder.
MENU = [
    {"Start": "README.md"},
    {"Guides": [{"Verbs programs": "docs/verbs.md"}, {"Checking them": "docs/check.md"}, {"Failing on purpose": "docs/faults.md"},
                {"What programs do then": "docs/faults-of-programs.md"},
                {"Several hosts": "docs/fabric.md"}, {"Virtual time": "docs/twin.md"}, {"TCP programs": "docs/sockets.md"},
                {"Redis": "docs/server.md"}, {"RPC": "docs/rpc.md"}, {"Tensors": "docs/tensors.md"}, {"NCCL": "docs/nccl.md"},
                {"Lossless networks": "docs/lossless.md"}]},
    {"Reference": [{"All pages": "docs/README.md"}, {"RPC": "docs/rpc-reference.md"}, {"Compatibility": "docs/compatibility.md"},
                   {"Compatibility, run by run": "docs/compatibility-rows.md"}, {"Performance": "docs/performance.md"},
                   {"Threat model": "docs/threat-model.md"}, {"Networking CVEs": "docs/networking-cves.md"}]},
    {"Project": [{"Architecture": "docs/ARCHITECTURE.md"}, {"Changes": "CHANGELOG.md"}, {"Security": "SECURITY.md"},
                 {"Contributing": "CONTRIBUTING.md"}]},
]
# Both palettes follow the reader's system; the button changes them. No font is fetched from elsewhere.
THEME = {"name": "material", "font": False, "language": "en",
         "features": ["navigation.indexes", "navigation.top", "search.highlight"],
         "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default",
                      "toggle": {"icon": "material/weather-night", "name": "dark"}},
                     {"media": "(prefers-color-scheme: dark)", "scheme": "slate",
                      "toggle": {"icon": "material/weather-sunny", "name": "light"}}]}
STYLE = """.md-grid { max-width: 80rem }
.manual pre { white-space: pre-wrap }
[data-md-color-scheme="slate"] { --md-typeset-a-color: #9fb0ff }
"""
LINK = re.compile(r"\]\(<?([^)#\s>]+)")
MANUAL = re.compile(r"(\]\(<?(?:[^)#\s>]*/)?weir[a-z-]*\.[17])(?=[)#>])")


def copy(name, pages):
    target = pages / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / name, target)


def with_languages(text):
    """The page with its indented blocks fenced and named, so that they are highlighted."""
    lines = text.split("\n")
    for block in reversed(list(page_blocks.blocks(text))):
        at = block.line - 1
        if not lines[at].startswith("    ") or lines[at - 2:at - 1] == ["```"]:
            continue
        while block.lines and not block.lines[-1].strip():
            block.lines.pop()
        language = "console" if block.lines[0].startswith("$ ") else "sh" if block.commands() else "text"
        lines[at:at + len(block.lines)] = [f"```{language}", *block.lines, "```"]
    return "\n".join(lines)


def copy_page(name, pages):
    text = (ROOT / name).read_text(encoding="utf-8")
    target = pages / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(MANUAL.sub(r"\1.md", with_languages(text)), encoding="utf-8")


def copy_manuals(pages):
    """Each manual page as a page of the site."""
    names = sorted(path.name for path in (ROOT / "docs/man").glob("weir*.[17]"))
    for name in names:
        made = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", ROOT / "docs/man" / name], capture_output=True, text=True, check=True)
        html = re.sub(r"\n\s*\n", "\n", made.stdout)  # an empty line would end the HTML in Markdown
        html = re.sub(r'<table class="head">.*?</table>', "", html, flags=re.S)
        html = re.sub(r"(</?h)([12])\b", lambda tag: tag[1] + str(int(tag[2]) + 1), html)
        (pages / "docs/man" / f"{name}.md").write_text(f"# {name[:-2]}({name[-1]})\n\n<div class=\"manual\">\n{html}</div>\n", encoding="utf-8")
    with open(pages / "docs/man/README.md", "a", encoding="utf-8") as index:
        index.write("\n" + "".join(f"- [{name[:-2]}({name[-1]})]({name}.md)\n" for name in names))


def menu(pages):
    """All pages, each once."""
    found = sorted(str(path.relative_to(pages)) for path in pages.rglob("*.md"))
    known = {page for part in MENU for pages_of in part.values() for entry in ([{"": pages_of}] if isinstance(pages_of, str) else pages_of)
             for page in entry.values()}
    rest = [page for page in found if page not in known]

    def take(prefix):
        taken = [page for page in rest if page.startswith(prefix)]
        for page in taken:
            rest.remove(page)
        return sorted(taken, key=lambda page: (not page.endswith("README.md"), page))
    parts = [{"Manual pages": take("docs/man/")}, {"Measurements": take("docs/measurements/")}, {"Decisions": take("docs/decisions/")}]
    folders = {}
    for page in rest:
        folders.setdefault(page.split("/")[0], []).append({page.removesuffix("/README.md").removesuffix("/index.md"): page})
    return MENU + parts + [{"Folders": [{folder: entries} for folder, entries in sorted(folders.items())]}]


def collect(pages):
    """Copies the pages and what they link."""
    names = tree_files.tree_files(ROOT)
    markdown = {name for name in names if name.endswith(".md")}
    linked = set()
    for name in markdown:
        copy_page(name, pages)
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
    for program in ("mkdocs", "mandoc"):
        if shutil.which(program) is None:
            sys.exit(f"make-site: {program} is missing: tools/install-packages.sh --groups site")
    with tempfile.TemporaryDirectory(prefix="weir-site-") as folder:
        pages = pathlib.Path(folder) / "pages"
        collect(pages)
        copy_manuals(pages)
        (pages / "style.css").write_text(STYLE, encoding="utf-8")
        settings = {"site_name": "Weir", "docs_dir": str(pages), "theme": THEME, "use_directory_urls": False, "plugins": ["search"],
                    "extra_css": ["style.css"], "nav": menu(pages),
                    "markdown_extensions": ["tables", "toc", "pymdownx.superfences", {"pymdownx.highlight": {"guess_lang": False}}]}
        configuration = pathlib.Path(folder) / "mkdocs.yml"
        configuration.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        sys.exit(subprocess.run(["mkdocs", "build", "--quiet", "--strict", "--clean", "--config-file", configuration, "--site-dir", target]).returncode)


if __name__ == "__main__":
    main()
