"""tools/check-tree.py: each row adds one file to a tree, and has what the check must say about it ('': nothing)."""
import json
import unittest

from scratch_tree import ScratchTree

ROWS = [  # name of the row, file, text, what the complaint says
    ("good_source", "kv/a.cpp", "int a;\n", ""),
    ("words_that_only_look_bad", "kv/a.cpp", "// mktemp -t weir.XXXXXX; network/root/x\n", ""),
    ("unfinished", "kv/a.cpp", "// TO" + "DO later\n", "unfinished business"),
    ("machine_path", "docs/a.md", "see /wor" + "k/shared/x\n", "a path of one machine"),
    ("package_host", "docs/a.md", "from deb.debian" + ".org\n", "a package host"),
    ("empty_readme", "kv/README.md", "\n", "next to nothing"),
    ("long_source", "kv/a.cpp", "int a;\n" * 601, "601 lines"),
    ("long_table_of_data", "tests/golden/a.txt", "row\n" * 5000, ""),
    ("no_last_newline", "kv/a.cpp", "int a;", "no newline"),
    ("system_clock", "kv/a.cpp", "auto t = std::chrono::system_clock::now();\n", "'system_clock': the clock of the system"),
    ("realtime_clock", "rpc/a.cpp", "clock_gettime(CLOCK_REALTIME, &now);\n", "'CLOCK_REALTIME': the clock of the system"),
    ("seconds_since_1970", "rpc/a.cpp", "if (::time(nullptr) > due) end();\n", "'::time(nullptr)': the clock of the system"),
    ("deadline_by_the_system_clock", "rpc/a.cpp", "pthread_mutex_timedlock(&m, &until);\n", "'pthread_mutex_timedlock'"),
    ("other_clocks", "rpc/a.cpp", "clock_gettime(CLOCK_MONOTONIC, &t); run_time(); a.time(); // system_clock\n", ""),
    ("system_clock_in_a_test", "tests/a.cpp", "auto t = std::chrono::system_clock::now();\n", ""),
    ("listed_reader_of_the_system_clock", "kv/main.cpp", "clock_gettime(CLOCK_REALTIME, &now);\n", ""),
    ("listed_reader_that_reads_it_no_more", "kv/main.cpp", "int a;\n", "take it off the list"),
    ("duration_by_the_time_of_day", "kv/a.cpp", "if (server_.now_ms > due_ms_) end();\n", "steady_ms is for what lasts"),
    ("duration_by_the_steady_time", "kv/a.cpp", "if (server_.steady_ms > due_ms_) end();\n", ""),
    ("merge_conflict", "kv/a.cpp", "<" * 7 + " HEAD\n", "a merge conflict"),
]


class CheckTree(unittest.TestCase):
    def test_each_row(self):
        for name, file, text, complaint in ROWS:
            with self.subTest(name):
                tree = ScratchTree()
                self.addCleanup(tree.remove)
                tree.write(file, text)
                status, output = tree.run("check-tree.py")
                self.assertEqual(status, 1 if complaint else 0, output)
                self.assertIn(complaint, output)

    def test_folder_of_sources_without_readme_is_refused(self):
        tree = ScratchTree()
        self.addCleanup(tree.remove)
        tree.write("kv/a.cpp", "int a;\n")
        (tree.root / "kv/README.md").unlink()
        status, output = tree.run("check-tree.py")
        self.assertEqual(status, 1)
        self.assertIn("kv/README.md:1: missing", output)

    def test_long_source_below_the_limit_is_a_warning_only(self):
        tree = ScratchTree()
        self.addCleanup(tree.remove)
        tree.write("kv/a.cpp", "int a;\n" * 450)
        status, output = tree.run("check-tree.py")
        self.assertEqual(status, 0)
        self.assertIn("warning: kv/a.cpp: 450 lines", output)

    def test_what_is_beyond_a_rule_may_only_shrink(self):
        three_sources = {f"kv/{letter}.cpp": f"int Server::{letter}(int n) {{\n}}\n" for letter in "abc"}
        what = "sources of kv Server"
        rows = [  # name, the files, what shrinking.json knows, accepted
            ("class_in_three_sources", three_sources, {"classes": {what: 3}}, True),
            ("class_in_one_more", three_sources, {"classes": {what: 2}}, False),
            ("class_in_one_less", three_sources, {"classes": {what: 4}}, False),
            ("class_that_is_exempt", three_sources, {"exempt": {what: "one for each letter"}}, True),
            ("fifth_header_of_a_name", {f"kv/{letter}/options.hpp": "int a;\n" for letter in "abcde"}, {}, False),
            ("four_headers_of_a_name", {f"kv/{letter}/options.hpp": "int a;\n" for letter in "abcd"}, {}, True),
            ("flat_folder", {f"kv/f{number}.cpp": "int a;\n" for number in range(41)}, {}, False),
            ("folder_of_forty", {f"kv/f{number}.cpp": "int a;\n" for number in range(40)}, {}, True),
        ]
        for name, files, known, accepted in rows:
            with self.subTest(name):
                tree = ScratchTree()
                self.addCleanup(tree.remove)
                tree.write("tools/shrinking.json", json.dumps(known) + "\n")
                for file, text in files.items():
                    tree.write(file, text)
                status, output = tree.run("check-tree.py")
                self.assertEqual(status, 0 if accepted else 1, output)

    def test_known_class_in_three_source_files_is_a_warning_only(self):
        tree = ScratchTree()
        self.addCleanup(tree.remove)
        tree.write("tools/shrinking.json", json.dumps({"classes": {"sources of kv Server": 3}}) + "\n")
        for letter in "abc":
            tree.write(f"kv/{letter}.cpp", f"std::pair<int, int> Server::{letter}(int n) {{\n}}\nint call(Other::kind k);\n")
        status, output = tree.run("check-tree.py")
        self.assertEqual(status, 0)
        self.assertIn("kv: class Server is cut over 3 source files", output)
        self.assertNotIn("class Other", output)

    def test_data_members_are_counted_and_functions_are_not(self):
        members = "".join(f"  std::map<int, int> m{i}_{{1, 2}};\n" for i in range(12)) + "  int a, b = 2, c, d;\n"
        rest = "  void f(int, int);\n  static int s;\n  using T = int;\n  bool g() const { return a; }\n"
        for extra, said in (("", False), ("".join(f"  int n{i}_ = 0;\n" for i in range(10)), True)):
            tree = ScratchTree()
            self.addCleanup(tree.remove)
            tree.write("tools/shrinking.json", json.dumps({"exempt": {"members of kv/a.hpp Wide": "reported all the same"}}) + "\n")
            tree.write("kv/a.hpp", f"class Wide {{\n public:\n{rest}\n private:\n{members}{extra}}};\n")
            status, output = tree.run("check-tree.py")
            self.assertEqual(status, 0)
            self.assertEqual("Wide has 26 data members" in output, said, output)


if __name__ == "__main__":
    unittest.main()
