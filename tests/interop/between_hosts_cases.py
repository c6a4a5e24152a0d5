"""Cases again with their ends in two network namespaces, between which only packets go (two_namespaces.py)."""
import dataclasses

# Of `make test`; the others only in the long form.
SHORT = ["ibv_rc_pingpong.checked", "rping.displayed", "ib_write_bw.default", "ib_send_lat.default", "ib_read_bw.size_4096",
         "ib_atomic_lat.fetch_and_add", "killed.ib_write_bw.server"]
SELECTION = [
    *SHORT, "ibv_rc_pingpong.size_1M_checked", "ibv_rc_pingpong.events_checked_new_send", "rping.size_60000", "rping.validated_10000",
    "ibv_srq_pingpong.events_checked", "rdma_server", "ucmatose",
    *(f"ib_{verb}_{kind}.{form}" for verb in ("write", "read", "send") for kind in ("lat", "bw")
      for form in ("default", "size_1", "size_1048576", "all_sizes", "rdma_cm")),
    "ib_write_bw.both_ways", "ib_write_bw.queue_pairs_16_both_ways", "ib_read_bw.both_ways", "ib_send_bw.both_ways",
    "ib_send_bw.shared_receive_queue", "ib_send_bw.events", "ib_atomic_bw.both_ways_queue_pairs_16",
    "ib_atomic_lat.cmp_and_swap", "killed.ib_write_bw.client", "killed.ib_send_bw.server", "killed.ib_read_bw.server",
]
# A port shared by several users of an address needs one to say which: index 0 is the wire's in both namespaces.
WITH_GID = ("ibv_rc_pingpong", "ibv_srq_pingpong")


def between_hosts(cases):
    by_name = {case.name: case for case in cases}
    for name in dict.fromkeys(SELECTION):
        case = by_name[name]
        gid = ["-g", "0"] if name.split(".")[0] in WITH_GID else []
        yield dataclasses.replace(case, name=f"between_hosts.{name}", between_hosts=True, server=[*case.server, *gid],
                                  client=[*case.client[:-1], *gid, case.client[-1]], in_shm=True,
                                  label="interop" if name in SHORT else "slow")
