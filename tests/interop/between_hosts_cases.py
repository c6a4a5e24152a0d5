"""Cases again with their ends in two network namespaces that exchange only packets (two_namespaces.py)."""
import dataclasses

from case import Case
from two_namespaces import ADDRESSES

# Those in `make test`; the others run only in the long form.
SHORT = ["ibv_rc_pingpong.checked", "rping.displayed", "ib_write_bw.default", "ib_send_lat.default", "ib_read_bw.size_4096",
         "ib_atomic_lat.fetch_and_add", "killed.ib_write_bw.server", "ibv_ud_pingpong.default", "udaddy", "ib_send_bw.ud.five", "ib_write_bw.unreliable_connection",
         "ib_send_lat.unreliable_connection", "ib_send_bw.unreliable_connection", "mckey", "ibv_xsrq_pingpong.default",
         "ib_write_bw.extended_reliable_connection", "ib_send_bw.xrc.shared_receive_queue", "rdma_xserver.xrc", "cm_transport.uc",
         "ends_connected.returns", "ends_connected.killed"]
# Frameworks whose two ends find each other by the host's address.
FRAMEWORKS_SHORT = ["ucx.rc_v+ud_v.tag_lat", "fi_pingpong.msg", "fi_pingpong.rdm", "gloo.allreduce", "tensorpipe.ibv", "qemu.migrated"]
FRAMEWORKS = [*FRAMEWORKS_SHORT, *(f"ucx.rc_v+ud_v.{test}" for test in ("tag_bw", "stream_bw", "ucp_put_bw", "ucp_get", "ucp_fadd", "ucp_am_bw")),
              "ucx.ud_v.tag_lat", "fi_pingpong.dgram", "qemu.migrated_pinned"]
SELECTION = [
    *SHORT, *FRAMEWORKS, "ibv_rc_pingpong.size_1M_checked", "ibv_rc_pingpong.events_checked_new_send", "rping.size_60000", "rping.validated_10000",
    "ibv_srq_pingpong.events_checked", "ibv_uc_pingpong.default", "ib_write_lat.uc.default", "rdma_server", "ucmatose", "udaddy.many", "udaddy.options", "ib_send_lat.datagrams", "ib_send_lat.events",
    "ibv_ud_pingpong.events_checked", "ib_send_lat.ud.rdma_cm", "ib_send_lat.ud.events",
    *(f"ib_{verb}_{kind}.{form}" for verb in ("write", "read", "send") for kind in ("lat", "bw")
      for form in ("default", "size_1", "size_1048576", "all_sizes", "rdma_cm")),
    "ib_write_bw.both_ways", "ib_write_bw.queue_pairs_16_both_ways", "ib_read_bw.both_ways", "ib_send_bw.both_ways",
    "ib_send_bw.shared_receive_queue", "ib_send_bw.events", "ib_atomic_bw.both_ways_queue_pairs_16",
    "ib_atomic_lat.cmp_and_swap", "killed.ib_write_bw.client", "killed.ib_send_bw.server", "killed.ib_read_bw.server",
    "ibv_xsrq_pingpong.events", "ib_send_bw.xrc.both_ways", "ib_send_bw.xrc.queue_pairs_16", "ib_read_bw.extended_reliable_connection",
    "ib_atomic_bw.extended_reliable_connection", "ib_send_lat.xrc.all_sizes", "ib_read_lat.xrc.all_sizes", "ib_write_lat.xrc.all_sizes",
]
# With packets between programs of one host.
PACKETS = ["pyverbs.own", "ibv_rc_pingpong.checked", "ibv_ud_pingpong.default", "rping.displayed", "cm_transport.uc", "ib_send_lat.default",
           "ib_write_bw.default", "ib_read_bw.size_4096", "ib_atomic_lat.fetch_and_add"]
# Over IPv6, with the option that tells the connection manager about such an address.
WITH_CM = {"ipv6": ["rping.displayed", "rping.size_60000", "mckey", "ends_connected.killed"],
           "link_local": ["rping.displayed", "ends_connected.killed"]}
# Groups have the address family of the addresses.
GROUPS = {"239.1.1.1": "ff15::77:1"}
# And where a GID index selects it, on the programs' own connection over IPv4.
WITH_INDEX = {"ibv_rc_pingpong.size_1M_checked": "-g", "ib_write_bw.default": "-x", "ib_send_lat.default": "-x",
              "ib_read_bw.size_1048576": "-x", "ib_atomic_lat.fetch_and_add": "-x", "ibv_ud_pingpong.default": "-g",
              "ib_send_lat.datagrams": "-x"}
