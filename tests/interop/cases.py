"""The programs, as data: each Case (case.py) is one CTest test."""
import platform

from between_hosts_cases import between_hosts
from carrier_cases import carriers
from checked_cases import checked
from case import Case
from cover import with_the_rest_slow
from framework_cases import FRAMEWORKS
from perftest_cases import PERFTESTS
from sockets_cases import BENCHMARKED, CHANGING, REDIS_BENCHMARK, REDIS_SERVER, SOCKETS
from two_users_cases import two_users
from unfriendly_cases import unfriendly
from weak_cases import weak

# Its datagrams of 2048 bytes exceed the packets of an interface with an MTU of 1500, and it checks that.
WIDE = ["--mtu", "4096"]

# ---- libibverbs' own examples

def pingpong(program, name, *options, **more):
    command = [f"ibv_{program}_pingpong", "-p", "{port}", *options]
    return Case(f"ibv_{program}_pingpong.{name}", "pair", command, [*command, "{host}"],
                expect=[r"bytes in [\d.]+ seconds", r"iters in [\d.]+ seconds"],
                expect_server=[r"iters in [\d.]+ seconds"], **more)


def xsrq(name, *options):
    command = ["ibv_xsrq_pingpong", "-p", "{port}", *options]
    return Case(f"ibv_xsrq_pingpong.{name}", "pair", command, [*command, "{host}"], expect=[r"^success$"],
                expect_server=[r"^success$"])


DEVICES = [
    Case("ibv_devices", "alone", ["ibv_devices"], expect=[r"^\s*weir0\s+[0-9a-f]{16}\s*$"]),
    Case("ibv_devinfo", "alone", ["ibv_devinfo"], expect=[r"hca_id:\s*weir0", r"state:\s*PORT_ACTIVE",
                                                         r"link_layer:\s*Ethernet"]),
    Case("ibv_devinfo.verbose", "alone", ["ibv_devinfo", "-v"],
         expect=[r"max_qp:\s*[1-9]", r"max_mr_size:\s*0x[0-9a-f]+", r"GID\[\s*0\]:.*RoCE v2"]),
    # iproute2 asks the kernel by netlink, not by files.
    Case("rdma.dev", "alone", ["rdma", "dev"], expect=[r"^0: weir0: node_type ca fw [\d.]+ node_guid [0-9a-f:]{19} "]),
    Case("rdma.link", "alone", ["rdma", "link"], expect=[r"^link weir0/1 state ACTIVE physical_state LINK_UP"]),
    Case("rdma.link.of_two_devices", "alone", ["rdma", "link", "show", "mlx5_1/1"], options=["--devices", "2", "--name", "mlx5_0"],
         expect=[r"^link mlx5_1/1 state ACTIVE physical_state LINK_UP"]),
]

# ---- what programs read besides verbs, and how `weir run` shapes it

