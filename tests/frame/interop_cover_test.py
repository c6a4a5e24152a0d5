"""tests/interop/cover.py: which cases `make test` runs."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import cases  # noqa: E402
import cover  # noqa: E402

FACTORS = [  # the case, and its factors
    ("ib_send_lat.events", {"path": "", "verb": "ibsend", "kind": "lat", "option": "events"}),
    ("ib_send_lat.size_4096", {"path": "", "verb": "ibsend", "kind": "lat", "option": "all_sizes"}),
    ("ibv_rc_pingpong.default", {"path": "", "verb": "ibvrc", "kind": "pingpong", "option": "default"}),
    ("between_hosts.ipv6.ib_write_bw.default", {"path": "between_hosts.ipv6", "verb": "ibwrite", "kind": "bw", "option": "default"}),
    ("no_process_vm.killed.ib_send_bw.server", {"path": "no_process_vm", "verb": "killed.ib_send_bw.server"}),
    ("open_mpi.rc_v+ud_v.ring.2_ranks", {"path": "", "verb": "open_mpi", "kind": "rc_v+ud_v", "option": "ring"}),
    ("ucx.rc_v.ucp_fadd", {"path": "", "verb": "ucx", "kind": "rc_v", "option": "atomic"}),
]


class Cover(unittest.TestCase):
    def test_factors_of_each_case(self):
        for name, factors in FACTORS:
            with self.subTest(name):
                self.assertEqual(cover.factors(name), factors)

    def test_every_pair_of_the_cases_is_run(self):
        chosen = [case.name for case in cases.CASES if case.label != "slow"]
        left_out = [case.name for case in cases.SHORT if case.name not in chosen]
        self.assertTrue(left_out)
        run = set().union(*map(cover.pairs, chosen))
        self.assertEqual([name for name in left_out if cover.pairs(name) - run], [])

    def test_one_case_of_two_alike_is_chosen(self):
        self.assertEqual(cover.cover(["ib_send_lat.size_1", "ib_send_lat.all_sizes"]), {"ib_send_lat.size_1"})


if __name__ == "__main__":
    unittest.main()
