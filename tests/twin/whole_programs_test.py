#!/usr/bin/env python3
"""Whole programs in virtual time: threads, epoll, fork, signals, timers; servers and their clients; seeds, faults, captures.

  whole_programs_test.py WEIR    exit status 77: this machine permits no user namespaces, or has no perftest
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import own_programs_test
from virtual_time_test import SKIPPED, WEIR, pair, run, scenario

BIN = os.path.dirname(WEIR)
SCENARIOS = os.path.join(os.path.dirname(__file__), "../../twin/scenarios")
SCENARIO = os.path.join(os.path.dirname(__file__), "../../twin/scenarios/eight-to-one.toml")


def commands(*programs, gbps=100, more="", mtu=4096):
    """A scenario of two hosts, with programs as (host, list of words, options)."""
    text = scenario(gbps, 1, [], mtu) + more
    for host, words, *options in programs:
        text += f'[[program]]\nhost = "{host}"\ncommand = {json.dumps(words)}\n' + "".join(f"{line}\n" for line in options)
    return text


def python(code):
    return [sys.executable, "-c", code]


def alike(text):
    out = run(text, "--verify")
    assert "verified: two runs are alike" in out and "deterministic: nothing escaped control" in out, out
    return out


# Each way in which a child ends, and each in which its parent hears of it.
ENDS = """
import ctypes, os, resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
libc = ctypes.CDLL(None)
exit_group, kill = 231, 62
def sleep():
    while True: time.sleep(1)
def fail():
    try: os.execv("/no/such/program", ["program"])
    except OSError: os._exit(6)
def at(child, signal): time.sleep(1.5); os.kill(child, signal)
ways = {
    "exit": (lambda: sys.exit(3), None),
    "_exit": (lambda: os._exit(4), None),
    "exit_group": (lambda: libc.syscall(exit_group, 5), None),
    "exec": (lambda: os.execv("/bin/true", ["true"]), None),
    "exec fails": (fail, None),
    "abort": (os.abort, None),
    "segfault": (lambda: ctypes.string_at(0), None),
    "raises": (lambda: os.kill(os.getpid(), signal.SIGTERM), None),
    "alarm": (lambda: (signal.alarm(1), sleep()), None),
    "SIGTERM": (sleep, lambda child: at(child, signal.SIGTERM)),
    "SIGKILL": (sleep, lambda child: at(child, signal.SIGKILL)),
    "SIGUSR1": (sleep, lambda child: at(child, signal.SIGUSR1)),
    "killed unseen": (lambda: os.read(os.pipe()[0], 1), lambda child: (time.sleep(1), libc.syscall(kill, child, 9))),
}
def waitpid(child): return os.waitpid(child, 0)[1]
def waitid(child):
    seen = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert seen.si_pid == child
    return os.waitpid(child, os.WNOHANG)[1]
def look(child):
    while (seen := os.waitpid(child, os.WNOHANG))[0] == 0: time.sleep(.25)
    return seen[1]
def sigchld(child):
    while True:
        signal.sigwait([signal.SIGCHLD])
        if (seen := os.waitpid(child, os.WNOHANG))[0]: return seen[1]
for name, (end, help) in ways.items():
    seen = []
    for wait in waitpid, waitid, sigchld, look:
        if wait == look and name == "killed unseen": break  # it dies in real time
        child = os.fork()
        if child == 0: end()
        if help: help(child)
        seen.append(os.waitstatus_to_exitcode(wait(child)))
    print(f"{name}: {seen}", flush=True)