NODE = "/sys/class/infiniband/weir0"
VIEW = [
    Case("view.files", "alone", ["cat", f"{NODE}/node_type", f"{NODE}/ports/1/state", f"{NODE}/ports/1/gid_attrs/types/0"],
         expect=[r"^1: CA$", r"^4: ACTIVE$", r"^RoCE v2$"]),
    Case("view.listing", "alone", ["ls", "-l", "/sys/class/infiniband", "/sys/class/infiniband_verbs", "/dev/infiniband"],
         expect=[r"weir0 -> \.\./\.\./devices/virtual/weir/weir0/infiniband/weir0$", r"uverbs0 -> ", r"rdma_cm -> "]),
    Case("view.real_path", "alone", ["realpath", f"{NODE}/device", f"{NODE}/device/infiniband/weir0/ports/1"],
         expect=[r"^/sys/devices/virtual/weir/weir0$", r"^/sys/devices/virtual/weir/weir0/infiniband/weir0/ports/1$"],
         needs=["/sys/devices"]),
    Case("view.character_device", "alone", ["stat", "-L", "-c", "%F", "/dev/infiniband/uverbs0"],
         expect=[r"^character special file$"]),
    Case("view.scripts", "alone", ["sh", "-c", f"test -d {NODE}/ports/1 && cd {NODE} && cat ports/1/link_layer && ls device/net"],
         expect=[r"^Ethernet$", r"^\w+$"]),
    Case("view.python", "alone", ["/usr/bin/python3", "-c", f"import glob, os; print(glob.glob('{NODE[:-1]}*'), "
                                  f"os.path.realpath('{NODE}'), os.listdir('{NODE}/ports'))"],
         expect=[r"\['/sys/class/infiniband/weir0'\] /sys/devices/virtual/weir/weir0/infiniband/weir0 \['1'\]"]),
    # As hwloc opens them: relative to a descriptor of the root; and with double slashes, from settings that
    # end in one.
    Case("view.other_spellings", "alone", ["/usr/bin/python3", "-c", f"""
import os
root, below, link = os.open('/', os.O_RDONLY), os.open('/sys', os.O_RDONLY), '{NODE}'
print('root', os.read(os.open(link[1:] + '/node_type', os.O_RDONLY, dir_fd=root), 99), os.stat(link[1:], dir_fd=root).st_size > 0)
os.chdir('/')
print('there', open(link[1:] + '/node_type').read().strip(), os.listdir('.//sys/class/infiniband/'))
for path in ('//sys/class' + link[10:], '/sys//class/.' + link[10:], '/./sys/class' + link[10:]):
    print('spelt', open(path + '//node_type').read().strip(), os.path.islink(path), os.path.islink(path + '/'))
print('below', os.access(link[1:], os.F_OK, dir_fd=below))"""],
         expect=[r"^root b'1: CA\\n' True$", r"^there 1: CA \['weir0'\]$", r"^(spelt 1: CA True False\n){3}below False$"]),
    Case("view.counters", "alone", ["sh", "-c", f"cd {NODE}/ports/1 && grep -r . counters hw_counters | wc -l && cat counters/port_xmit_data"],
         expect=[r"^51$", r"^0$"]),
    # Before and after two programs that have ended: 1000 WRITEs of 4096 bytes are 1024000 words; and a file
    # held open.
    Case("view.counters_outlast_programs", "alone", ["sh", "-c", f"""
         cd {NODE}/ports/1
         words=$(cat counters/port_xmit_data); writes=$(cat hw_counters/rx_write_requests)
         ib_write_bw -p {{port}} -n 1000 -s 4096 > server.txt & until ib_write_bw -p {{port}} -n 1000 -s 4096 127.0.0.1; do :; done
         wait
         echo words $(($(cat counters/port_xmit_data) - words)) writes $(($(cat hw_counters/rx_write_requests) - writes))"""],
         expect=[r"^words 1024000 writes 1000$"]),
    Case("view.counters_perftest", "pair", ["ib_write_bw", "-p", "{port}", "-n", "1000", "-s", "4096"],
         ["ib_write_bw", "-p", "{port}", "-n", "1000", "-s", "4096", "-W", "counters/port_xmit_data,hw_counters/rx_write_requests",
          "{host}"], expect=[r"counters/port_xmit_data=1024000$", r"hw_counters/rx_write_requests=1000$"]),
    Case("view.counters_read_again", "alone", ["/usr/bin/python3", "-c", f"""
import subprocess
files = [open(f'{NODE}/ports/1/' + name, buffering=mode) for name in ('hw_counters/rdma_sends',) for mode in (-1, 1)]
before = [int(file.read()) for file in files]
server = subprocess.Popen(['ibv_rc_pingpong', '-p', '{{port}}', '-n', '50'], stdout=subprocess.DEVNULL)
while subprocess.run(['ibv_rc_pingpong', '-p', '{{port}}', '-n', '50', '127.0.0.1'], stdout=subprocess.DEVNULL).returncode: pass
server.wait()
for file in files: file.seek(0)
print('sends', [int(file.read()) - was for file, was in zip(files, before)])"""],
         expect=[r"^sends \[100, 100\]$"]),
    Case("shaped.two_devices", "alone", ["ibv_devices"], options=["--devices", "2", "--name", "mlx5_0"],
         expect=[r"^\s*mlx5_0\s+[0-9a-f]{16}$", r"^\s*mlx5_1\s+[0-9a-f]{16}$"]),
    Case("shaped.gid", "alone", ["ibv_devinfo", "-v"], options=["--gid", "10.9.8.7", "--gid", "fd00::9"],
         expect=[r"GID\[\s*0\]:\s+::ffff:10\.9\.8\.7, RoCE v2", r"GID\[\s*1\]:\s+fd00::9, RoCE v2"]),
    Case("shaped.pingpong_on_the_second", "pair", ["ibv_rc_pingpong", "-p", "{port}", "-d", "b1", "-g", "0"],
         ["ibv_rc_pingpong", "-p", "{port}", "-d", "b1", "-g", "0", "{host}"], options=["--devices=2", "--name=b0"],
         expect=[r"iters in [\d.]+ seconds"]),
]

