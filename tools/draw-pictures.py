#!/usr/bin/env python3
"""Draws the pictures of docs/lossless.md anew, from the page's own commands: docs/images/plan.png and sim-incast.png.

usage: draw-pictures.py [BUILD]        build/release unless told; wants chromium-headless-shell

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

# picture: (report, width and height of what a browser shows of it)
PICTURES = {"plan.png": ("plan.html", (1200, 618)), "sim-incast.png": ("planned/report.html", (1100, 1060))}
LAST = "weir sim "  # the first command of this kind is the last that is needed


def commands():
    for block in page_blocks.blocks((ROOT / "docs/lossless.md").read_text(encoding="utf-8")):
        if "not run" in block.marks:
            continue
        for command in block.commands():
            if command.startswith("make"):
                continue
            yield command
            if command.startswith(LAST):
                return


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    with tempfile.TemporaryDirectory(prefix="weir-pictures-") as folder:
        (pathlib.Path(folder) / "fabric").symlink_to(ROOT / "fabric")
        subprocess.run(["bash", "-e", "-c", "\n".join(commands())], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}"})
        for picture, (report, (width, height)) in PICTURES.items():
            subprocess.run(["chromium-headless-shell", "--no-sandbox", "--headless", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}",
                            f"--screenshot={ROOT / 'docs/images' / picture}", f"file://{folder}/{report}"], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
