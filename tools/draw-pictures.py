#!/usr/bin/env python3
"""Draws the pictures of docs/lossless.md and docs/twin.md anew, from the pages' own commands: plan.png, sim-incast.png and twin-allreduce.png.

usage: draw-pictures.py [BUILD [PICTURE ...]]     build/release and all unless told; wants chromium-headless-shell, and Open MPI for the last

Run it after a change of what the reports look like, and look at what it drew.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/docs"))
import page_blocks  # noqa: E402

# picture: (page, the first command of which kind is the last that is needed, report, width and height of what a browser shows of it)
PICTURES = {"plan.png": ("lossless.md", "weir sim ", "plan.html", (1200, 618)),
            "sim-incast.png": ("lossless.md", "weir sim ", "planned/report.html", (1100, 1060)),
            "twin-allreduce.png": ("twin.md", "weir fabric run --seed 2 ", "page.html", (1100, 1010))}


def commands(page, last):
    # docs/twin.md's are not run by the tests of pages: tests/twin runs the same scenario.
    wanted = "weir fabric" if page == "twin.md" else ""
    for block in page_blocks.blocks((ROOT / "docs" / page).read_text(encoding="utf-8")):
        if "not run" in block.marks and not wanted:
            continue
        for command in block.commands():
            if command.startswith("make") or (wanted and not command.startswith((last, "mpicc"))):
                continue
            yield command
            if command.startswith(last):
                return


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    environment = {**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory(prefix="weir-pictures-") as folder:
        for name in ("fabric", "twin"):
            (pathlib.Path(folder) / name).symlink_to(ROOT / name)
        done = set()
        for picture, (page, last, report, (width, height)) in PICTURES.items():
            if len(sys.argv) > 2 and picture not in sys.argv[2:]:
                continue
            if page not in done:
                subprocess.run(["bash", "-e", "-c", "\n".join(commands(page, last))], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
                done.add(page)
            subprocess.run(["chromium-headless-shell", "--no-sandbox", "--headless", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}",
                            f"--screenshot={ROOT / 'docs/images' / picture}", f"file://{folder}/{report}"], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