# ---- Debian's python3-pyverbs; rdma-core's own test suite for it is pyverbs_suite.py

PYVERBS = [Case("pyverbs.own", "alone", ["/usr/bin/python3", "{here}/pyverbs_own.py"], expect=[r"^Ran 3 tests", r"^OK$"])]

PINGPONGS = [
    pingpong("rc", "default"),
    pingpong("rc", "gid", "-g", "0"),
    pingpong("rc", "events", "-e"),
    pingpong("rc", "checked", "-c"),
    pingpong("rc", "new_send", "-N"),
    pingpong("rc", "events_checked_new_send", "-e", "-c", "-N"),
    pingpong("rc", "size_1", "-s", "1"),
    pingpong("rc", "size_4096_checked", "-s", "4096", "-c"),
    pingpong("rc", "size_1M_checked", "-s", "1048576", "-c", "-n", "200"),
    pingpong("rc", "iterations_10000", "-n", "10000"),
    pingpong("rc", "iterations_100000", "-n", "100000", limit_s=300, label="slow"),
    pingpong("rc", "events_iterations_100000", "-n", "100000", "-e", limit_s=600, label="slow"),
    pingpong("ud", "default", options=WIDE),
    pingpong("ud", "gid", "-g", "0", options=WIDE),
    pingpong("ud", "events_checked", "-e", "-c", options=WIDE),
    pingpong("uc", "default"),
    pingpong("uc", "events_checked", "-e", "-c"),
    pingpong("srq", "default"),
    pingpong("srq", "gid", "-g", "0"),
    pingpong("srq", "events_checked", "-e", "-c"),
    pingpong("srq", "one_queue_pair", "-q", "1"),
    xsrq("default"),
    xsrq("gid", "-g", "0"),
    xsrq("events", "-e"),
]

# ---- librdmacm's examples: no TCP at all


def rping(name, *options, count, expect=(), **more):
    return Case(f"rping.{name}", "pair", ["rping", "-s", "-V", "-a", "{host}", "-p", "{port}", "-C", str(count), *options],
                ["rping", "-c", "-V", "-a", "{host}", "-p", "{port}", "-C", str(count), *options],
                ready="rdma", expect=list(expect), **more)


def both(name, server, client, **more):
    """A program whose two ends take the same port option."""
    return Case(name, "pair", [*server, "-p", "{port}"], [*client, "-p", "{port}"], ready="rdma", **more)


def ends_connected(how, *around):
    """The client ends with its connection open; the server hears of it."""
    program = "{programs}/ends_connected"
    return Case(f"ends_connected.{how}", "pair", [program, "server", "{host}", "{port}"],
                [*around, program, "client", how, "{port}", "{host}"], ready="rdma", expect_server=[r"^RDMA_CM_EVENT_DISCONNECTED"],
                needs=[program], killed="client" if how == "killed" else "")