print("at", time.time(), flush=True)
"""


# A timer with a signal, one that starts a thread, and one that is stopped.
TIMERS = """
import ctypes, signal, time
libc = ctypes.CDLL(None)
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("function", FUNCTION), ("rest", ctypes.c_byte * 40)]
def tenths(): return round(time.time() % 60 * 10)
def timer(event, first, interval):
    made, spec = ctypes.c_void_p(), (ctypes.c_long * 4)(0, interval, 0, first)
    assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(made)) == 0
    assert libc.timer_settime(made, 0, spec, None) == 0
    return made
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
ticking = timer(Event(7, signal.SIGUSR1, 0), 300000000, 500000000)
ticks = []
while len(ticks) < 3: signal.sigwaitinfo([signal.SIGUSR1]); ticks.append(tenths())
print(f"signals {ticks}, overrun {libc.timer_getoverrun(ticking)}", flush=True)
assert libc.timer_delete(ticking) == 0
said = FUNCTION(lambda value: print(f"thread {value} at {tenths()}", flush=True))
timer(Event(42, 0, 2, said), 200000000, 0)
time.sleep(1)
stopped = timer(Event(1, signal.SIGUSR1, 0), 100000000, 0)
assert libc.timer_settime(stopped, 0, (ctypes.c_long * 4)(), None) == 0
print("stopped", signal.sigtimedwait([signal.SIGUSR1], 1))
"""

# What a stream writes by itself, with no flush.
STREAMS = """
import ctypes, os, time
libc = ctypes.CDLL(None); libc.fdopen.restype = ctypes.c_void_p
r, w = os.pipe()
if os.fork() == 0:
    os.close(w)
    while some := os.read(r, 100): print(some, "at", round(time.time() % 60), flush=True)
    os._exit(0)
