#!/usr/bin/env python3
"""Other people's programs, and ours, in the hosts that `weir fabric up` makes; and what is left when a part is killed.

  fabric_programs.py BIN [PROGRAMS [TEST...]]    BIN: a directory of programs, with ../lib beside it; PROGRAMS: those of
                                                 tests/interop; exit status 77: this machine permits no user namespaces
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.path.abspath(sys.argv[1])
PROGRAMS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
WEIR = f"{BIN}/weir"
SKIPPED = 77
SECONDS = 60
NOBODY = 65534
REFUSED = "permits no user namespaces"


def weir(*words, check=True, **how):
    done = subprocess.run([WEIR, *words], capture_output=True, text=True, timeout=SECONDS, **how)
    if check and done.returncode != 0:
        raise AssertionError(f"weir {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def namespaces():
    """The network namespaces of all processes."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            found.add(os.readlink(process / "ns/net"))
        except OSError:
            pass
    return found


class Fabric(unittest.TestCase):
    hosts = 2

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-fabric-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.name = f"test-{os.getpid()}"
        self.before = namespaces()
        os.environ["WEIR_RUNTIME_DIR"] = f"{self.folder}/runtime"  # other tests' networks are not seen
        self.up("--hosts", str(self.hosts))

    def up(self, *words):
        made = weir("fabric", "up", "--name", self.name, "--json", *words)
        self.addCleanup(weir, "fabric", "down", self.name, check=False)
        self.listed = json.loads(made.stdout)["fabrics"][0]

    def again(self, *words):
        weir("fabric", "down", self.name)
        self.up(*words)

    def run_in(self, host, *command, options=(), check=True):
        return weir("fabric", "run", "--fabric", self.name, "--host", host, *options, "--", *command, check=check, cwd=self.folder)

    def start_in(self, host, *command, options=()):
        process = subprocess.Popen([WEIR, "fabric", "run", "--fabric", self.name, "--host", host, *options, "--", *command],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def until(self, what, holds):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.02)
        self.fail(f"not within {SECONDS} s: {what}")

    def until_listens(self, host, port):
        self.until(f"{host} listens at {port}", lambda: f":{port:04X} " in self.run_in(host, "cat", "/proc/net/tcp", "/proc/net/tcp6").stdout)

    def running(self):
        shown = json.loads(weir("fabric", "ps", "--json", self.name).stdout)
        return [program["command"] for host in shown["fabrics"][0]["hosts"] for program in host["programs"]]

    def expect_nothing_left(self):
        self.until("no process is left in the hosts", lambda: namespaces() <= self.before)
        self.until("no file is left", lambda: list(pathlib.Path(self.folder).glob("runtime/fabrics/*")) == [])
        self.assertNotIn(self.name, pathlib.Path("/proc/self/mountinfo").read_text())
        self.assertNotIn(self.name, weir("fabric", "list").stdout)

    def keeper(self):
        """The two processes that keep the hosts: the one outside, and the first of the hosts'."""
        socket = f"/{self.name}/keeper"
        inode = [line.split()[6] for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if line.endswith(socket)][0]
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if any(os.readlink(fd) == f"socket:[{inode}]" for fd in (process / "fd").iterdir()):
                    outer = re.search(r"^PPid:\s+(\d+)$", (process / "status").read_text(), re.M)[1]
                    return int(outer), int(process.name)
            except OSError:
                pass
        self.fail("no process has the keeper's socket")

    # ---- programs

    def test_perftest_measures_between_hosts(self):
        for program in "ib_write_bw", "ib_send_lat", "ib_read_lat", "ib_atomic_bw":
            with self.subTest(program):
                server = self.start_in("h1", program, "-n", "500")
                self.until_listens("h1", 18515)
                self.assertRegex(self.run_in("h2", program, "-n", "500", "h1").stdout, r"(?m)^ *\d+ +500 ")
                self.assertEqual(server.wait(SECONDS), 0)

    def test_rping_goes_between_hosts(self):
        server = self.start_in("h1", "rping", "-s", "-C", "10")
        self.until("rping has pinged", lambda: self.run_in("h2", "rping", "-c", "-a", "h1", "-v", "-C", "10", check=False).stdout.count("ping data") == 10)
        self.end(server)

    def test_weir_trace_writes_the_packets_of_a_host(self):
        self.start_in("h1", "ibv_rc_pingpong", "-g", "0", "-n", "20")
        self.until_listens("h1", 18515)
        weir("trace", "--fabric", self.name, "--host", "h2", "--pcap", f"{self.folder}/h2.pcapng", "--", "ibv_rc_pingpong", "-g", "0", "-n", "20", "h1")
        self.expect_captured("h2.pcapng", "10.77.0.2", "10.77.0.1")

    def expect_captured(self, file, one, other):
        if shutil.which("tshark") is None:
            self.skipTest("no tshark")
        read = subprocess.run(["tshark", "-r", f"{self.folder}/{file}", "-T", "fields", "-e", "ip.src", "-e", "ip.dst", "-e", "infiniband.bth.psn"],
                              capture_output=True, text=True, check=True).stdout
        self.assertIn(f"{one}\t{other}\t", read)
        self.assertIn(f"{other}\t{one}\t", read)

    def test_captures_of_all_hosts_are_written(self):
        self.again("--hosts", "2", "--pcap", f"{self.folder}/captures")
        self.start_in("h1", "ibv_rc_pingpong", "-g", "0", "-n", "20")
        self.until_listens("h1", 18515)
        self.run_in("h2", "ibv_rc_pingpong", "-g", "0", "-n", "20", "h1")
        self.expect_captured("captures/h1.pcapng", "10.77.0.1", "10.77.0.2")
        self.expect_captured("captures/h2.pcapng", "10.77.0.2", "10.77.0.1")

    def test_faults_are_those_of_their_host(self):
        self.again("--hosts", "2", "--fault", "drop rate=5% host=h2")
        server = self.start_in("h1", "ibv_rc_pingpong", "-g", "0", "-n", "500")
        self.until_listens("h1", 18515)
        client = self.run_in("h2", "ibv_rc_pingpong", "-g", "0", "-n", "500", "h1")
        self.assertRegex(client.stderr, r"drop rate=5% host=h2: fired")
        self.assertEqual(server.wait(SECONDS), 0)
        self.assertNotIn("fired", server.stdout.read())

    def test_connection_survives_a_pulled_cable(self):
        server = self.start_in("h1", "ib_send_bw", "-D", "4", "-u", "18", "-Q", "1")
        self.until_listens("h1", 18515)
        client = self.start_in("h2", "ib_send_bw", "-D", "4", "-u", "18", "-Q", "1", "h1")
        sent = lambda: int(self.run_in("h2", "cat", "/sys/class/net/eth0/statistics/tx_packets").stdout)
        begun = sent()
        self.until("packets flow", lambda: sent() > begun + 1000)
        weir("fabric", "link", "--fabric", self.name, "h2", "down")
        self.assertEqual(self.run_in("h2", "cat", "/sys/class/net/eth0/carrier").stdout, "0\n")
        listed = json.loads(weir("fabric", "list", "--json", self.name).stdout)["fabrics"][0]["hosts"]
        self.assertEqual([host["link"] for host in listed], ["up", "down"])
        time.sleep(0.5)  # how long the cable is out: what is tried, not waited for
        weir("fabric", "link", "--fabric", self.name, "h2", "up")
        self.assertEqual((client.wait(SECONDS), server.wait(SECONDS)), (0, 0), client.stdout.read() + server.stdout.read())

    def test_programs_are_told_of_a_pulled_cable(self):
        watch = self.start_in("h2", "timeout", "60", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "weir0")
        self.assertIn("async event FD", watch.stdout.readline())
        for state, event in ("down", "PORT_ERR"), ("up", "PORT_ACTIVE"):
            weir("fabric", "link", "--fabric", self.name, "h2", state)
            self.assertIn(event, watch.stdout.readline())

    def test_server_replicates_to_another_host(self):
        def server(host, *options):
            os.mkdir(f"{self.folder}/{host}")
            return self.start_in(host, f"{BIN}/weir-server", "--port", "6379", "--rdma-port", "6379", "--bind", "0.0.0.0", "--dir", f"{self.folder}/{host}",
                                 "--protected-mode", "no", "--save", "", *options)

        def ask(host, *words):
            return self.run_in(host, f"{BIN}/weir-cli", *words, check=False).stdout.strip()

        server("h1")
        self.until("the primary answers", lambda: ask("h1", "ping") == "PONG")
        server("h2", "--rdma-replication", "yes", "--replicaof", "h1 6379")
        self.until("the replica is linked by RDMA", lambda: "master_link_status:up" in (info := ask("h2", "info", "replication")) and "transport:rdma" in info)
        self.assertEqual(ask("h2", "-h", "h1", "--rdma", "set", "key", "value"), "OK")
        self.until("the replica has it", lambda: ask("h2", "get", "key") == "value")

    # ---- as a program sees it

    def test_status_and_signals_go_through(self):
        self.assertEqual(self.run_in("h1", "sh", "-c", "exit 7", check=False).returncode, 7)
        self.assertEqual(self.run_in("h1", "sh", "-c", "kill -SEGV $$", check=False).returncode, -signal.SIGSEGV)
        program = self.start_in("h1", "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done")
        self.assertEqual(program.stdout.readline(), "ready\n")
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(SECONDS), 9)

    def test_program_ends_with_the_command_that_started_it(self):
        program = self.start_in("h1", "sleep", "1000")
        self.until("it runs", lambda: "sleep 1000" in self.running())
        program.kill()
        self.until("it has ended", lambda: self.running() == [])

    def test_switch_counts_what_hosts_send(self):
        self.start_in("h1", "ibv_rc_pingpong", "-g", "0", "-n", "100")
        self.until_listens("h1", 18515)
        self.run_in("h2", "ibv_rc_pingpong", "-g", "0", "-n", "100", "h1")
        h1, h2 = json.loads(weir("fabric", "list", "--json", self.name).stdout)["fabrics"][0]["hosts"]
        for sent, received in (h1["sent"], h2["received"]), (h2["sent"], h1["received"]):
            self.assertGreater(sent["bytes"], 100 * 4096)
            self.assertGreater(received["bytes"], 100 * 4096)
        table = weir("fabric", "top", "--interval", "0.1", "--count", "2", self.name).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in table], ["HOST", "h1", "h2"] * 2)

    def test_a_host_must_be_named(self):
        refused = weir("fabric", "run", "--fabric", self.name, "--", "true", check=False)
        self.assertEqual((refused.returncode, refused.stderr), (2, "weir fabric run: it wants --host HOST; weir fabric list NAME shows the hosts\n"))

    def test_unknown_hosts_and_networks_are_named(self):
        refused = self.run_in("h3", "true", check=False)
        self.assertEqual((refused.returncode, refused.stderr), (125, "weir fabric run: the network has no host 'h3'; it has h1 to h2\n"))
        refused = weir("fabric", "run", "--fabric", "no-such", "--host", "h1", "--", "true", check=False)
        self.assertEqual(refused.returncode, 125)
        self.assertIn("there is no network no-such", refused.stderr)

    def test_hosts_start_programs_in_each_other(self):
        inside = self.run_in("h1", WEIR, "fabric", "ssh", "-x", "h2", "hostname;", "echo", "$WEIR_FABRIC_HOST")
        self.assertEqual(inside.stdout, "h2\nh2\n")

    # ---- nothing is left

    def test_nothing_is_left_when_it_is_ended(self):
        self.run_in("h1", "sh", "-c", "sleep 1000 >/dev/null 2>&1 </dev/null &")
        weir("fabric", "down", self.name)
        self.expect_nothing_left()

    def test_nothing_is_left_when_a_keeper_is_killed(self):
        for killed in 0, 1:
            with self.subTest(killed):
                self.start_in("h1", "ib_write_bw")
                self.run_in("h2", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
                os.kill(self.keeper()[killed], signal.SIGKILL)
                self.expect_nothing_left()
                self.up("--hosts", "2")

    def test_nothing_is_left_when_both_keepers_are_killed(self):
        program = self.start_in("h1", "sleep", "1000")
        self.until("it runs", lambda: "sleep 1000" in self.running())
        outer, first = self.keeper()
        os.kill(outer, signal.SIGSTOP)  # so that it cannot notice the other's end
        os.kill(first, signal.SIGKILL)
        os.kill(outer, signal.SIGKILL)
        self.assertEqual(program.wait(SECONDS), -signal.SIGKILL)
        weir("fabric", "list")  # which removes what is stale
        self.expect_nothing_left()

    def test_an_ordinary_user_can_do_it(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user; this whole test is that user's")
        home = f"{self.folder}/home"
        os.mkdir(home)
        os.chmod(self.folder, 0o755)
        os.chown(home, NOBODY, NOBODY)
        as_nobody = dict(user=NOBODY, group=NOBODY, extra_groups=[], cwd=home, env={**os.environ, "WEIR_RUNTIME_DIR": f"{home}/runtime"})
        try:
            weir("fabric", "up", "--hosts", "2", "--name", self.name, **as_nobody)
            self.addCleanup(weir, "fabric", "down", self.name, check=False, **as_nobody)
            self.assertEqual(weir("fabric", "run", "--host", "h2", "--", "id", "-u", **as_nobody).stdout, f"{NOBODY}\n")
            server = subprocess.Popen([WEIR, "fabric", "run", "--host", "h1", "--", "ibv_rc_pingpong", "-g", "0"], stdout=subprocess.DEVNULL, **as_nobody)
            self.addCleanup(self.end, server)
            self.until("a ping-pong", lambda: "iters in" in weir("fabric", "run", "--host", "h2", "--", "ibv_rc_pingpong", "-g", "0", "h1", check=False, **as_nobody).stdout)
            self.assertEqual(server.wait(SECONDS), 0)
            weir("fabric", "down", **as_nobody)
        except PermissionError as error:
            self.skipTest(f"the build is not where others can read it: {error}")


class FourHosts(Fabric):
    """MPI: mpirun in a host, which starts its daemons in the others."""
    hosts = 4

    def mpi(self, *options):
        mpirun = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--host", "h1,h2,h3,h4",
                  "--mca", "plm_rsh_agent", f"{WEIR} fabric ssh", *options, f"{PROGRAMS}/mpi_exchange", "allreduce"]
        if shutil.which("mpirun") is None or not os.path.exists(f"{PROGRAMS}/mpi_exchange"):
            self.skipTest("no Open MPI, or no mpi_exchange")
        return self.run_in("h1", *mpirun).stdout

    def test_open_mpi_runs_over_ucx(self):
        self.assertRegex(self.mpi("--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
                                  "-x", "UCX_TLS=rc_v,self"), r"allreduce: 4 ranks, right")


RACK = """
name = "a rack"
[leaf_spine]
spines = 2
leaves = 2
hosts_per_leaf = 4
host_speed = "100G"
host_cable = "3m"
spine_speed = "400G"
spine_cable = "40m"
leaf_model = "generic-32m"
spine_model = "generic-32m"
"""
LEFT, RIGHT = "leaf1-host1", "leaf2-host4"  # packets between these cross a spine
HOSTS = [f"leaf{leaf}-host{host}" for leaf in (1, 2) for host in (1, 2, 3, 4)]


class LeafSpine(Fabric):
    """Eight hosts on two leaves and two spines, which route."""

    def setUp(self):
        super().setUp()
        with open(f"{self.folder}/rack.toml", "w") as file:
            file.write(RACK)
        self.again(f"{self.folder}/rack.toml")

    def link(self, *words):
        weir("fabric", "link", "--fabric", self.name, *words)

    def cables(self):
        """What each cable between switches has carried, in packets."""
        shown = json.loads(weir("fabric", "list", "--json", self.name).stdout)["fabrics"][0]["cables"]
        return {(cable["a"], cable["b"]): cable["sent"]["packets"] + cable["received"]["packets"] for cable in shown}

    def test_connection_survives_a_cable_between_switches(self):
        server = self.start_in(LEFT, "ib_send_bw", "-D", "5", "-u", "18", "-Q", "1")
        self.until_listens(LEFT, 18515)
        client = self.start_in(RIGHT, "ib_send_bw", "-D", "5", "-u", "18", "-Q", "1", LEFT)
        begun = self.cables()
        self.until("packets flow", lambda: sum(self.cables().values()) > sum(begun.values()) + 1000)
        used = max(("spine1", "spine2"), key=lambda spine: self.cables()["leaf1", spine])
        other = "spine2" if used == "spine1" else "spine1"
        self.link("leaf2", used, "down")
        before = self.cables()["leaf1", other]
        self.until(f"they flow through {other}", lambda: self.cables()["leaf1", other] > before + 100)
        self.assertEqual((client.wait(SECONDS), server.wait(SECONDS)), (0, 0), client.stdout.read() + server.stdout.read())

    def test_leaf_without_spines_is_cut_off_until_one_is_back(self):
        for spine in "spine1", "spine2":
            self.link("leaf1", spine, "down")
        listed = weir("fabric", "list", self.name).stdout
        self.assertRegex(listed, r"leaf1 +spine1 +down")
        neighbour = self.start_in(LEFT, "ibv_rc_pingpong", "-n", "20")  # without a GID: they would forbid a second hop
        self.until_listens(LEFT, 18515)
        self.assertEqual(self.run_in("leaf1-host2", "ibv_rc_pingpong", "-n", "20", LEFT, check=False).returncode, 0)
        self.assertEqual(neighbour.wait(SECONDS), 0)
        self.assertNotEqual(self.run_in(RIGHT, "ibv_rc_pingpong", "-n", "20", LEFT, check=False).returncode, 0)
        self.link("spine2", "leaf1", "up")
        self.start_in(LEFT, "ibv_rc_pingpong", "-n", "20")
        self.until_listens(LEFT, 18515)
        self.assertEqual(self.run_in(RIGHT, "ibv_rc_pingpong", "-n", "20", LEFT, check=False).returncode, 0)

    def test_cable_that_is_not_there_is_named(self):
        refused = weir("fabric", "link", "--fabric", self.name, "leaf1", "leaf2", "down", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no cable between 'leaf1' and 'leaf2'", refused.stderr)

    def test_flat_network_has_one_switch(self):
        self.again(f"{self.folder}/rack.toml", "--flat")
        self.assertNotIn("cables", self.listed)
        self.start_in(LEFT, "ibv_rc_pingpong", "-g", "0", "-n", "20")
        self.until_listens(LEFT, 18515)
        self.assertEqual(self.run_in(RIGHT, "ibv_rc_pingpong", "-g", "0", "-n", "20", LEFT, check=False).returncode, 0)

    def test_sixteen_mpi_ranks_cross_the_spines(self):
        if shutil.which("mpirun") is None or not os.path.exists(f"{PROGRAMS}/mpi_exchange"):
            self.skipTest("no Open MPI, or no mpi_exchange")
        mpirun = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--host", ",".join(f"{host}:2" for host in HOSTS),
                  "--mca", "plm_rsh_agent", f"{WEIR} fabric ssh", "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any",
                  "--mca", "pml_ucx_devices", "any", "-x", "UCX_TLS=rc_v,self", f"{PROGRAMS}/mpi_exchange", "allreduce"]
        process = self.start_in(LEFT, *mpirun)
        self.assertEqual(process.wait(5 * SECONDS), 0)
        self.assertRegex(process.stdout.read(), r"allreduce: 16 ranks, right")
        self.assertGreater(min(self.cables()["leaf1", "spine1"], self.cables()["leaf1", "spine2"]), 0)

    def test_replicas_of_a_server_follow_across_spines(self):
        def server(host, *options):
            os.mkdir(f"{self.folder}/{host}")
            return self.start_in(host, f"{BIN}/weir-server", "--port", "6379", "--rdma-port", "6379", "--bind", "0.0.0.0", "--dir", f"{self.folder}/{host}",
                                 "--protected-mode", "no", "--save", "", *options)

        def ask(host, *words):
            return self.run_in(host, f"{BIN}/weir-cli", *words, check=False).stdout.strip()

        replicas = ["leaf1-host2", RIGHT]
        server(LEFT)
        self.until("the primary answers", lambda: ask(LEFT, "ping") == "PONG")
        for replica in replicas:
            server(replica, "--rdma-replication", "yes", "--replicaof", f"{LEFT} 6379")
        for replica in replicas:
            self.until(f"{replica} is linked", lambda: "master_link_status:up" in ask(replica, "info", "replication"))
        self.link("leaf2", "spine1", "down")
        self.assertEqual(ask(RIGHT, "-h", LEFT, "--rdma", "set", "key", "value"), "OK")
        for replica in replicas:
            self.until(f"{replica} has it", lambda: ask(replica, "get", "key") == "value")

    # ---- what operators ask

    def diagnosed(self, host, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f"no {command[0]} (infiniband-diags)")
        return self.run_in(host, *command).stdout

    def test_iblinkinfo_shows_cables_and_their_state(self):
        shown = self.diagnosed(LEFT, "iblinkinfo", "-l")
        for end in '"leaf1"', '"leaf2"', '"spine1"', '"spine2"', f'"{RIGHT} weir0"':
            self.assertIn(end, shown)
        self.assertNotIn("Down", shown)
        self.link("leaf1", "spine2", "down")
        self.assertRegex(self.diagnosed(LEFT, "iblinkinfo", "-l"), r' leaf1".*Down')

    def test_ibnetdiscover_finds_all_nodes(self):
        shown = self.diagnosed(LEFT, "ibnetdiscover")
        self.assertEqual((len(re.findall(r"(?m)^Switch\t", shown)), len(re.findall(r"(?m)^Ca\t", shown))), (4, 8), shown)

    def test_ibping_reaches_other_hosts(self):
        if shutil.which("ibping") is None:
            self.skipTest("no ibping (infiniband-diags)")
        self.start_in(RIGHT, "ibping", "-S")
        self.until("the server answers", lambda: " 0% packet loss" in self.run_in(LEFT, "ibping", "-c", "1", "8", check=False).stdout)
        shown = self.run_in(LEFT, "ibping", "-c", "3", "8").stdout
        self.assertEqual(shown.count(f"Pong from {RIGHT}"), 3, shown)

    def test_rdma_shows_the_link_of_a_host(self):
        self.assertRegex(self.diagnosed(LEFT, "rdma", "link"), r"link weir0/1 state ACTIVE physical_state LINK_UP netdev eth0")

    def test_gids_of_a_host_are_files(self):
        path = "/sys/class/infiniband/weir0/ports/1"
        shown = self.run_in(LEFT, "sh", "-c", f"cat {path}/gids/0 {path}/gid_attrs/types/0 {path}/gid_attrs/ndevs/0").stdout
        self.assertEqual(shown, "0000:0000:0000:0000:0000:ffff:0a4d:0001\nRoCE v2\neth0\n")


# The tests of Fabric are not run a second time with more hosts.
for inherited in [name for name in dir(Fabric) if name.startswith("test_")]:
    for more in FourHosts, LeafSpine:
        setattr(more, inherited, None)

if __name__ == "__main__":
    tried = weir("fabric", "up", "--hosts", "1", "--name", f"try-{os.getpid()}", check=False)
    if REFUSED in tried.stderr:
        print(f"skipped: {tried.stderr}")
        sys.exit(SKIPPED)
    weir("fabric", "down", f"try-{os.getpid()}", check=False)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