KILLED_AS_ASKED = ["sh", "-c", '"$@"; [ $? = 137 ]', "sh"]

CONNECTION_MANAGEMENT = [
    rping("displayed", "-v", count=100, expect=[r"ping data: rdma-ping-99: "]),
    rping("validated_10000", count=10000, limit_s=120),
    rping("displayed_10000", "-v", count=10000, expect=[r"ping data: rdma-ping-9999: "], limit_s=120),
    rping("size_60000", "-S", "60000", count=100),
    Case("rping.persistent", "persistent_server", ["rping", "-s", "-P", "-a", "{host}", "-p", "{port}"],
         ["rping", "-c", "-v", "-V", "-a", "{host}", "-p", "{port}", "-C", "50"], ready="rdma",
         expect=[r"ping data: rdma-ping-49: "]),
    both("rping.ipv6", ["rping", "-s", "-V", "-a", "::1", "-C", "10"], ["rping", "-c", "-V", "-v", "-a", "::1", "-C", "10"],
         expect=[r"ping data: rdma-ping-9: "]),
    both("rdma_server", ["rdma_server"], ["rdma_client", "-s", "{host}"], expect=[r"rdma_client: end 0"],
         expect_server=[r"rdma_server: end 0"]),
    both("rdma_xserver", ["rdma_xserver", "-c", "r"], ["rdma_xclient", "-c", "r", "-s", "{host}"]),
    both("rdma_xserver.xrc", ["rdma_xserver", "-c", "x"], ["rdma_xclient", "-c", "x", "-s", "{host}"],
         expect=[r"rdma_xclient: end 0"], expect_server=[r"rdma_xserver: end 0"]),
    Case("udaddy", "pair", ["udaddy"], ["udaddy", "-s", "{host}"], ready="rdma:7174", expect=[r"return status 0"]),
    Case("udaddy.many", "pair", ["udaddy", "-c", "20"], ["udaddy", "-c", "20", "-s", "{host}"], ready="rdma:7174",
         expect=[r"return status 0"]),
    Case("mckey", "pair", ["mckey", "-m", "239.1.1.1", "-b", "{own}", "-c", "1", "-C", "10"],
         ["mckey", "-m", "239.1.1.1", "-s", "-b", "{own}", "-c", "1", "-C", "10"], ready="prints:joined dgid",
         expect=[r"return status 0"], expect_server=[r"joined dgid: (::ffff:239\.1\.1\.1|ff15::77:1)", r"return status 0"]),
    Case("udaddy.options", "pair", ["udaddy", "-c", "5", "-C", "20", "-S", "500", "-t", "8"],
         ["udaddy", "-c", "5", "-C", "20", "-S", "500", "-t", "8", "-s", "{host}"], ready="rdma:7174",
         expect=[r"return status 0"]),
    both("ucmatose.options", ["ucmatose", "-c", "5", "-C", "20", "-S", "1000", "-t", "8"],
         ["ucmatose", "-c", "5", "-C", "20", "-S", "1000", "-t", "8", "-s", "{host}"], expect=[r"return status 0"]),
    both("ucmatose.migrated", ["ucmatose", "-m"], ["ucmatose", "-m", "-s", "{host}"], expect=[r"return status 0"]),
    both("ucmatose.ack_timeout", ["ucmatose", "-a", "10"], ["ucmatose", "-a", "10", "-s", "{host}"],
         expect=[r"return status 0"]),
    rping("own_queue_pair", "-q", "-v", count=20, expect=[r"ping data: rdma-ping-19: "]),
    Case("cmtime", "served", ["cmtime", "-b", "{host}", "-p", "{port}", "-c", "50"],
         ["cmtime", "-s", "{host}", "-p", "{port}", "-c", "50"], ready="rdma", expect=[r"^connect\s+:", r"^destroy\s+:"]),
    *(Case(f"cm_transport.{kind}", "pair", ["{programs}/cm_transport", kind, "server", "{host}", "{port}"],
           ["{programs}/cm_transport", kind, "client", "{host}", "{port}"], ready="rdma", expect=[rf"^{kind}: 100 of 100 came back"],
           needs=["{programs}/cm_transport"]) for kind in ("uc", "rc")),
    ends_connected("returns"),
    ends_connected("killed", *KILLED_AS_ASKED),
    both("ucmatose", ["ucmatose"], ["ucmatose", "-s", "{host}"], expect=[r"return status 0"]),
    both("ucmatose.many", ["ucmatose", "-c", "50"], ["ucmatose", "-c", "50", "-s", "{host}"], expect=[r"return status 0"]),
]

