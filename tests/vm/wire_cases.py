"""What runs between Weir's NIC and the kernel's Soft-RoCE, each program in both roles. run_wire.py runs it.

{host} is the server's address, {own} that of the end that the command runs at, {gid} the index of the GID with that address, {port} a
port.
Programs that make their own connection to exchange what RDMA needs make it over IPv4; their GIDs are of the case's family.
"""
import dataclasses

PINGPONG = [r"^\d+ iters in"]


@dataclasses.dataclass
class Case:
    name: str
    server: list
    client: list
    ready: str = "tcp"    # where the server listens: "tcp" or "cm" on {port}, or "cm:7174"; or "prints:" and what it prints then
    expect: list = ()     # patterns that the client prints
    sizes: list = ()      # perftest: message sizes that each have a row of numbers
    served: str = ""      # what the server prints once it has done its part
    family: str = "ipv4"
    wire: str = ""        # what netem does to packets of both directions
    mtu: int = 1500       # of the wire


def pingpong(kind, *words):
    command = [f"ibv_{kind}_pingpong", "-p", "{port}", "-g", "{gid}", "-n", "200", *words]
    return Case(f"ibv_{kind}_pingpong", command, [*command, "{host}"], expect=PINGPONG)


def perftest(program, size, *words, name=""):
    command = [program, "-F", "-p", "{port}", "-x", "{gid}", "-n", "100", "-s", str(size), *words]
    return Case(program + name, command, [*command, "{host}"], sizes=[size])


def rping(*words):
    return Case("rping", ["rping", "-s", "-a", "{host}", "-p", "{port}", "-C", "10", "-v", *words],
                ["rping", "-c", "-a", "{host}", "-p", "{port}", "-C", "10", "-v", *words], ready="cm", expect=[r"^ping data: rdma-ping-9"],
                served=r"server ping data: rdma-ping-9")


def mckey(*words):
    return ["mckey", "-m", "239.1.1.1", "-b", "{own}", "-c", "1", "-C", "10", *words]


ADDRESSED = [pingpong("rc", "-c"), rping("-S", "5000"), perftest("ib_write_bw", 65536)]
LONG_PACKETS = [pingpong("rc", "-c", "-m", "4096"), rping("-S", "60000"),
                dataclasses.replace(perftest("ib_write_bw", 65536), expect=[r"Mtu\s*: 4096"])]
CHECKED = [pingpong("rc", "-c", "-n", "50"), rping("-S", "5000")]  # they look at what arrived
BAD_WIRES = {"loss": "loss 5%", "duplicate": "duplicate 5%", "corrupt": "corrupt 1%", "reorder": "delay 2ms reorder 25%",
             "delay": "delay 10ms 5ms"}


def every_operation(size):
    return [perftest("ib_send_bw", size), perftest("ib_write_bw", size), perftest("ib_read_bw", size, "-o", "8"),
            perftest("ib_atomic_bw", 8, "-o", "8")]


CASES = [
    *ADDRESSED,
    pingpong("uc"),
    pingpong("ud", "-s", "1024"),  # a datagram is one packet
    pingpong("srq"),
    perftest("ib_send_bw", 65536),
    # perftest takes the other device's limit of READs on their way for its own, and Soft-RoCE's is 128.
    perftest("ib_read_bw", 65536, "-o", "8"),
    perftest("ib_write_lat", 8),
    perftest("ib_read_lat", 4096, "-o", "8"),
    perftest("ib_atomic_bw", 8, "-o", "8"),
    perftest("ib_send_lat", 512, "-c", "UD", name=".datagrams"),
    perftest("ib_write_bw", 4096, "-c", "UC", name=".unreliable"),
    Case("udaddy", ["udaddy", "-b", "{host}"], ["udaddy", "-s", "{host}"], ready="cm:7174", expect=["return status 0"]),
    Case("ucmatose", ["ucmatose", "-b", "{host}", "-p", "{port}"], ["ucmatose", "-s", "{host}", "-p", "{port}"], ready="cm",
         expect=["return status 0"]),
    Case("mckey", mckey(), mckey("-s"), ready="prints:joined dgid", expect=["return status 0"]),
    *(dataclasses.replace(each, name=f"{each.name}.ipv6", family="ipv6") for each in ADDRESSED),
    *(dataclasses.replace(each, name=f"{each.name}.mtu_4096", mtu=4200) for each in LONG_PACKETS),
    *(dataclasses.replace(each, name=f"{each.name}.{what}", wire=netem) for what, netem in BAD_WIRES.items() for each in CHECKED),
    # Soft-RoCE sends everything again for each packet that overtakes another: 100 SENDs of 64 KiB did not end in two minutes.
    *(dataclasses.replace(each, name=f"{each.name}.{what}", wire=BAD_WIRES[what]) for what, size in (("loss", 65536), ("reorder", 4096))
      for each in every_operation(size)),
]
