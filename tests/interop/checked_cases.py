"""Cases again under the checker (weir run --check), and on a weak NIC besides: right programs give no report.

An error makes a program's exit status 66 and so the case fails. Not in it: cases that kill an end or cut its way, whose survivors rightly
report failed completions; and what knowingly does something that ibv_post_send(3) forbids is listed in docs/check.md.
"""
import dataclasses

from weak_cases import KNOWN

# Those in `make test`: a program of each family.
SHORT = ["ibv_rc_pingpong.events_checked_new_send", "ibv_ud_pingpong.events_checked", "rping.size_60000", "ib_write_bw.default", "ib_atomic_lat.fetch_and_add",
         "ucmatose", "rdma_xserver.xrc"]
FAMILIES = ("ib_", "ibv_", "rping", "rdma_", "ucmatose", "udaddy", "mckey", "rstream", "riostream", "fi_", "ucx", "open_mpi", "pyverbs", "gloo", "tensorpipe",
            "qperf", "cmtime", "rcopy", "udpong", "umad")
WAYS = {"checked": ["--check"], "checked_weak": ["--check", "--weak=1"]}
# What is found in them is true. cmtime (rdma-core 44) makes all of its queue pairs with one attribute structure, into which rdma_create_qp()
# writes the CQ that it made for the first; so the first rdma_destroy_qp() would destroy the CQ of all. qperf (0.4.11) deallocates its protection domain before it deregisters its memory.
# UCX 1.13 unmaps the memory of its UD transport's receives before it destroys the queue pair that they are posted on.
TRUE_FINDINGS = ("cmtime", "qperf", "ucx.")
# ib_send_lat -e takes the event of an arrival for its own (weak_cases.py).


def checked(cases):
    for case in cases:
        if case.how not in ("alone", "pair", "served", "persistent_server") or case.killed or not case.name.startswith(FAMILIES) \
                or case.name.startswith(TRUE_FINDINGS):
            continue
        for way, options in WAYS.items():
            if way == "checked_weak" and case.name.startswith("ib_send_lat.") and case.name.endswith(".events"):
                continue
            short = case.name in SHORT and way == "checked"
            known = KNOWN.get(case.name.split(".")[0], {}) if way == "checked_weak" else {}
            yield dataclasses.replace(case, name=f"{way}.{case.name}", label=case.label if short else "slow", options=[*case.options, *options],
                                      limit_s=2 * case.limit_s, known={**case.known, **known})