# ---- rsockets. udpong's echo test never ends once a reply took over 1 ms (it then repeats an old message), so only
# its one-way test is run.


def rsocket(program, name, *options, expect=(r"^custom\s",), **more):
    command = [program, "-p", "{port}", *options]
    return Case(f"{program}.{name}", "pair", command, [*command, "-s", "{host}"], ready="rsocket", expect=list(expect),
                expect_server=list(expect), **more)


RSOCKETS = [
    rsocket("rstream", "size_64", "-S", "64", "-C", "1", "-I", "1000"),
    rsocket("rstream", "size_1M", "-S", "1048576", "-C", "10", "-I", "1"),
    rsocket("rstream", "verified", "-S", "65536", "-C", "20", "-T", "v"),
    rsocket("rstream", "blocking", "-S", "4096", "-C", "100", "-T", "b"),
    rsocket("rstream", "nonblocking", "-S", "4096", "-C", "100", "-T", "n"),
    rsocket("rstream", "polled", "-S", "4096", "-C", "100", "-T", "a"),
    rsocket("rstream", "resolved", "-S", "4096", "-C", "100", "-T", "r"),
    rsocket("rstream", "inline", "-S", "64", "-C", "100", "-i", "0"),
    rsocket("rstream", "small_buffers", "-S", "100000", "-C", "20", "-B", "8192", "-T", "v"),
    rsocket("rstream", "keep_alive", "-S", "64", "-C", "10", "-k", "30", expect=[r"^custom\s", r"Keepalive: ON"]),
    rsocket("rstream", "all_sizes", expect=[r"^1m_bw\s"], limit_s=300, label="slow"),
    rsocket("riostream", "size_4096", "-S", "4096", "-C", "100"),
    rsocket("riostream", "verified", "-S", "65536", "-C", "20", "-T", "v"),
    rsocket("riostream", "polled", "-S", "64", "-C", "100", "-T", "a"),
    rsocket("riostream", "all_sizes", expect=[r"^1m_bw\s"], limit_s=300, label="slow"),
    Case("udpong", "served", ["udpong", "-b", "{host}", "-p", "{port}"],
         ["udpong", "-s", "{host}", "-p", "{port}", "-S", "1000", "-C", "1000"], ready="udp", expect=[r"^custom\s+1000\s"]),
    Case("rcopy", "served", ["rcopy", "-p", "{port}"], ["rcopy", "{file}", "{host}:{copy}", "-p", "{port}"], ready="rdma",
         expect=[r"3000000 bytes in"], copies=3_000_000),
]

# Programs with plain sockets on rsockets: through Debian's own preload library (which has no epoll and no
# accept4), and through Weir's.
PRELOADED = ["env", f"LD_PRELOAD=/usr/lib/{platform.machine()}-linux-gnu/rsocket/librspreload.so"]


def on_rsockets(name, server, client, **more):
    return Case(f"rspreload.{name}", "served", server, client, ready="rsocket", options=["--rsockets"], **more)


