"""tools/check-includes.py: each row is a file beside a header that defines Carrier, and whether the check must accept it."""
import unittest

from scratch_tree import ScratchTree

ROWS = [  # name of the row, the file's text, accepted
    ("includes_it", '#include "rdma/carrier.hpp"\nCarrier made();\n', True),
    ("includes_what_includes_it", '#include "rdma/ship.hpp"\nCarrier made();\n', True),
    ("includes_nothing", "Carrier made();\n", False),
    ("includes_another", '#include "rdma/other.hpp"\nCarrier made();\n', False),
    ("names_it_in_full", "weir::rdma::Carrier made();\n", False),
    ("declares_it", "class Carrier;\nCarrier& made();\n", True),
    ("has_one_of_its_own", "struct Boat {\n  enum class Carrier { air };\n  Carrier by;\n};\n", True),
    ("has_a_parameter_of_that_name", "template <class Carrier, int N>\nvoid by(Carrier);\n", True),
    ("speaks_of_it", '// By Carrier.\nconst char* text = "a Carrier";\n', True),
    ("names_somebody_elses", "grpc::Carrier made();\n", True),
    ("calls_a_member_of_that_name", "void made() { ship.Carrier(); }\n", True),
    ("names_one_that_two_headers_have", "Common made();\n", True),
    ("includes_the_library", "#include <optional>\nstd::optional<int> made();\n", True),
    ("includes_the_library_elsewhere", '#include "rdma/ship.hpp"\nstd::optional<int> made();\n', True),
    ("does_not_include_the_library", "std::optional<int> made();\n", False),
    ("names_an_algorithm", "#include <vector>\nvoid made() { std::ranges::sort(all); }\n", False),
    ("names_what_is_not_listed", "std::ptrdiff_t made();\n", True),
]


class CheckIncludes(unittest.TestCase):
    def test_each_row(self):
        for name, text, accepted in ROWS:
            with self.subTest(name):
                tree = ScratchTree()
                self.addCleanup(tree.remove)
                tree.write("rdma/carrier.hpp", "namespace weir::rdma {\nclass Carrier {};\nclass Common {};\n}\n")
                tree.write("rdma/ship.hpp", '#include <optional>\n#include "rdma/carrier.hpp"\n')
                tree.write("rdma/other.hpp", "namespace weir::rdma {\nclass Common {};\n}\n")
                tree.write("rdma/a.cpp", text)
                status, output = tree.run("check-includes.py")
                self.assertEqual(status, 0 if accepted else 1, output)
                if not accepted:
                    self.assertIn("rdma/a.cpp:", output)


if __name__ == "__main__":
    unittest.main()
