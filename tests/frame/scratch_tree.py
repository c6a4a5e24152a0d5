"""A small tree in a temporary folder, for tests of the checks in tools/."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
README = "What lives here and where to begin reading: a scratch folder that exists for the length of one test case.\n"


class ScratchTree:
    """Puts a README.md into each folder that gets files, and this tree's layers.json without the arrows that run back up here."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="weir-frame-"))
        self.write("tools/layers.json", json.dumps({**json.loads((ROOT / "tools/layers.json").read_text()), "known_back_arrows": {}}) + "\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in {path.parent, self.root / path.relative_to(self.root).parts[0]} - {self.root, path}:
            if not (folder / "README.md").exists():
                (folder / "README.md").write_text(README)

    def run(self, check):
        """Returns (exit status, output) of tools/CHECK on this tree."""
        done = subprocess.run([sys.executable, ROOT / "tools" / check, self.root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def remove(self):
        shutil.rmtree(self.root)
