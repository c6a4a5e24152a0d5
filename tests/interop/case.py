"""One interop case, as data. run_case.py runs it.

{port}, {host}, {own}, {here}, {programs}, {bin} and {scratch} are filled in by the run: a TCP port that is free now, a loopback address
(between hosts the server's), the same or, between hosts, the address of the end that the command runs at, this folder, where
the programs of programs/ were built, and Weir's own, an empty folder. {server_namespace} is a process in the server's network
namespace. Whatever speaks rdma_cm uses the same number in the RDMA port space.
"""
import dataclasses

HOST = "127.0.0.1"
FRAMEWORKS_THAT_POLL = ("ucx_perftest", "fi_pingpong", "mpirun", "gloo_allreduce", "tensorpipe_exchange", "qperf", "qemu-system-x86_64")


@dataclasses.dataclass
class Case:
    name: str
    how: str                     # a function of run_case.py: alone, pair, served, persistent_server, killed, disturbed, cut
    server: list                 # the command; with how="alone" the only one,
                                 # between hosts at the client's end
    client: list = None
    ready: str = "tcp"           # where the server listens: "tcp", "udp", "rdma" or "rsocket" on {port}, "rdma:7174", or
                                 # "prints:PATTERN"
    expect: list = ()            # patterns the client must print, in any order
    expect_server: list = ()     # patterns the server must print
    limit_s: float = 120         # in case it hangs
    label: str = "interop"       # "slow": label slow too, so not in make test
    sizes: list = ()             # perftest: message sizes that must each have a row of numbers
    killed: str = ""             # how="killed": "client" or "server"; how="pair": the client, by itself
    disturb: list = ()           # how="disturbed": what is run at that end of the wire while the client works; none: the end is stopped
    disturbed: str = ""          # the end
    copies: int = 0              # size of {file}; {copy} must equal it when the client has ended
    options: list = ()           # of `weir run`
    around: list = ()            # a launcher that runs `weir run`, with the command after its own arguments
    around_server: list = None   # the server's launcher, if it differs
    between_hosts: str = ""      # the ends are in two network namespaces, and {host} is the server's address there of this
                                 # kind (two_namespaces.ADDRESSES)
    behind_nat: bool = False     # with between_hosts: a masquerading router hides the client (two_namespaces.NatNamespaces)
    udp_dropped: bool = False    # with between_hosts: no UDP packet arrives. With how="cut" they stop in the middle of the work
    one_host: bool = False       # with between_hosts: both ends are at the server's
    user: str = ""               # the user who runs both ends; needs root
    two_users: bool = False      # each end runs as its own user with its own runtime folder; needs root
    in_shm: bool = False         # the runtime folder is in /dev/shm
    needs: list = ()             # files without which the program cannot run on this machine; then the case is skipped
    known: dict = dataclasses.field(default_factory=dict)  # faults of a peer's own, PATTERN -> where it is reported: a run that
                                 # fails with one is reported as skipped

    @property
    def processors(self):
        """Programs that poll without a pause take a processor each: two such cases at once would wait for time slices."""
        words = [str(word) for word in [*self.server, *(self.client or [])]]
        polls = any(word.startswith(("ib_", "ibv_")) and word.endswith(("_lat", "_bw", "_pingpong")) for word in words) and "-e" not in words
        return 2 if polls or any(word.endswith(FRAMEWORKS_THAT_POLL) for word in words) else 1
