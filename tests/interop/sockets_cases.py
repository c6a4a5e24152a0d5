"""Programs with plain TCP that change to RDMA and back: normally, and every few bytes (`weir run --sockets`). Programs without
a package that the tests may require are skipped if they are not installed."""
import os

from case import Case

REDIS_SERVER = ["redis-server", "--port", "{port}", "--bind", "{host}", "--save", ""]
REDIS_BENCHMARK = ["redis-benchmark", "-h", "{host}", "-p", "{port}", "-q", "-t", "set,get,lrange_600", "-n", "20000"]
BENCHMARKED = [r"SET: [\d.]+ requests per second", r"GET: [\d.]+ requests per second", r"LRANGE_600 .*: [\d.]+ requests"]
CHANGING = ["env", "WEIR_SOCKETS_CHANGE_EVERY=997", "WEIR_SOCKETS_AFTER=1"]
# Each reports at its end how many of its connections changed; also to a peer that sleeps.
REPORTING = ["env", "WEIR_SOCKETS=report", "WEIR_SOCKETS_SLEEPERS=ring"]


def on_sockets(name, server, client, **more):
    return Case(f"sockets.{name}", "served", server, client, options=["--sockets"], **more)


def changed(program):
    return rf"weir sockets: {program}\[\d+\]: \d+ connections?, [1-9]\d* changed to RDMA"


def script(name, *words):
    return ["sh", f"{{here}}/programs/{name}.sh", *words]


# ---- servers behind proxies: programs/served_files.sh serves files from {scratch}, by that program or
# through it


def files(name, *, needs, through=(), **more):
    """curl fetches whole files and compares them, 60 times on one persistent connection."""
    return on_sockets(name, script("served_files", name, "{scratch}", "{host}", "{port}"),
                      script("compared_files", "{scratch}", "{host}", "{port}"), expect=[r"^60 files the same$", *map(changed, through)],
                      around=REPORTING, needs=["/usr/bin/curl", *needs], **more)


FREE_PORT = """python3 -c 'import socket; one = socket.socket(); one.bind(("127.0.0.1", 0)); print(one.getsockname()[1])'"""
NOT_ROOT = "nobody" if os.geteuid() == 0 else ""  # these programs switch to another user
NGINX, HAPROXY, VARNISH, APACHE = "/usr/sbin/nginx", "/usr/sbin/haproxy", "/usr/sbin/varnishd", "/usr/sbin/apache2"
POSTGRES = "/usr/lib/postgresql/15/bin"
ACTIVATE, ACTIVATED = "/usr/bin/systemd-socket-activate", ["python3", "{here}/programs/socket_activated.py"]
KEEPING = [f"--setenv={name}" for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "WEIR_RUNTIME_DIR", "WEIR_SOCKETS_SLEEPERS")]  # of the environment
TORCH = ["/usr/bin/python3", "{here}/programs/torch_distributed.py"]
JAVA = ["java", "-Xshare:auto", "{here}/programs/NioEcho.java"]

