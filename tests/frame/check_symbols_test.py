"""tools/check-symbols.py on a small library made for this test: it must check versions, not only names."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/check-symbols.py"

SOURCE = "void ibv_a(void) {}\nvoid ibv_b(void) {}\n"
VERSIONS = "IBVERBS_1.0 { global: ibv_a; local: *; };\nIBVERBS_1.1 { global: ibv_b; } IBVERBS_1.0;\n"

ROWS = [  # name of the row, symbols in the table, found missing
    ("all_there", ["ibv_a@IBVERBS_1.0", "ibv_b@IBVERBS_1.1"], []),
    ("wrong_version", ["ibv_a@IBVERBS_1.1"], ["ibv_a@IBVERBS_1.1"]),
    ("missing", ["ibv_a@IBVERBS_1.0", "ibv_c@IBVERBS_1.0"], ["ibv_c@IBVERBS_1.0"]),
    ("other_library_ignored", ["ibv_a@IBVERBS_1.0", "rdma_x@RDMACM_1.0"], []),
]


class CheckSymbols(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-frame-")
        folder = pathlib.Path(cls.folder.name)
        (folder / "a.c").write_text(SOURCE)
        (folder / "a.map").write_text(VERSIONS)
        cls.library = folder / "libibverbs.so.1"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", cls.library, folder / "a.c",
                        f"-Wl,--version-script={folder / 'a.map'}"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_each_row(self):
        for name, symbols, missing in ROWS:
            with self.subTest(name):
                table = self.library.with_name("table.txt")
                table.write_text("# a comment\n" + "\n".join(symbols) + "\n")
                done = subprocess.run([sys.executable, CHECK, table, self.library], capture_output=True, text=True)
                self.assertEqual(done.returncode, 1 if missing else 0, done.stdout)
                lacking = [line.split("lacks ")[1] for line in done.stdout.splitlines() if "lacks " in line]
                self.assertEqual(lacking, missing)


if __name__ == "__main__":
    unittest.main()
