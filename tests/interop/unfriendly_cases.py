"""Cases again on a less friendly machine: process_vm_* refused, foreign pid numbers, no privileges.

What an operation costs there is not what these look at, so they are a selection: every opcode, both directions, events,
sizes of one copy lane and of many, and one end killed.
"""
import dataclasses

# Those in `make test`; the others run only in the first environment below and in the long form.
SHORT = ["ibv_rc_pingpong.size_1M_checked", "rping.size_60000", "ib_write_lat.default", "ib_atomic_lat.fetch_and_add"]
SELECTION = [
    *SHORT, "ibv_rc_pingpong.events_checked_new_send", "ibv_uc_pingpong.default", "ibv_ud_pingpong.events_checked",
    "ibv_srq_pingpong.events_checked", "ibv_xsrq_pingpong.events", "rdma_server", "rstream.verified", "riostream.verified",
    "ib_write_lat.size_1048576", "ib_write_bw.queue_pairs_16_both_ways", "ib_write_bw.shareable_memory_all_sizes",
    "ib_read_bw.both_ways", "ib_send_lat.all_sizes", "ib_send_bw.shared_receive_queue", "ib_atomic_bw.both_ways_queue_pairs_16",
    "killed.ib_write_bw.client", "killed.ib_send_bw.server", "killed.ib_read_bw.server",
]

REFUSING = ["{programs}/refuse_process_vm"]  # EPERM, from a seccomp filter
IN_NAMESPACES = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]  # /proc shows others' pids
CONTAINER = [*IN_NAMESPACES, "--mount-proc", "--ipc", "--uts"]  # shares files, and so /dev/shm

PLACES = {
    "no_process_vm": dict(options=["--no-process-vm"]),
    "seccomp": dict(around=REFUSING),
    "seccomp_of_the_server": dict(around_server=REFUSING),
    "pid_namespaces": dict(around=CONTAINER, in_shm=True),
    "pid_namespace_of_the_server": dict(around_server=CONTAINER, in_shm=True),
    "pid_namespaces_without_proc": dict(around=IN_NAMESPACES, in_shm=True),
    "nobody": dict(user="nobody"),
}
# There, threads of the target copy, so that valgrind sees what a peer wrote. perftest leaks memory of its
# own.
VALGRIND = ["valgrind", "--error-exitcode=9", "--fair-sched=yes"]
NOTHING_LOST = ["--leak-check=full", "--errors-for-leak-kinds=definite"]
UNDER_VALGRIND = ["ibv_rc_pingpong.checked", "ibv_ud_pingpong.default", "ibv_srq_pingpong.default", "rping.displayed",
                  "ucmatose", "ib_write_lat.size_4096", "ib_atomic_lat.fetch_and_add", "ib_send_bw.default"]


def under_valgrind(cases):
    for case in cases:
        if case.name in UNDER_VALGRIND:
            command = [*VALGRIND, *([] if case.server[0].startswith("ib_") else NOTHING_LOST)]
            yield dataclasses.replace(case, name=f"valgrind.{case.name}", server=[*command, *case.server],
                                      client=[*command, *case.client], options=[*case.options, "--no-process-vm"], limit_s=180,
                                      needs=["/usr/bin/valgrind"], label="interop" if case.name == UNDER_VALGRIND[0] else "slow")


def unfriendly(cases):
    yield from under_valgrind(cases)
    by_name = {case.name: case for case in cases}
    for place, how in PLACES.items():
        for name in SELECTION:
            case = by_name[name]
            short = name in SHORT or place == "no_process_vm"
            yield dataclasses.replace(case, name=f"{place}.{name}", label=case.label if short else "slow",
                                      **{**how, "options": [*case.options, *how.get("options", [])]})
