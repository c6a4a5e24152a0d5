"""tools/check-layers.py: each row is a file with one include, and whether the check must refuse it."""
import json
import unittest

from scratch_tree import ScratchTree

TARGETS = ["wire/bth.hpp", "rnic/adapter.hpp", "rnic/congestion_dcqcn.hpp", "link/same_host.hpp", "verbs/ibv/abi.hpp",
           "rdma/stream.hpp", "kv/server.hpp", "rpc/call.hpp", "tests/kv/fixture.hpp", "rdma/engine/io_op.hpp",
           "rdma/stream/connection.hpp", "rnic/ethernet/rx_hash.hpp", "rnic/ethernet/steering.hpp",
           "rnic/memory/segment.hpp"]

ROWS = [  # name of the row, file, its include line, accepted
    ("own_folder", "kv/a.cpp", '#include "kv/server.hpp"', True),
    ("application_on_rdma", "kv/a.cpp", '#include "rdma/stream.hpp"', True),
    ("application_on_nic", "kv/a.cpp", '#include "rnic/adapter.hpp"', False),
    ("application_on_verbs", "kv/a.cpp", '#include "verbs/ibv/abi.hpp"', False),
    ("application_on_another", "kv/a.cpp", '#include "rpc/call.hpp"', False),
    ("application_on_system_verbs", "kv/a.cpp", "#include <infiniband/verbs.h>", False),
    ("rdma_on_system_verbs", "rdma/a.cpp", "#include <infiniband/verbs.h>", True),
    ("rdma_on_system_cm", "rdma/a.cpp", "#include <rdma/rdma_cma.h>", True),
    ("rdma_on_our_verbs", "rdma/a.cpp", '#include "verbs/ibv/abi.hpp"', False),
    ("rdma_on_link", "rdma/a.cpp", '#include "link/same_host.hpp"', False),
    ("nic_on_wire", "rnic/a.cpp", '#include "wire/bth.hpp"', True),
    ("nic_on_link", "rnic/a.cpp", '#include "link/same_host.hpp"', False),
    ("nic_on_sockets", "rnic/a.cpp", "#include <sys/socket.h>", False),
    ("nic_on_indented_include", "rnic/a.cpp", '  #  include "link/same_host.hpp"', False),
    ("verbs_on_nic", "verbs/ibv/a.cpp", '#include "rnic/adapter.hpp"', True),
    ("verbs_on_rdma", "verbs/ibv/a.cpp", '#include "rdma/stream.hpp"', False),
    ("wire_on_nic", "wire/a.cpp", '#include "rnic/adapter.hpp"', False),
    ("planner_on_congestion_control", "fabric/a.cpp", '#include "rnic/congestion_dcqcn.hpp"', True),
    ("planner_on_the_rest_of_the_nic", "fabric/a.cpp", '#include "rnic/adapter.hpp"', False),
    ("planner_on_link", "fabric/a.cpp", '#include "link/same_host.hpp"', False),
    ("unknown_folder", "util/a.cpp", "#include <vector>", False),
    ("relative_name", "kv/a.cpp", '#include "server.hpp"', False),
    ("tests_fixture_beside_it", "tests/kv/a.cpp", '#include "fixture.hpp"', True),
    ("own_header_in_angles", "kv/a.cpp", "#include <rnic/adapter.hpp>", False),
    ("no_such_file", "kv/a.cpp", '#include "kv/gone.hpp"', False),
    ("system_header", "rnic/a.cpp", "#include <vector>", True),
    ("a_room_below", "rdma/stream/a.cpp", '#include "rdma/engine/io_op.hpp"', True),
    ("a_room_above", "rdma/engine/a.cpp", '#include "rdma/stream/connection.hpp"', False),
    ("a_file_of_a_room", "rnic/memory/a.cpp", '#include "rnic/ethernet/rx_hash.hpp"', True),
    ("another_file_of_that_room", "rnic/memory/a.cpp", '#include "rnic/ethernet/steering.hpp"', False),
    ("a_room_of_which_nothing_is_said", "rnic/datagrams/a.cpp", '#include "rnic/memory/segment.hpp"', True),
]


class CheckLayers(unittest.TestCase):
    def test_each_row(self):
        for name, file, include, accepted in ROWS:
            with self.subTest(name):
                tree = ScratchTree()
                self.addCleanup(tree.remove)
                for target in TARGETS:
                    tree.write(target, "#pragma once\n")
                tree.write(file, f"// one include\n{include}\n")
                status, output = tree.run("check-layers.py")
                self.assertEqual(status, 0 if accepted else 1, output)
                if not accepted:
                    self.assertIn(f"{file}:", output)

    def test_units_that_include_each_other(self):
        rows = [  # name, two headers and what each includes, accepted
            ("one_way", "kv/a.hpp", "kv/b.hpp", "kv/b.hpp", None, True),
            ("a_new_circle", "kv/a.hpp", "kv/b.hpp", "kv/b.hpp", "kv/a.hpp", False),
            ("a_circle_through_a_source", "kv/a.hpp", "kv/b.hpp", "kv/b.cpp", "kv/a.hpp", False),
            ("a_circle_that_is_known", "kv/known_a.hpp", "kv/known_b.hpp", "kv/known_b.hpp", "kv/known_a.hpp", True),
            ("a_known_one_that_has_ended", "kv/known_a.hpp", "kv/known_b.hpp", "kv/known_b.hpp", None, False),
        ]
        for name, first, includes, second, back, accepted in rows:
            with self.subTest(name):
                tree = ScratchTree()
                self.addCleanup(tree.remove)
                data = json.loads((tree.root / "tools/layers.json").read_text())
                data["known_circles"] = [["kv/known_a", "kv/known_b"]]
                tree.write("tools/layers.json", json.dumps(data))
                tree.write(includes, "#pragma once\n")
                tree.write(first, f'#pragma once\n#include "{includes}"\n')
                tree.write(second, f'#include "{back}"\n' if back else "// nothing\n")
                status, output = tree.run("check-layers.py")
                self.assertEqual(status, 0 if accepted else 1, output)


    def test_rooms_include_only_rooms_below(self):
        rows = [  # name, the file that includes, what it includes, known arrows back up, accepted
            ("a_room_below", "kv/high/a.cpp", "kv/low/b.hpp", [], True),
            ("a_room_above", "kv/low/a.cpp", "kv/high/b.hpp", [], False),
            ("a_room_above_that_is_known", "kv/low/a.cpp", "kv/high/b.hpp", ["low -> high"], True),
            ("a_known_arrow_that_is_gone", "kv/high/a.cpp", "kv/low/b.hpp", ["low -> high"], False),
            ("the_same_room", "kv/low/a.cpp", "kv/low/b.hpp", [], True),
            ("a_file_of_the_layer_itself", "kv/low/a.cpp", "kv/b.hpp", [], True),
            ("a_room_in_no_order", "kv/new/a.cpp", "kv/low/b.hpp", [], False),
        ]
        for name, file, header, known, accepted in rows:
            with self.subTest(name):
                tree = ScratchTree()
                self.addCleanup(tree.remove)
                data = json.loads((tree.root / "tools/layers.json").read_text())
                data |= {"orders": {"kv": ["low", "high"]}, "known_back_arrows": {"kv": known}}
                tree.write("tools/layers.json", json.dumps(data))
                tree.write(header, "#pragma once\n")
                tree.write(file, f'#include "{header}"\n')
                status, output = tree.run("check-layers.py")
                self.assertEqual(status, 0 if accepted else 1, output)


if __name__ == "__main__":
    unittest.main()
