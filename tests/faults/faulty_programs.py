#!/usr/bin/env python3
"""Other people's programs under `weir run --fault`: what they survive, what they say when they do not, and what is reported.

  faulty_programs.py WEIR     exit status 77: this machine permits no network namespaces
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import own_namespace
from own_namespace import ADDRESS

WEIR = os.path.abspath(sys.argv[1])
SECONDS = 60
PORT = 18600


def listens(port):
    with open("/proc/net/tcp") as v4, open("/proc/net/tcp6") as v6:
        return any(re.match(rf"\s*\d+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 0A", line) for line in [*v4, *v6])


class FaultyPrograms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-faults-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "WEIR_RUNTIME_DIR": f"{self.folder}/runtime"}

    def run_pair(self, options, *program, server=("--packets",), environment=None):
        """Runs a server with options of its own and a client with `options`; returns the client, finished."""
        server = subprocess.Popen([WEIR, "run", *server, "--gid", ADDRESS, "--", *program, "-p", str(PORT)], env=self.environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + SECONDS
            while not listens(PORT) and time.monotonic() < until:
                time.sleep(0.01)
            return subprocess.run([WEIR, "run", *options, "--gid", ADDRESS, "--", *program, "-p", str(PORT), ADDRESS],
                                  env={**self.environment, **(environment or {})}, capture_output=True, text=True, timeout=SECONDS)
        finally:
            server.kill()
            server.wait()

    def test_lost_packet_is_sent_again_and_reported(self):
        done = self.run_pair(["--fault", "drop qp=1 psn=5 direction=out"], "ibv_rc_pingpong", "-g", "0", "-n", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"weir faults: ibv_rc_pingpong \(process \d+\): 1 of 1 fault fired; ")
        self.assertRegex(done.stderr, r"drop qp=1 psn=5 direction=out: fired 1 time\n +\d+\.\d+ s  QP 1 \(0x\w+\)  PSN 5  SEND_MIDDLE, leaving, 1040 bytes")

    def test_packet_lost_for_ever_ends_with_retry_exceeded(self):
        done = self.run_pair(["--fault", "drop qp=1 psn=5 times=all direction=out"], "ibv_rc_pingpong", "-g", "0", "-n", "20")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("transport retry counter exceeded (12)", done.stderr)

    def test_each_fault_is_survived(self):
        file = f"{self.folder}/faults"
        with open(file, "w") as faults:
            faults.write("seed 3\ndrop rate=1%\nduplicate rate=1%\ncorrupt rate=1%\ndelay 1ms rate=1%\nreorder 2 rate=1%\nmark rate=1%\n")
        done = self.run_pair(["--faults", file], "ib_send_bw", "-x", "0", "-n", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("6 of 6 faults fired", done.stderr)

    def test_same_seed_loses_same_requests(self):
        def lost(seed):
            fault = f"seed {seed}; drop rate=3% direction=out opcode=request"
            done = self.run_pair([], "ibv_rc_pingpong", "-g", "0", "-n", "50", environment={"WEIR_FAULT": fault})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("more", done.stderr)  # so few that all are listed
            return sorted(re.findall(r"PSN \d+", done.stderr))
        once = lost(7)
        self.assertGreaterEqual(len(once), 2)
        self.assertEqual(once, lost(7))
        self.assertNotEqual(once, lost(8))

    def test_fault_that_never_fires_says_why(self):
        done = self.run_pair(["--fault", "drop qp=2"], "ibv_rc_pingpong", "-g", "0", "-n", "20")
        self.assertIn("drop qp=2: never fired: the program made 1 queue pair", done.stderr)

    def test_json_has_a_line_for_each_program_with_faults(self):
        file = f"{self.folder}/json"
        done = self.run_pair(["--json", file, "--fault", "drop qp=1 psn=5; drop qp=2; drop program=other"], "ibv_rc_pingpong", "-g", "0", "-n", "20",
                             server=["--json", file, "--fault", "mark program=ibv_*"])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(file) as lines:
            summaries = [json.loads(line) for line in lines]
        self.assertEqual({summary["program"] for summary in summaries}, {"ibv_rc_pingpong"})
        summary = next(each for each in summaries if each["faults"][0]["fault"] == "drop qp=1 psn=5")
        self.assertEqual([(fault["fault"], fault["has_fired"]) for fault in summary["faults"]], [("drop qp=1 psn=5", True), ("drop qp=2", False)])
        self.assertEqual(summary["faults"][0]["firings"][0]["psn"], 5)

    def test_annotations_for_github_warn_of_faults_that_never_fired(self):
        done = self.run_pair(["--fault", "drop qp=2"], "ibv_rc_pingpong", "-g", "0", "-n", "20", environment={"WEIR_FAULTS_ANNOTATIONS": "1"})
        self.assertIn("::warning title=weir faults in ibv_rc_pingpong::drop qp=2: never fired: the program made 1 queue pair", done.stderr)

    def test_mistake_in_the_environment_keeps_the_nic_from_starting(self):
        done = subprocess.run([WEIR, "run", "--", "ibv_devinfo"], env={**self.environment, "WEIR_FAULT": "drop; dorp"},
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("WEIR_FAULT: line 1: 'dorp' is no fault; did you mean 'drop'?", done.stderr)

    def test_mistake_on_the_command_line_starts_nothing(self):
        done = subprocess.run([WEIR, "run", "--fault", "drop pns=1", "--", "echo", "started"], env=self.environment,
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("'pns' is no condition; did you mean 'psn'?", done.stderr)

    def test_link_that_flaps_often_leaves_nothing_hanging(self):
        flaps = "; ".join(f"down from={1500 + 300 * flap}ms until={1600 + 300 * flap}ms" for flap in range(3))
        done = self.run_pair(["--fault", flaps], "ib_write_bw", "-x", "0", "-D", "3", "-s", "4096", "-u", "18")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 of 3 faults fired", done.stderr)

    def test_refused_calls_are_said_by_the_program(self):
        rows = [("refuse ENOMEM call=ibv_reg_mr", "Couldn't register MR", "ibv_reg_mr 1"),
                ("refuse ENOMEM call=ibv_create_qp", "Couldn't create QP", "ibv_create_qp 1"),
                ("refuse EINVAL call=ibv_post_send qp=1 nth=3", "Couldn't post send", "ibv_post_send 3 of QP 1")]
        for fault, said, reported in rows:
            done = self.run_pair(["--packets", "--fault", fault], "ibv_rc_pingpong", "-g", "0", "-n", "20")
            self.assertEqual(done.returncode, 1, fault)
            self.assertIn(said, done.stderr)
            self.assertIn(reported, done.stderr)

    def test_completion_has_the_status_that_was_written(self):
        done = self.run_pair(["--packets", "--fault", "complete IBV_WC_REM_ACCESS_ERR qp=1 nth=5"], "ibv_rc_pingpong", "-g", "0", "-n", "20")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("Failed status remote access error (10)", done.stderr)
        self.assertIn("completion 5 of QP 1", done.stderr)

    def test_queue_pair_in_error_ends_a_program_on_one_host_and_between_two(self):
        for packets in ["--packets"], []:
            done = self.run_pair([*packets, "--fault", "qp-error qp=1 nth=10"], "ibv_rc_pingpong", "-g", "0", "-n", "20", server=packets)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("qp-error qp=1 nth=10: fired 1 time", done.stderr)

    def test_slow_receiver_delays_a_message_on_one_host_and_between_two(self):
        for packets in ["--packets"], []:
            done = self.run_pair([*packets, "--fault", "rnr 20ms qp=1 nth=5"], "ibv_rc_pingpong", "-g", "0", "-n", "20", server=packets)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"rnr 20ms qp=1 nth=5: fired 1 time\n +\d+\.\d+ s  message 5 to QP 1")
            seconds = re.search(r"20 iters in ([\d.]+) seconds", done.stdout)
            self.assertGreaterEqual(float(seconds.group(1)), 0.019, done.stdout)

    def test_port_that_goes_down_and_comes_back_is_told(self):
        watch = subprocess.Popen([WEIR, "run", "--fault", "down from=100ms until=200ms", "--", "stdbuf", "-oL", "ibv_asyncwatch"],
                                 env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        lines = [watch.stdout.readline() for _ in range(3)]  # the first names the device
        self.assertIn("IBV_EVENT_PORT_ERR (10)", lines[1])
        self.assertIn("IBV_EVENT_PORT_ACTIVE (9)", lines[2])

    def test_port_that_is_down_says_so(self):
        done = subprocess.run([WEIR, "run", "--fault", "down from=0s", "--", "ibv_devinfo"],
                              env=self.environment, capture_output=True, text=True, timeout=SECONDS)
        self.assertRegex(done.stdout, r"state:\s+PORT_DOWN \(1\)")
        self.assertIn("down from=0s: fired; 0 packets lost", done.stderr)

    def test_address_that_goes_and_comes_back_is_told(self):
        watch = subprocess.Popen([WEIR, "run", "--fault", "gid-gone from=100ms until=200ms", "--", "stdbuf", "-oL", "ibv_asyncwatch"],
                                 env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        lines = [watch.stdout.readline() for _ in range(3)]
        self.assertIn("IBV_EVENT_GID_CHANGE (18)", lines[1])
        self.assertIn("IBV_EVENT_GID_CHANGE (18)", lines[2])

    def test_connection_of_a_gone_address_ends_with_retry_exceeded(self):
        done = self.run_pair(["--fault", "gid-gone gid=0 from=1s"], "ib_send_bw", "-x", "0", "-D", "3", "-s", "4096")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stderr, r"gid-gone gid=0 from=1s: fired; \d+ packets lost")

    def test_paused_port_sends_later_and_counts_the_time(self):
        wait = "/sys/class/infiniband/weir0/ports/1/counters/port_xmit_wait"  # counts for programs that end after its first reader
        script = f'cat {wait} > /dev/null; ibv_rc_pingpong -g 0 -n 20 "$@" && cat {wait} >&2'
        done = self.run_pair(["--fault", "pause from=0s until=500ms"], "sh", "-c", script, "sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"pause from=0s until=500ms: fired; \d+ packets? waited")
        self.assertGreater(max(int(line) for line in done.stderr.splitlines() if line.isdigit()), 1000)

    def test_altered_packet_passes_and_its_bytes_are_wrong(self):
        for direction in "out", "in":
            done = self.run_pair(["--fault", f"alter qp=1 psn=3 direction={direction} opcode=send"], "ibv_rc_pingpong", "-g", "0", "-n", "20", "-c")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("fired 1 time", done.stderr)

    def test_program_is_killed_with_a_report(self):
        watch = subprocess.run([WEIR, "run", "--fault", "kill from=50ms", "--", "ibv_asyncwatch"], env=self.environment,
                               capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(watch.returncode, -signal.SIGKILL)
        self.assertIn("kill from=50ms: fired", watch.stderr)

    def test_program_is_stopped(self):
        watch = subprocess.Popen([WEIR, "run", "--fault", "stop from=50ms", "--", "ibv_asyncwatch"], env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        _, status = os.waitpid(watch.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))

    def test_check_and_list_print_what_they_read(self):
        file = f"{self.folder}/faults"
        with open(file, "w") as faults:
            faults.write("# one\n\ndrop qp=1 # two\n")
        done = subprocess.run([WEIR, "faults", "check", file], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, "seed 1, 1 fault\n  line 3: drop qp=1\n"))
        with open(file, "a") as faults:
            faults.write("drop ps=1\n")
        done = subprocess.run([WEIR, "faults", "check", "--json", file], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn('"line": 4, "word": "ps=1"', done.stdout)
        done = subprocess.run([WEIR, "faults", "list"], capture_output=True, text=True, timeout=SECONDS)
        self.assertIn("drop qp=1 psn=5", done.stdout)


if __name__ == "__main__":
    own_namespace.run_tests()