SOCKETS = [
    on_sockets("redis_benchmark", REDIS_SERVER, REDIS_BENCHMARK, expect=BENCHMARKED),
    on_sockets("redis_benchmark_changing", REDIS_SERVER, REDIS_BENCHMARK, expect=BENCHMARKED, around=CHANGING),
    on_sockets("redis_benchmark_pipelined", REDIS_SERVER, [*REDIS_BENCHMARK, "-P", "16", "-c", "200"], expect=BENCHMARKED),
    on_sockets("redis_benchmark_large_values", REDIS_SERVER, [*REDIS_BENCHMARK, "-d", "300000", "-t", "set,get", "-n", "500"],
               expect=BENCHMARKED[:2]),
    on_sockets("redis_cli", REDIS_SERVER, ["redis-cli", "-h", "{host}", "-p", "{port}", "incrby", "key", "42"], expect=[r"42$"]),
    on_sockets("iperf_four_streams", ["iperf", "-s", "-p", "{port}"], ["iperf", "-c", "{host}", "-p", "{port}", "-n", "100M", "-P", "4"],
               expect=[r"SUM.* 400 MBytes"]),
    on_sockets("asyncio", ["python3", "{here}/programs/asyncio_echo.py", "serve", "{host}", "{port}"],
               ["python3", "{here}/programs/asyncio_echo.py", "call", "{host}", "{port}"], expect=[r"^all 50 echoed$"]),
    on_sockets("iperf3", ["iperf3", "-s", "-p", "{port}", "-B", "{host}"],
               ["iperf3", "-c", "{host}", "-p", "{port}", "-n", "30M", "-P", "2"], expect=[r"SUM.* receiver$"],
               needs=["/usr/bin/iperf3"]),
    on_sockets("nuttcp", ["nuttcp", "-S", "--nofork", "-P", "{port}"], ["sh", "-c", f"exec nuttcp -P {{port}} -p $({FREE_PORT}) -n 30m {{host}}"],
               expect=[r"30\.0000 MB /"], needs=["/usr/bin/nuttcp"]),
    on_sockets("sockperf", ["sockperf", "server", "--tcp", "-i", "{host}", "-p", "{port}"],
               ["sockperf", "ping-pong", "--tcp", "-i", "{host}", "-p", "{port}", "-t", "1"],
               expect=[r"dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0"], needs=["/usr/bin/sockperf"]),
    on_sockets("memcached", ["memcached", "-u", "root", "-l", "{host}", "-p", "{port}", "-t", "4"],
               ["memcslap", "--servers={host}:{port}", "--concurrency=4", "--execute-number=500", "--test=get"],
               expect=[r"^Time total"], needs=["/usr/bin/memcached", "/usr/bin/memcslap"]),
    on_sockets("socat", ["socat", "TCP-LISTEN:{port},bind={host},fork,reuseaddr", "EXEC:cat"],
               ["sh", "-c", "socat -t5 - TCP:{host}:{port} < {here}/cases.py | cmp - {here}/cases.py && echo the same"],
               expect=[r"^the same$"], needs=["/usr/bin/socat"]),
    # systemd hands over a listening socket, or the connection itself: the first may change, the second stays on TCP.
    on_sockets("listens_for_systemd", [ACTIVATE, *KEEPING, "-l", "{host}:{port}", *ACTIVATED, "serve"], [*ACTIVATED, "call", "{host}", "{port}"],
               expect=[r"^400 of 400 answers right$", changed("python3")], around=REPORTING, needs=[ACTIVATE]),
    on_sockets("accepted_by_systemd", [ACTIVATE, *KEEPING, "--accept", "--inetd", "-l", "{host}:{port}", "/bin/cat"],
               [*ACTIVATED, "call", "{host}", "{port}", "same"], expect=[r"^400 of 400 answers right$"], needs=[ACTIVATE]),
    Case("sockets.stress_ng", "alone", script("stress_ng"), options=["--sockets"], expect=[r"^all stressors ended well$"],
         around=CHANGING, needs=["/usr/bin/stress-ng"]),
    on_sockets("torch_distributed", [*TORCH, "0", "{host}", "{port}"], [*TORCH, "1", "{host}", "{port}"],
               expect=[r"^60 rounds right$", changed("python3")], around=REPORTING,
               needs=["/usr/lib/python3/dist-packages/torch/__init__.py"]),
    on_sockets("node", ["node", "{here}/programs/echo.js", "serve", "{host}", "{port}"],
               ["node", "{here}/programs/echo.js", "call", "{host}", "{port}"], expect=[r"^all 100 echoed$"], needs=["/usr/bin/node"]),
    on_sockets("node_changing", ["node", "{here}/programs/echo.js", "serve", "{host}", "{port}"],
               ["node", "{here}/programs/echo.js", "call", "{host}", "{port}"], expect=[r"^all 100 echoed$"], needs=["/usr/bin/node"],
               around=CHANGING),
    files("nginx", needs=[NGINX], through=["curl"]),
    files("apache2", needs=[APACHE], through=["curl"], user=NOT_ROOT),
    files("haproxy", needs=[NGINX, HAPROXY], through=["curl"]),
    files("varnish", needs=[NGINX, VARNISH, "/usr/bin/gcc"], through=["curl"]),
    # One process per connection: the child inherited it by fork, and is the only one that has it.
    on_sockets("postgresql", script("postgres", POSTGRES, "{scratch}", "{host}", "{port}"),
               script("postgres_client", "{host}", "{port}"),
               expect=[r"number of failed transactions: 0 ", r"^sum 100000$", changed("pgbench")], around=REPORTING,
               user=NOT_ROOT,
               needs=[f"{POSTGRES}/postgres", "/usr/bin/pgbench"]),
    on_sockets("java_nio", [*JAVA, "serve", "{host}", "{port}"], [*JAVA, "call", "{host}", "{port}"],
               expect=[r"^all 200 echoed$", changed("java")], around=REPORTING, needs=["/usr/bin/javac"]),
    on_sockets("java_nio_changing", [*JAVA, "serve", "{host}", "{port}"], [*JAVA, "call", "{host}", "{port}"],
               expect=[r"^all 200 echoed$"], around=CHANGING, needs=["/usr/bin/javac"]),
    # A peer that cannot be preloaded, because it makes its system calls itself.
    on_sockets("go_client", REDIS_SERVER, ["sh", "-c", "cd {scratch} && GOCACHE={scratch} GO111MODULE=off go run {here}/programs/redis_pings.go {host}:{port}"],
               expect=[r"^5000 answers right$"], needs=["/usr/bin/go"]),
    on_sockets("openssh", script("sshd", "{scratch}", "{host}", "{port}"), script("ssh_client", "{scratch}", "{host}", "{port}"),
               expect=[r"^300000 bytes the same$"], needs=["/usr/sbin/sshd", "/usr/bin/ssh"]),
]