RSOCKETS += [
    Case("rspreload.iperf", "served", [*PRELOADED, "iperf", "-s", "-p", "{port}"],
         [*PRELOADED, "iperf", "-c", "{host}", "-p", "{port}", "-n", "1M"], ready="rsocket", expect=[r"1\.00 MBytes"]),
    on_rsockets("redis_benchmark", REDIS_SERVER, REDIS_BENCHMARK, expect=BENCHMARKED),
    on_rsockets("redis_benchmark_pipelined", REDIS_SERVER, [*REDIS_BENCHMARK, "-P", "16", "-c", "200"], expect=BENCHMARKED),
    on_rsockets("redis_benchmark_large_values", REDIS_SERVER, [*REDIS_BENCHMARK, "-d", "300000", "-t", "set,get", "-n", "500"],
                expect=BENCHMARKED[:2]),
    on_rsockets("redis_cli", REDIS_SERVER, ["redis-cli", "-h", "{host}", "-p", "{port}", "incrby", "key", "42"], expect=[r"42$"]),
    on_rsockets("iperf_four_streams", ["iperf", "-s", "-p", "{port}"], ["iperf", "-c", "{host}", "-p", "{port}", "-n", "100M", "-P", "4"],
                expect=[r"SUM.* 400 MBytes"]),
    on_rsockets("asyncio", ["python3", "{here}/programs/asyncio_echo.py", "serve", "{host}", "{port}"],
                ["python3", "{here}/programs/asyncio_echo.py", "call", "{host}", "{port}"], expect=[r"^all 50 echoed$"]),
]


RSOCKETS += SOCKETS

# The same between two hosts that name each other; and if one end does not, or names other networks.
TALK = ["python3", "{here}/programs/sockets_talk.py"]
ENDS_OPEN = [["python3", "{here}/programs/ends_open.py", end, "{host}", "{port}"] for end in ("serve", "tell")]
ENDED = {"expect_server": [r"^3000000 bytes, then the end$"]}
ASKED = ["--sockets", "--sockets-peers", "10.0.0.0/8,fd00::/8"]


def knowing(secret):
    """With that secret in a file, which is removed with the program."""
    return ["sh", "-c", 'file=$(mktemp) && echo "$0, and sixteen bytes" > $file && exec 3< $file && rm $file && '
            'WEIR_SOCKETS_SECRET=/proc/self/fd/3 exec "$@"', secret]


def on_far_sockets(name, how, server, client, kind="ipv4", options=ASKED, **more):
    return Case(f"between_hosts.sockets.{name}", how, server, client, options=options, between_hosts=kind, in_shm=True, **more)


def talk(name, moved, connections=8, **more):
    words = ["{host}", "{port}", str(connections)]
    expect = [rf"^{connections} connections whole, {moved} moved$"]
    return on_far_sockets(f"talk{name}", "pair", [*TALK, "serve", *words], [*TALK, "ask", *words], expect=expect, expect_server=expect,
                          **more)