# A datagram is one packet, and this program's default exceeds those of a wire with an MTU of 1500.
SHORTER = {"ibv_ud_pingpong": ["-s", "1024"]}

# Open MPI starts half of its ranks on each host. Windows are left out with libfabric: Debian's Open MPI then makes none between hosts
# ("MPI_ERR_WIN: invalid window"), over TCP neither.
MPI_SHORT = ["open_mpi.rc_v+ud_v.ring.2_ranks", "open_mpi.rc_v+ud_v.window.4_ranks", "open_mpi.libfabric.allreduce.2_ranks"]


def mpi(by_name):
    for name, case in by_name.items():
        if not name.startswith("open_mpi.") or name.startswith("open_mpi.libfabric.window."):
            continue
        mpirun, *options, program, part = case.server
        ranks = int(options[options.index("-n") + 1])
        command = [mpirun, "--host", f"{{own}}:{ranks // 2},{{host}}:{ranks // 2}",
                   "--mca", "plm_rsh_agent", "{here}/programs/on_another_host.sh {server_namespace}", *options, "{bin}/weir", "run", "--", program, part]
        yield dataclasses.replace(case, name=f"between_hosts.{name}", server=command, between_hosts="ipv4", in_shm=True,
                                  label="interop" if name in MPI_SHORT else "slow", needs=[*case.needs, "{bin}/weir"])


# The server has a key. A client with another key and one without reach nothing, by the connection manager either; one with the same
# key, from a file, does. What the server dropped is counted.
KEY, OTHER_KEY = "00112233445566778899AABBCCDDEEFF", "00112233445566778899AABBCCDDEEFE"
WITH_KEYS = (f"rping='rping -c -a {{host}} -C 3 -p {{port}}'; WEIR_WIRE_KEY={OTHER_KEY} $rping & other=$!; $rping & none=$!; wait $other && exit 1; wait $none && exit 1; "
             f"umask 077; echo {KEY} > {{scratch}}/key; WEIR_WIRE_KEY={{scratch}}/key $rping -v || exit 1; "
             "nsenter --target {server_namespace} --net -- {bin}/weir stat --once; rm {scratch}/key")

OURS = [
    Case("between_hosts.wire_key", "served", ["env", f"WEIR_WIRE_KEY={KEY}", "rping", "-s", "-P", "-p", "{port}"], ["sh", "-c", WITH_KEYS],
         ready="rdma", expect=[r"ping data: rdma-ping-2: ", r"dropped:.* [1-9]\d* wrong key"], between_hosts="ipv4", in_shm=True, needs=["{bin}/weir"]),
    Case("between_hosts.weir_server.replica", "served",
         ["{bin}/weir-server", "--port", "0", "--rdma-port", "{port}", "--protected-mode", "no", "--enable-debug-command", "yes"],
         ["python3", "-B", "{here}/programs/replica_over_rdma.py", "{bin}", "{host}", "{port}", "{scratch}"], ready="rdma",
         expect=["^keys 15000 link rdma digests equal$"], between_hosts="ipv4", in_shm=True,
         needs=["{bin}/weir-server", "{bin}/weir-cli"]),
]

# What may happen to a host while its programs talk. Each ends the connection, and Weir says why where it can know.
GONE = r"Failed status 12"  # transport retry counter exceeded
DISTURBED = {
    "server_stopped": ("server", [], [GONE]),
    "interface_deleted": ("server", ["ip", "link", "delete", "wire"], [GONE]),
    "address_deleted": ("client", ["ip", "address", "delete", "10.77.0.2/24", "dev", "wire"],
                        [GONE, r"weir: cannot send packets to 10\.77\.0\.1: .*; "]),
    "mtu_lowered": ("client", ["ip", "link", "set", "wire", "mtu", "600"], [GONE, r"weir: cannot send .*shorter packets than the path MTU"]),
}

# Beside stopped processes of the same user that have opened the port (4791 in the kernel's table of UDP sockets), another one serves. By
# itself the kernel would send all packets of the client to one of the eight.
STOPPED_BESIDE = ("for i in 1 2 3 4 5 6 7; do rping -s -p 730$i & all=\"$all $!\"; done; "
                  "until [ $(cat /proc/net/udp /proc/net/udp6 | grep -c ':12B7 ') = 7 ]; do sleep 0.05; done; sleep 0.05; kill -STOP $all; "
                  "exec rping -s -P -p {port}")

