"""Cases again with their ends as two users of this host, between whom packets travel through unix sockets (link/users)."""
import dataclasses

from case import HOST, Case

# Those in `make test`; the others run only in the long form.
SHORT = ["ibv_rc_pingpong.checked", "ibv_uc_pingpong.default", "rping.displayed", "ib_write_bw.default", "ib_send_lat.default",
         "ib_read_bw.size_4096", "ib_atomic_lat.fetch_and_add", "killed.ib_write_bw.server", "killed.ib_write_bw.client", "ibv_ud_pingpong.default",
         "udaddy", "mckey", "ib_send_bw.ud.five", "ibv_xsrq_pingpong.default"]
SELECTION = [
    *SHORT, "ibv_rc_pingpong.size_1M_checked", "ibv_rc_pingpong.events_checked_new_send", "rping.size_60000",
    "rping.validated_10000", "ibv_srq_pingpong.events_checked", "rdma_server", "ucmatose",
    *(f"ib_{verb}_{kind}.{form}" for verb in ("write", "read", "send") for kind in ("lat", "bw")
      for form in ("default", "size_1", "size_1048576", "rdma_cm")),
    "ib_write_bw.both_ways", "ib_write_bw.queue_pairs_16_both_ways", "ib_read_bw.both_ways", "ib_send_bw.both_ways",
    "ib_send_bw.shared_receive_queue", "ib_send_bw.events", "ib_atomic_bw.both_ways_queue_pairs_16",
    "killed.ib_send_bw.server", "killed.ib_read_bw.server", "ibv_ud_pingpong.events_checked",
    "udaddy.many", "ib_send_lat.ud.rdma_cm", "ib_send_lat.ud.events", "ib_send_lat.unreliable_connection",
    "ib_send_bw.xrc.shared_receive_queue", "ib_read_bw.extended_reliable_connection",
]


# A server under its own account, and one of its users.
SERVER = ["{bin}/weir-server", "--port", "0", "--rdma-port", "{port}"]
CLIENT = ["{bin}/weir-cli", "--rdma", "-h", HOST, "-p", "{port}"]
OURS = [
    Case("two_users.weir_server", "served", SERVER, [*CLIENT, "set", "greeting", "hello"], ready="rdma", expect=["OK"]),
    Case("two_users.weir_server.large", "served", SERVER, [*CLIENT, "eval", "return string.rep('x', 3000000)", "0"], ready="rdma",
         expect=["x{3000000}"]),
]


def two_users(cases):
    for case in OURS:
        yield dataclasses.replace(case, two_users=True, in_shm=True, needs=["{bin}/weir-server", "{bin}/weir-cli"])
    by_name = {case.name: case for case in cases}
    for name in dict.fromkeys(SELECTION):
        yield dataclasses.replace(by_name[name], name=f"two_users.{name}", two_users=True, in_shm=True, options=[],
                                  label="interop" if name in SHORT else "slow")