RSOCKETS += [
    talk("", "some"),
    talk("_changing", "some", connections=16, around=CHANGING),
    talk("_ipv6", "some", kind="ipv6"),
    talk("_on_a_wire_that_drops", "some", connections=4, around=["sh", "{here}/programs/dropping_wire.sh"]),
    talk("_not_named", "few", connections=4, options=["--sockets", "--sockets-peers", "10.78.0.0/16"]),
    talk("_with_a_secret", "some", around=knowing("ours")),
    talk("_with_another_secret", "few", connections=4, around=knowing("ours"), around_server=knowing("theirs")),
    talk("_with_one_secret", "few", connections=4, around=knowing("ours"), around_server=[]),
    # A program on the client's host that knows everything about the connection except the secret.
    on_far_sockets("forged", "served", [*REDIS_SERVER, "--protected-mode", "no"],
                   ["sh", "-c", 'WEIR_SOCKETS=off exec {programs}/sockets_forger {host} {port} /proc/self/fd/3'], around=knowing("ours"),
                   expect=["^refused without the secret$", "^refused with another connection's proof$", "^an echo ends the link$",
                           "^TCP is whole$"], needs=["{programs}/sockets_forger"]),
    talk("_with_one_end_off", "few", connections=4, around_server=["env", "WEIR_SOCKETS=off"]),
    on_far_sockets("lost_path", "pair", *[["python3", "{here}/programs/lost_path.py", end, "{host}", "{port}"] for end in ("serve", "ask")],
                   expect=["^some by RDMA$", "^answered within 3 s$"], expect_server=["^the end$"]),
    on_far_sockets("ends_open", "pair", *ENDS_OPEN, **ENDED),
    Case("between_hosts.rspreload.ends_open", "pair", *ENDS_OPEN, ready="rsocket", options=["--rsockets"], between_hosts="ipv4",
         in_shm=True, **ENDED),
    # Its last bytes come later than what ends the connection.
    Case("between_hosts.rspreload.ends_open_late", "pair", *ENDS_OPEN, ready="rsocket",
         options=["--rsockets", "--fault", "delay 5ms qp=1 direction=out"], between_hosts="ipv4", in_shm=True, **ENDED),
    on_far_sockets("redis_benchmark", "served", [*REDIS_SERVER, "--protected-mode", "no"], REDIS_BENCHMARK, expect=BENCHMARKED),
    on_far_sockets("redis_benchmark_changing", "served", [*REDIS_SERVER, "--protected-mode", "no"],
                   [*REDIS_BENCHMARK[:-1], "3000"], expect=BENCHMARKED, around=CHANGING),
]

# ---- one end killed in the middle: the other must notice, and nothing may stay behind

def killed(program, who, *options):
    port = ["-p", "{port}"]
    command = [program, *port, *options]
    return Case(f"killed.{program}.{who}", "killed", command, [*command, "{host}"], killed=who)


KILLED = [killed(program, who, *options)
          for program, options in [("ib_write_bw", ["-F", "-D", "300"]), ("ib_send_bw", ["-F", "-D", "300"]),
                                   ("ib_read_bw", ["-F", "-D", "300"]), ("ibv_rc_pingpong", ["-n", "100000000"]),
                                   ("ibv_rc_pingpong", ["-n", "100000000", "-e"])]
          for who in ("client", "server")]
for case in KILLED:
    if "-e" in case.server:
        case.name += ".events"

# ---- qperf: its server forks a process for each test

def qperf(name, *words, expect):
    port = ["-lp", "{port}"]
    return Case(f"qperf.{name}", "served", ["qperf", *port], ["qperf", "{host}", *port, "-t", "1", *words], expect=expect)


QPERF = [
    qperf("reliable", "rc_lat", "rc_bi_bw", "rc_rdma_read_bw", "rc_rdma_write_poll_lat", "ver_rc_fetch_add",
          expect=[r"^rc_bi_bw:\n +bw +=", r"^rc_rdma_write_poll_lat:\n +latency +=", r"^ver_rc_fetch_add:\n +msg_rate +="]),
    qperf("unreliable", "uc_lat", "uc_bi_bw", "ud_lat", "ud_bi_bw",
          expect=[r"^uc_bi_bw:\n.*\n +recv_bw += +[\d.]+ [MG]B", r"^ud_bi_bw:\n.*\n +recv_bw += +[\d.]+ [KMG]B"]),
    qperf("polled_on_rdma_cm", "-cm1", "-cp1", "rc_lat", "rc_bi_bw", expect=[r"^rc_bi_bw:\n +bw +="]),
]

PINGPONGS.append(pingpong("rc", "checked_shareable_memory", "-c", "-s", "100000", options=["--share-memory"]))

CASES = [*DEVICES, *VIEW, *PYVERBS, *FRAMEWORKS, *PINGPONGS, *CONNECTION_MANAGEMENT, *RSOCKETS, *PERFTESTS, *QPERF, *KILLED]
CASES += [*unfriendly(CASES), *between_hosts(CASES), *carriers(CASES), *two_users(CASES), *weak(CASES), *checked(CASES)]
SHORT = [case for case in CASES if case.label != "slow"]
CASES = with_the_rest_slow(CASES)