# Beside a living process of its address, which gets what is for the killed one.
KILLED_BESIDE = ("rping -s -p 7301 > /dev/null 2>&1 & until cat /proc/net/udp /proc/net/udp6 | grep -q ':12B7 '; do sleep 0.05; done; "
                 "{programs}/ends_connected client killed {port} {host}; [ $? = 137 ]")

# They share the port at either end, so most packets come to another process than the one they are for. The last listener starts when
# the others have bound their ports.
MANY = 100
FIRST_PORT = 7200
MANY_SERVERS = (f"for i in $(seq {MANY - 1}); do rping -s -C 5 -p $(({FIRST_PORT} + i)) & done; "
                f"until [ $(ls -d $WEIR_RUNTIME_DIR/net-*/cm/tcp-* | wc -l) -ge {MANY - 1} ]; do sleep 0.05; done; "
                f"rping -s -C 5 -p $(({FIRST_PORT} + {MANY})); exec sleep infinity")
MANY_CLIENTS = (f"for i in $(seq {MANY}); do rping -c -a {{host}} -C 5 -p $(({FIRST_PORT} + i)) & all=\"$all $!\"; done; "
                "for each in $all; do wait $each || exit 1; done")


def disturbed(by_name):
    case = by_name["killed.ib_write_bw.server"]
    for what, (end, command, expect) in DISTURBED.items():
        yield dataclasses.replace(case, name=f"between_hosts.disturbed.{what}", how="disturbed", killed="", disturbed=end,
                                  disturb=command, expect=expect, between_hosts="ipv4", in_shm=True)
    yield Case("between_hosts.beside_stopped_processes", "served", ["sh", "-c", STOPPED_BESIDE], ["rping", "-c", "-a", "{host}", "-C", "50", "-V", "-v", "-p", "{port}"],
               ready="rdma", expect=[r"ping data: rdma-ping-49: "], between_hosts="ipv4", in_shm=True)
    yield dataclasses.replace(by_name["ends_connected.killed"], name="between_hosts.ends_connected.killed_beside_another",
                              client=["sh", "-c", KILLED_BESIDE], between_hosts="ipv4", in_shm=True)
    yield Case("between_hosts.many_processes", "served", ["sh", "-c", MANY_SERVERS], ["sh", "-c", MANY_CLIENTS], ready=f"rdma:{FIRST_PORT + MANY}",
               between_hosts="ipv4", in_shm=True, label="slow", limit_s=300)


def packets(by_name):
    for name in PACKETS:
        case = by_name[name]
        words = SHORTER.get(name.split(".")[0], [])
        client = [*case.client[:-1], *words, case.client[-1]] if case.client else None
        yield dataclasses.replace(case, name=f"packets.{name}", between_hosts="ipv4", one_host=True, in_shm=True, options=["--packets"],
                                  server=[*case.server, *words], client=client)


def between_hosts(cases):
    yield from OURS
    by_name = {case.name: case for case in cases}
    yield from disturbed(by_name)
    yield from mpi(by_name)
    yield from packets(by_name)

    def case_of(name, kind, words, prefix="", label="interop"):
        case = by_name[name]
        words = [*words, *SHORTER.get(name.split(".")[0], [])]
        if kind == "ipv6":
            case = dataclasses.replace(case, server=[GROUPS.get(word, word) for word in case.server],
                                       client=[GROUPS.get(word, word) for word in case.client])
        return dataclasses.replace(case, name=f"between_hosts.{prefix}{name}", between_hosts=kind, server=[*case.server, *words],
                                   client=[*case.client[:-1], *words, case.client[-1]], in_shm=True, label=label, options=[])

    for name in dict.fromkeys(SELECTION):
        yield case_of(name, "ipv4", [], label="interop" if name in SHORT or name in FRAMEWORKS_SHORT else "slow")
    for kind, names in WITH_CM.items():
        for name in names:
            yield case_of(name, kind, [], f"{kind}.")
    for index, kind in enumerate(ADDRESSES):
        if kind == "ipv4":
            continue
        for name, option in WITH_INDEX.items():
            yield case_of(name, "ipv4", [option, str(index)], f"{kind}.", "interop" if kind == "ipv6" else "slow")
