"""Cases again on a NIC that does whatever it may (weir run --weak): right programs cannot notice.

Not in it: ib_send_lat -e, whose one channel for two CQs takes the event of an arrival for that of its own completion (perftest 4.5).

Every opcode and transport, both directions, events, checked data, connection management, and a program that ends while its peer works.
"""
import dataclasses

# Those in `make test`, with the first seed.
SHORT = ["ibv_rc_pingpong.events_checked_new_send", "ibv_ud_pingpong.events_checked", "rping.size_60000", "ib_read_bw.both_ways", "ib_send_lat.default"]
SELECTION = [
    *SHORT, "ibv_rc_pingpong.size_1M_checked", "ibv_uc_pingpong.events_checked", "ibv_srq_pingpong.events_checked", "ibv_xsrq_pingpong.events",
    "rping.displayed", "rping.validated_10000", "rdma_server", "ucmatose", "udaddy.many", "rstream.verified", "riostream.verified",
    "ib_write_lat.default", "ib_write_lat.size_1048576", "ib_write_bw.default", "ib_write_bw.queue_pairs_16_both_ways", "ib_write_lat.uc.default",
    "ib_send_lat.all_sizes", "ib_send_bw.shared_receive_queue", "ib_send_lat.datagrams", "ib_atomic_lat.fetch_and_add",
    "ib_atomic_bw.both_ways_queue_pairs_16", "killed.ib_write_bw.client", "killed.ib_send_bw.server",
]
SEEDS = range(1, 21)
# It counts completed sends, so that up to one send of each queue pair is posted beyond those that its peer waits for; the peer may have ended.
KNOWN = {"ibv_srq_pingpong": {"transport retry counter exceeded": "ibv_srq_pingpong posts more sends than its peer waits for"}}


def weak(cases):
    by_name = {case.name: case for case in cases}
    for seed in SEEDS:
        for name in SELECTION:
            case = by_name[name]
            short = seed == SEEDS[0] and name in SHORT
            yield dataclasses.replace(case, name=f"weak_{seed}.{name}", label=case.label if short else "slow",
                                      options=[*case.options, f"--weak={seed}"], limit_s=2 * case.limit_s,
                                      known={**case.known, **KNOWN.get(name.split(".")[0], {})})