stream = ctypes.c_void_p(libc.fdopen(w, b"w"))
libc.setvbuf(stream, None, 1, 1000)
time.sleep(2); libc.fputs(b"line\\n", stream)
time.sleep(2); libc.setvbuf(stream, None, 2, 0); libc.fwrite(b"unbuffered", 10, 1, stream)
time.sleep(2); libc.fprintf(stream, b"formatted %d", 3)
time.sleep(3)
"""


class OneHost(unittest.TestCase):
    """What a program sees of itself. Each runs twice."""

    def of(self, code):
        return alike(commands(("h1", python(code))))

    def test_children_are_waited_for(self):
        out = self.of("import os, time\n"
                      "for i in range(3):\n"
                      "  if os.fork() == 0: time.sleep(3 - i); os._exit(i)\n"
                      "print([os.waitstatus_to_exitcode(os.wait()[1]) for i in range(3)], round(time.monotonic()) % 1000)")
        self.assertIn("[2, 1, 0] 3", out)

    def test_a_signal_tells_of_a_childs_end(self):
        out = self.of("import os, signal, time\n"
                      "signal.signal(signal.SIGCHLD, lambda *a: print('ended at', round(time.time() % 60), flush=True))\n"
                      "if os.fork() == 0: time.sleep(7); os._exit(0)\n"
                      "signal.pause()")
        self.assertIn("ended at 7", out)

    def test_signals_go_from_process_to_process(self):
        out = self.of("import os, signal, time\n"
                      "r, w = os.pipe()\n"
                      "if (child := os.fork()) == 0:\n"
                      "  signal.signal(signal.SIGUSR1, lambda *a: os.write(w, b'caught'))\n"
                      "  signal.pause(); os._exit(4)\n"
                      "time.sleep(2); os.kill(child, signal.SIGUSR1)\n"
                      "print(os.read(r, 10), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
        self.assertIn("b'caught' 4", out)

    def test_every_end_of_a_child_is_seen(self):
        out = self.of(ENDS)
        for way, status in {"exit": 3, "_exit": 4, "exit_group": 5, "exec": 0, "exec fails": 6, "abort": -6, "segfault": -11, "raises": -15,
                            "alarm": -14, "SIGTERM": -15, "SIGKILL": -9, "SIGUSR1": -10, "killed unseen": -9}.items():
            with self.subTest(way):
                self.assertEqual(re.findall(rf"^{way}: (.*)$", out, re.M), [str([status] * (3 if way == "killed unseen" else 4))])

    def test_timers_of_timer_create_fire(self):
        out = self.of(TIMERS)
        self.assertIn("signals [3, 8, 13], overrun 0\n", out)
        self.assertIn("thread 42 at 15\n", out)
        self.assertIn("stopped None\n", out)

    def test_c_streams_are_seen_when_they_write(self):
        out = self.of(STREAMS)
        self.assertEqual(re.findall(r"b'(\w+).*' at (\d)", out), [("line", "2"), ("unbuffered", "4"), ("formatted", "6")])

    def test_changed_epoll_sets_wake(self):
        out = self.of("import os, select, threading, time\n"
                      "r, w = os.pipe(); os.write(w, b'x'); e = select.epoll(); e.register(r, select.EPOLLIN | select.EPOLLET); e.poll(0)\n"
                      "threading.Timer(2, lambda: e.modify(r, select.EPOLLIN | select.EPOLLET)).start()\n"
                      "print(len(e.poll(9)), round(time.time() % 60))")
        self.assertIn("1 2", out)

    def test_replaced_descriptors_close_pipes(self):
        out = self.of("import os, threading, time\n"
                      "r, w = os.pipe(); null = os.open('/dev/null', os.O_WRONLY)\n"
                      "threading.Timer(2, lambda: os.dup2(null, w)).start()\n"
                      "print(os.read(r, 1), round(time.time() % 60))")
        self.assertIn("b'' 2", out)

    def test_unchosen_ports_follow_from_the_seed(self):
        out = self.of("import socket\n"
                      "server = socket.create_server(('127.0.0.1', 0)); client = socket.create_connection(server.getsockname())\n"
                      "print(server.getsockname()[1], client.getsockname()[1])")
        self.assertRegex(out, r"\n\d+ \d+\n")

    def test_timers_interrupt(self):
        out = self.of("import signal, time\n"
                      "ticks = []\n"
                      "signal.signal(signal.SIGALRM, lambda *a: ticks.append(int(time.time() % 60 * 10)))\n"
                      "signal.setitimer(signal.ITIMER_REAL, .5, .25)\n"
                      "while len(ticks) < 4: signal.pause()\n"
                      "print(ticks)")
        self.assertIn("[5, 7, 10, 12]", out)

    def test_signals_are_waited_for(self):
        out = self.of("import signal, os, threading, time\n"
                      "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
                      "threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGUSR2)).start()\n"
                      "print(signal.sigwait([signal.SIGUSR2]).name, signal.sigtimedwait([signal.SIGUSR2], 2), round(time.time() % 60))")
        self.assertIn("SIGUSR2 None 5", out)

    def test_threads_take_turns(self):
        out = self.of("import threading, time, queue\n"
                      "barrier, done = threading.Barrier(4), queue.Queue()\n"
                      "def work(n):\n"
                      "  time.sleep(n); barrier.wait(); done.put(n)\n"
                      "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
                      "[t.start() for t in threads]; [t.join() for t in threads]\n"
                      "print([done.get() for t in threads], round(time.time() % 60))")
        self.assertRegex(out, r"\[\d, \d, \d, \d\] 3")

    def test_epoll_waits_for_pipes_and_time(self):
        out = self.of("import os, select, threading, time\n"
                      "r, w = os.pipe(); e = select.epoll(); e.register(r, select.EPOLLIN)\n"
                      "threading.Timer(2, lambda: os.write(w, b'x')).start()\n"
                      "print(e.poll(1), len(e.poll(5)), round(time.time() % 60))")
        self.assertIn("[] 1 2", out)

    def test_shells_run_pipelines(self):
        out = alike(commands(("h1", ["sh", "-c", "(sleep 5; seq 2000) | tail -n 1; sleep 2 & wait; date +%S"])))
        self.assertRegex(out, r"2000\n07\n")

    def test_c_streams_wait_for_pipes(self):
        out = alike(commands(("h1", ["sh", "-c", "(sleep 5; seq 20000) | sort -rn | sed -n 1p; seq 30000 | (sleep 2; tail -n 1); date +%S"])))
        self.assertRegex(out, r"20000\n30000\n07\n")

    def test_children_are_spawned(self):
        out = self.of("import ctypes, os, time\n"
                      "libc, line = ctypes.CDLL(None), ctypes.create_string_buffer(100)\n"
                      "libc.popen.restype = ctypes.c_void_p\n"
                      "stream = ctypes.c_void_p(libc.popen(b'sleep 3; echo said; sleep 1; exit 5', b'r'))\n"
                      "libc.fgets(line, 100, stream); print(line.value, round(time.time() % 60))\n"
                      "print(os.waitstatus_to_exitcode(libc.pclose(stream)), round(time.time() % 60))\n"
                      "child = os.posix_spawn('/bin/sh', ['sh', '-c', 'sleep 2; exit 7'], os.environ)\n"
                      "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), round(time.time() % 60))\n"
                      "try: os.posix_spawn('/no/such/program', ['program'], os.environ)\n"
                      "except FileNotFoundError: print('not there')")
        self.assertIn("b'said\\n' 3\n5 4\n7 6\nnot there\n", out)

    def test_more_goes_through_a_pipe_than_it_holds(self):
        out = self.of("import os\n"
                      "r, w = os.pipe()\n"
                      "if os.fork() == 0: os.close(r); print(os.write(w, bytes(300000)), flush=True); os._exit(0)\n"
                      "os.close(w); n = 0\n"
                      "while some := os.read(r, 65536): n += len(some)\n"
                      "print('read', n)")
        self.assertIn("300000", out)
        self.assertIn("read 300000", out)


class TwoHosts(unittest.TestCase):
    def test_perftest_programs_of_several_kinds_run(self):
        for program in ("ib_write_bw -n 200 -q 4", "ib_send_bw -n 200 -b", "ib_send_bw -n 100 -e -q 2"):
            with self.subTest(program):
                out = alike(commands(("h1", program.split()), ("h2", program.split() + ["h1"])))
                self.assertEqual(out.count("exit status 0"), 2, out)

    def test_rdma_core_programs_with_threads_run(self):
        for server, client in ((["ucmatose"], ["ucmatose", "-s", "10.77.0.1"]),
                               (["ibv_srq_pingpong", "-g", "0", "-n", "50"], ["ibv_srq_pingpong", "-g", "0", "-n", "50", "h1"]),
                               (["udaddy"], ["udaddy", "-s", "10.77.0.1"])):
            if shutil.which(server[0]) is None:
                continue
            with self.subTest(server[0]):
                out = alike(commands(("h1", server), ("h2", client)))
                self.assertEqual(out.count("exit status 0"), 2, out)

    def test_rpc_server_answers(self):
        if not os.path.exists(f"{BIN}/rpc_shop"):
            self.skipTest("no rpc_shop")
        for transport in "tcp", "rdma":
            with self.subTest(transport):
                serve = f"{BIN}/rpc_shop serve {transport}://0.0.0.0:7000 & sleep 2; kill -TERM $!; wait"
                out = alike(commands(("h1", ["sh", "-c", serve]), ("h2", [f"{BIN}/rpc_shop", "call", f"{transport}://h1:7000"], 'start = "100ms"')))
                self.assertIn("2 + 3 = 5\n", out)
                self.assertIn("failed: there are not 100 of nut\n", out)

    def serve(self, *ask):
        if not os.path.exists(f"{BIN}/weir-server"):
            self.skipTest("no weir-server")
        folder = tempfile.TemporaryDirectory(prefix="weir-twin-test-")
        self.addCleanup(folder.cleanup)
        server = [f"{BIN}/weir-server", "--port", "6379", "--rdma-port", "6379", "--bind", "0.0.0.0", "--dir", folder.name,
                  "--protected-mode", "no", "--save", ""]
        stop = [f"{BIN}/weir-cli", "-h", "h1", "shutdown", "nosave"]
        script = "; ".join(" ".join(words) for words in (*ask, stop))
        return commands(("h1", server), ("h2", ["sh", "-c", script], 'start = "500ms"'))

    def test_server_answers_over_rdma_and_tcp(self):
        cli = [f"{BIN}/weir-cli", "-h", "h1"]
        out = alike(self.serve(cli + ["set", "key", "value"], cli + ["--rdma", "get", "key"]))
        self.assertIn("OK\n", out)
        self.assertIn("value\n", out)

    def test_benchmark_measures_the_network(self):
        if not os.path.exists(f"{BIN}/weir-benchmark"):
            self.skipTest("no weir-benchmark")
        out = alike(self.serve([f"{BIN}/weir-benchmark", "-h", "h1", "--rdma", "-t", "get", "-n", "2000", "-c", "4",
                                "-q"]))
        self.assertIn("GET", out)


class Sockets(unittest.TestCase):
    """TCP programs under `weir run --sockets`, whose connections change to RDMA between hosts."""

    def setUp(self):
        if not os.path.exists(f"{BIN}/../lib/verbs/libweir_sockets.so"):
            self.skipTest("no library of sockets")
        self.under = [WEIR, "run", "--sockets", "--sockets-peers", "10.0.0.0/8", "--"]

    def test_connections_change_to_rdma(self):
        serve = "import socket; peer = socket.create_server(('', 7900)).accept()[0]\nwhile some := peer.recv(65536): peer.sendall(some)"
        ask = ("import socket; peer = socket.create_connection(('h1', 7900))\n"
               "for size in range(300, 9000, 100):\n"
               "  peer.sendall(bytes(size)); got = 0\n"
               "  while got < size: got += len(peer.recv(65536))\n"
               "print('all came back')")
        out = alike(commands(("h1", self.under + python(serve)), ("h2", self.under + python(ask))))
        self.assertIn("all came back", out)
        self.assertRegex(out, r" [1-9]\d{2,} packets delivered")

    def test_redis_answers_by_rdma(self):
        if shutil.which("redis-server") is None:
            self.skipTest("no Redis")
        serve = self.under + ["redis-server", "--save", "", "--protected-mode", "no", "--bind", "0.0.0.0", "--logfile", "/dev/null"]
        ask = self.under + ["sh", "-ec", "redis-cli -h h1 set key value; redis-benchmark -h h1 -t get -n 300 -c 4 -q >/dev/null; redis-cli -h h1 get key; "
                                         "redis-cli -h h1 shutdown nosave"]
        out = alike(commands(("h1", serve), ("h2", ask, 'start = "500ms"'), more='[[loss]]\nhost = "h2"\nrate = 0.01\n'))
        self.assertIn("OK\nvalue\n", out)
        self.assertRegex(out, r" [1-9]\d{2,} packets delivered")

    def test_threads_that_poll_in_turn_come_to_an_end(self):
        # Two threads poll one queue under one mutex, each woken because the other ran.
        with tempfile.TemporaryDirectory(prefix="weir-twin-test-") as folder:
            text = own_programs_test.Scenarios(BIN, folder).sockets()
        out = run(text.replace("exec ", "export WEIR_SOCKETS_SPIN=50; exec "))
        self.assertEqual(out.count("exit status 0"), 3, out)


class OthersPrograms(unittest.TestCase):
    def test_nccl_plugin_carries_what_ranks_send(self):
        plugin, peer = f"{BIN}/../lib/libnccl-net-weir.so", f"{BIN}/nccl_test_peer"
        if not os.path.exists(plugin) or not os.path.exists(peer):
            self.skipTest("no plugin")
        meet = {"h1": "socket.create_server(('', 7900)).accept()[0]", "h2": "socket.create_connection(('h1', 7900))"}
        for version, scenario, loss in (("12", "transfer", 0), ("12", "ring", 0.01), ("12", "threads", 0), ("8", "groups", 0)):
            with self.subTest(version=version, scenario=scenario, loss=loss):
                programs = []
                for host, words in ("h1", [peer, "--first"]), ("h2", [peer]):
                    code = f"import os, socket, sys; s = {meet[host]}; os.dup2(s.fileno(), 0); os.dup2(s.fileno(), 1); os.execv(sys.argv[1], sys.argv[1:])"
                    programs.append((host, python(code) + words + [plugin, version, scenario, "20261126"]))
                out = alike(commands(*programs, more=f'[[loss]]\nhost = "h2"\nrate = {loss}\n' if loss else ""))
                self.assertEqual(out.count("exit status 0"), 2, out)
                self.assertRegex(out, r" [1-9]\d{3,} packets delivered")

    def test_valkey_rdma_module_answers(self):
        server = os.environ.get("WEIR_VALKEY_SERVER", "")
        module = os.path.join(os.path.dirname(server), "valkey-rdma.so")
        if not os.path.exists(server) or not os.path.exists(module):
            self.skipTest("WEIR_VALKEY_SERVER names no valkey-server with its valkey-rdma.so")
        serve = [server, "--port", "6379", "--save", "", "--protected-mode", "no", "--logfile", "/dev/null", "--loadmodule", module,
                 "bind=10.77.0.1", "port=6379"]
        ask = ["sh", "-ec", f"{BIN}/weir-benchmark -h h1 --rdma -t set,get -n 500 -c 4 -q; {BIN}/weir-cli -h h1 shutdown nosave"]
        for loss in "", '[[loss]]\nhost = "h2"\nrate = 0.01\n':
            with self.subTest(loss):
                out = alike(commands(("h1", serve), ("h2", ask, 'start = "200ms"'), more=loss))
                self.assertIn("GET", out)
                self.assertEqual(out.count("exit status 0"), 2, out)

    def test_open_mpi_runs_on_several_hosts(self):
        program, shell = f"{BIN}/../tests/interop/mpi_exchange", f"{SCENARIOS}/remote_shell.py"
        if shutil.which("mpirun") is None or not os.path.exists(program):
            self.skipTest("no Open MPI, or no mpi_exchange")
        ucx = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-x", "UCX_TLS=rc_v,self"]
        tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        for ranks, carrier, packets in (2, ucx, r" [1-9]\d{3,} packets delivered"), (4, ucx, r" [1-9]\d{3,} packets delivered"), (4, tcp, " 0 packets delivered"):
            with self.subTest(ranks=ranks, carrier=carrier[-1]):
                hosts = [f"h{number}" for number in range(1, ranks + 1)]
                mpirun = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--host", ",".join(hosts), "--mca", "plm_rsh_agent", shell,
                          *carrier, program, "allreduce"]
                text = 'name = "mpi"\n[[switch]]\nname = "s1"\nmodel = "generic-32m"\n'
                for host in hosts:
                    text += f'[[host]]\nname = "{host}"\n[[link]]\nbetween = ["{host}", "s1"]\nspeed = "100G"\ncable = "3m"\n'
                for host in hosts[1:]:
                    text += f'[[program]]\nhost = "{host}"\nstart = "0ms"\ncommand = {json.dumps([shell, "listen"])}\n'
                out = alike(text + f'[[program]]\nhost = "h1"\nstart = "10ms"\ncommand = {json.dumps(mpirun)}\n')
                self.assertIn(f"allreduce: {ranks} ranks, right", out)
                self.assertRegex(out, packets)

    def test_an_all_reduce_shows_where_packets_wait(self):
        if shutil.which("mpirun") is None or shutil.which("mpicc") is None:
            self.skipTest("no Open MPI")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["mpicc", "-O2", "-o", f"{folder}/allreduce", f"{SCENARIOS}/allreduce.c"], check=True)
            with open(f"{SCENARIOS}/allreduce.toml") as file:
                text = file.read()
            text = text.replace('"./allreduce"', f'"{folder}/allreduce", "1", "2"').replace("twin/scenarios/remote_shell.py", f"{SCENARIOS}/remote_shell.py")
            if os.geteuid() == 0:
                text = text.replace('"mpirun",', '"mpirun", "--allow-run-as-root",')
            out = run(text, "--report", f"{folder}/page.html")
            with open(f"{folder}/page.html") as file:
                page = file.read()
        self.assertEqual(len(re.findall(r"^1 MiB over 4 ranks: \d+ us, [\d.]+ Gbit/s on each link$", out, re.M)), 2, out)
        packets = int(re.search(r"(\d+) packets delivered", out)[1])
        self.assertGreater(packets, 2 * 4 * 2 * 3 * 64)  # each rank sends 2 (ranks - 1) / ranks of a MiB, in 4 KiB and acknowledgements
        for shown in ("packets of programs that arrived", "What arrives at all hosts, headers included", "Egress queues, longest", "weir fabric run"):
            self.assertTrue(shown in page, shown)
        self.assertFalse("flows finished" in page)
        self.assertTrue(re.search(r"The fabric over time, from [1-9][\d.]* ms on", page))

    def test_redis_answers(self):
        if shutil.which("redis-server") is None:
            self.skipTest("no Redis")
        serve = ["redis-server", "--save", "", "--protected-mode", "no", "--bind", "0.0.0.0", "--logfile", "/dev/null"]
        ask = ["sh", "-c", "redis-cli -h h1 set key value; redis-benchmark -h h1 -t get -n 500 -c 4 -q >/dev/null; redis-cli -h h1 get key; "
                           "redis-cli -h h1 shutdown nosave"]
        self.assertIn("OK\nvalue\n", alike(commands(("h1", serve), ("h2", ask, 'start = "500ms"'))))


class Faults(unittest.TestCase):
    """What fails on purpose, at a time."""

    def test_a_link_that_is_down_for_a_while_delays_a_message(self):
        failure = '[[link_failure]]\nbetween = ["h2", "s1"]\nat = "3ms"\nback = "9ms"\n'
        out = alike(commands(("h1", ["ib_send_bw", "-n", "1000"]), ("h2", ["ib_send_bw", "-n", "1000", "h1"]), more=failure))
        self.assertRegex(out, r"3000\.000 us: link down: .*\n9000\.000 us: link up:")
        self.assertRegex(out, r"[1-9]\d* lost")
        self.assertEqual(out.count("exit status 0"), 2, out)

    def test_lost_packets_are_sent_again(self):
        loss = '[[loss]]\nhost = "h2"\nrate = 0.02\n'
        out = alike(commands(("h1", ["ib_send_bw", "-n", "300"]), ("h2", ["ib_send_bw", "-n", "300", "h1"]), more=loss))
        self.assertEqual(out.count("exit status 0"), 2, out)
        self.assertRegex(out, r"\n[1-9]\d* of the lost packets were lost on purpose")


class WhatDoesNotGoOn(unittest.TestCase):
    def test_a_deadlock_names_calls_and_descriptors(self):
        server = python("import os, socket; c = socket.create_server(('', 5000)).accept()[0]; c.recv(1)")
        client = python("import ctypes, os, socket; c = socket.create_connection(('h1', 5000)); os.fork() or c.recv(1)\n"
                        "libc = ctypes.CDLL(None); libc.fdopen.restype = ctypes.c_void_p\n"
                        "libc.fgetc(ctypes.c_void_p(libc.fdopen(os.pipe()[0], b'r')))")
        out = run(commands(("h1", server), ("h2", client)), status=4)
        for waits in (r"on h1, .* waits for descriptors in recv of descriptor \d+ \(TCP 10.77.0.1:5000 to 10.77.0.2:\d+\) since [\d.]+ us",
                      r"on h2, .* waits for descriptors in recv of descriptor \d+ \(TCP 10.77.0.2:\d+ to 10.77.0.1:5000\) since",
                      r"on h2, .* waits for the kernel in read of descriptor \d+ \(pipe:\[\d+\]\) since"):
            self.assertRegex(out, waits)

    def test_a_deadlock_shows_stacks_and_queue_pairs(self):
        lost = '[[loss]]\nhost = "h2"\nrate = 1\n'
        words = ["ibv_ud_pingpong", "-g", "0", "-e", "-n", "50"]
        out = run(commands(("h1", words), ("h2", words + ["h1"]), more=lost), status=4)
        for host, sends in ("h1", 0), ("h2", 1):
            self.assertRegex(out, rf"(?m)^  ibv_ud_pingpong on {host}, .*\n      ibv_get_cq_event \(completion\.cpp:\d+\)\n(      .*\n)*"
                                  rf"      queue pair 0x[0-9a-f]+: UD in RTS; requested {sends} SEND, .* 0 receives taken, 500 posted")

    def test_a_run_stops_for_a_debugger(self):
        text = commands(("h1", ["ib_write_lat", "-n", "20"]), ("h2", ["ib_write_lat", "-n", "20", "h1"]))
        out = run(text, "--stop-at", "234.2ms")
        self.assertRegex(out, r"^stopped at 234200\.000 us of virtual time")
        self.assertRegex(out, r"(?m)^  ib_write_lat on h1, process \d+, thread \d+: waits for memory to change in a loop of \d+ instructions since ")
        self.assertEqual(*[re.search("fingerprint (.*)", each)[1] for each in (out, run(text))])


class Seeds(unittest.TestCase):
    def try_seeds(self, text, *options):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([WEIR, "fabric", "test", *options, file.name], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def test_seeds_that_fail_are_named(self):
        code = "import os; os._exit(os.getrandom(1)[0] % 2)"
        status, out = self.try_seeds(commands(("h1", python(code))), "--seeds", "1..8")
        failed = re.findall(r"^seed (\d+): .* on h1: exit status 1\n  again: weir fabric run --seed \1 ", out, re.M)
        self.assertEqual(status, 4)
        self.assertTrue(0 < len(failed) < 8, out)
        self.assertIn(f"{8 - len(failed)} of 8 seeds passed", out)

    def test_all_seeds_may_pass(self):
        self.assertEqual(self.try_seeds(commands(("h1", ["true"])), "--seeds", "3"), (0, "1 of 1 seeds passed\n"))

    def test_seeds_are_a_range(self):
        self.assertIn("--seeds wants 1..1000, not 9..1", self.try_seeds(commands(("h1", ["true"])), "--seeds", "9..1")[1])


class Captures(unittest.TestCase):
    def test_packets_of_every_port_are_written(self):
        if shutil.which("tshark") is None:
            self.skipTest("no tshark")
        with tempfile.TemporaryDirectory() as folder:
            run(commands(("h1", ["ib_write_bw", "-n", "10"]), ("h2", ["ib_write_bw", "-n", "10", "h1"])), "--pcap", folder)
            self.assertEqual(len(os.listdir(folder)), 4, os.listdir(folder))
            for name in os.listdir(folder):
                shown = subprocess.run(["tshark", "-r", f"{folder}/{name}", "-T", "fields", "-e", "ip.src", "-e", "infiniband.bth.opcode",
                                        "-e", "_ws.malformed"], capture_output=True, text=True, check=True).stdout
                rows = [line.split("\t") for line in shown.splitlines()]
                self.assertTrue(rows, name)
                for source, opcode, malformed in rows:
                    self.assertIn(source, ("10.77.0.1", "10.77.0.2"))
                    self.assertTrue(opcode)
                    self.assertEqual(malformed, "")


class EightToOne(unittest.TestCase):
    """The NICs' ports follow DCQCN, as the hosts of weir sim do: 64 MiB from each of eight hosts."""
    senders, bytes_each = 8, 64 << 20

    def simulated_ms(self, text):
        """Of the same bytes as simulated flows: the median, and the last."""
        flows = text[:text.index("[[program]]")] + f'[[workload]]\nkind = "incast"\nreceiver = "h0"\nsenders = {self.senders}\nbytes = {self.bytes_each}\n'
        with tempfile.NamedTemporaryFile(suffix=".html") as page:
            run(flows + '[[program]]\nhost = "h0"\ncommand = "sleep 1"\n', "--report", page.name)
            report = page.read().decode()
        self.assertNotIn("ports.csv", report)  # which only weir sim writes
        return [float(re.search(rf"<b>([\d.]+) ms</b><span>completion time, {which}", report)[1]) for which in ("median", "99th percentile")]

    def test_it_takes_as_long_as_simulated_flows(self):
        with open(SCENARIO) as file:
            text = file.read()
        out = run(text)
        rates = [float(rate) for rate in re.findall(r"^ 1048576 +64 +[\d.]+ +([\d.]+)", out, re.M)]
        self.assertEqual(len(rates), 2 * self.senders, out)
        self.assertGreater(int(re.search(r"(\d+) marked", out)[1]), 1000)
        took_ms = sorted(self.bytes_each * 8 / (gbits * 1e6) for gbits in rates[self.senders:])
        median, last = self.simulated_ms(text)
        self.assertAlmostEqual(took_ms[-1] / last, 1, delta=0.02)
        self.assertAlmostEqual(took_ms[self.senders // 2] / median, 1, delta=0.02)


if __name__ == "__main__":
    if shutil.which("ib_send_lat") is None:
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
