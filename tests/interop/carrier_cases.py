"""Cases again over TCP streams (weir run --carrier), between two network namespaces: by choice; where no UDP packet ever arrives; and where
UDP stops in the middle of the work."""
import dataclasses

from case import Case

# By streams from the start, and no UDP packet arrives that might help.
TCP = ["rping.displayed", "rping.validated_10000", "ucmatose", "udaddy", "ibv_rc_pingpong.checked", "ibv_ud_pingpong.default", "ib_write_bw.default", "ib_send_bw.default",
       "ib_send_lat.default", "ib_read_bw.size_4096", "ib_atomic_lat.fetch_and_add", "ib_write_bw.queue_pairs_16_both_ways",
       "rdma_xserver.xrc", "cm_transport.uc", "ends_connected.returns"]
# UDP first, which nobody hears.
BLOCKED = ["rping.displayed", "ucmatose", "ib_write_bw.default", "ib_send_bw.default", "ib_send_lat.default", "ib_send_lat.rdma_cm", "ibv_rc_pingpong.checked",
           "ucmatose.many"]
SHORT = ["between_hosts.tcp.rping.displayed", "between_hosts.tcp.ib_write_bw.default", "between_hosts.blocked.rping.displayed",
         "between_hosts.blocked.ib_send_lat.default", "between_hosts.nat.auto.rping.displayed", "between_hosts.cut.ib_write_bw"]
MOVED = r"weir: packets to 10\.77\.0\.\d go unanswered by UDP port 4791: they go over TCP port 4791 from now on"

# Each value comes back right, in order; the cut is somewhere in the middle.
ECHOES = ("seq 20000 | awk '{{print \"SET k\" $1 \" v\" $1; print \"GET k\" $1}}' | {bin}/weir-cli --rdma -h {host} -p {port} > {scratch}/said || exit 1; "
          "seq 20000 | awk '{{print \"OK\"; print \"v\" $1}}' | tr -d '\\\"' > {scratch}/due; tr -d '\\\"' < {scratch}/said | cmp - {scratch}/due && echo all right")

CUT = [
    ("ib_write_bw", ["ib_write_bw", "-F", "-p", "{port}", "-D", "4"], ["{host}"], "tcp", [r"^\s*65536\s+\d+"]),
    ("ib_send_bw", ["ib_send_bw", "-F", "-p", "{port}", "-n", "50000", "-s", "4096"], ["{host}"], "tcp", [r"^\s*4096\s+50000"]),
    ("ib_read_bw", ["ib_read_bw", "-F", "-p", "{port}", "-D", "4"], ["{host}"], "tcp", [r"^\s*65536\s+\d+"]),
    ("ib_send_lat", ["ib_send_lat", "-F", "-p", "{port}", "-n", "10000"], ["{host}"], "tcp", [r"^\s*2\s+10000"]),
    ("ibv_rc_pingpong", ["ibv_rc_pingpong", "-p", "{port}", "-c", "-n", "20000", "-g", "0"], ["{host}"], "tcp", [r"20000 iters"]),
]


# A masquerading router between the ends, which both have one key.
KEY = "00112233445566778899AABBCCDDEEFF"
BEHIND_NAT = {"tcp": ["rping.displayed", "ucmatose"], "auto": ["rping.displayed"]}


def carriers(cases):
    by_name = {case.name: case for case in cases}

    def between(name, path, carrier, **more):
        case = by_name[name]
        shorter = ["-s", "1024"] if name.startswith("ibv_ud_pingpong") else []
        server = [*case.server, *shorter]
        client = [*case.client[:-1], *shorter, case.client[-1]]
        return dataclasses.replace(case, name=f"between_hosts.{path}.{name}", between_hosts="ipv4", in_shm=True, server=server, client=client,
                                   options=["--carrier", carrier], **more)

    made = [*(between(name, "tcp", "tcp", udp_dropped=True) for name in TCP),
            *(between(name, "blocked", "auto", udp_dropped=True, expect=[*by_name[name].expect, MOVED]) for name in BLOCKED)]
    for carrier, names in BEHIND_NAT.items():
        for case in [between(name, f"nat.{carrier}", carrier, behind_nat=True, needs=["/usr/sbin/nft"]) for name in names]:
            keyed = ["env", f"WEIR_WIRE_KEY={KEY}"]
            made.append(dataclasses.replace(case, server=[*keyed, *case.server], client=[*keyed, *case.client]))
    for name, command, more, ready, expect in CUT:
        made.append(Case(f"between_hosts.cut.{name}", "cut", command, [*command, *more], ready=ready, expect=[*expect, MOVED],
                         between_hosts="ipv4", in_shm=True, options=["--carrier", "auto"]))
    made += [
        Case("between_hosts.cut.rping", "cut", ["rping", "-s", "-P", "-p", "{port}", "-S", "60000"], ["rping", "-c", "-a", "{host}", "-p", "{port}", "-v", "-V", "-S", "60000", "-C", "1000"],
             ready="rdma", expect=[r"ping data: rdma-ping-999: ", MOVED], between_hosts="ipv4", in_shm=True, options=["--carrier", "auto"]),
        *(Case(f"between_hosts.{path}.weir_server", how,
               ["{bin}/weir-server", "--port", "0", "--rdma-port", "{port}", "--protected-mode", "no"], ["sh", "-c", ECHOES], ready="rdma",
               expect=["^all right$", *([MOVED] if carrier == "auto" else [])], between_hosts="ipv4", in_shm=True, options=["--carrier", carrier], udp_dropped=how == "served",
               needs=["{bin}/weir-server", "{bin}/weir-cli"]) for path, how, carrier in (("cut", "cut", "auto"), ("tcp", "served", "tcp"), ("blocked", "served", "auto"))),
        # Processes of a host share the port: each stream finds its own.
        Case("between_hosts.tcp.beside_others", "served", ["sh", "-c", "for i in 1 2 3 4 5; do rping -s -P -p 731$i & done; exec rping -s -P -p {port}"],
             ["sh", "-c", "for i in 1 2 3 4 5; do rping -c -a {host} -C 50 -V -p 731$i || exit 1; done; rping -c -a {host} -C 50 -V -v -p {port}"],
             ready="rdma", expect=[r"ping data: rdma-ping-49: "], between_hosts="ipv4", in_shm=True, options=["--carrier", "tcp"], udp_dropped=True),
    ]
    yield from (case if case.name in SHORT or case.label == "slow" else dataclasses.replace(case, label="slow") for case in made)
