#!/usr/bin/env python3
"""weir-benchmark against Debian's redis-server: every test, every output, TCP, unix socket and TLS.

  weir_benchmark_interop.py WEIR_BENCHMARK
"""
import csv
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
TESTS = ("PING_INLINE PING_MBULK SET GET INCR LPUSH RPUSH LPOP RPOP SADD HSET SPOP ZADD ZPOPMIN".split())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Benchmark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="weir-benchmark-")
        cls.socket = os.path.join(cls.directory, "s")
        cls.certificate = os.path.join(cls.directory, "cert.pem")
        key = os.path.join(cls.directory, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
                        "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out",
                        cls.certificate], check=True, capture_output=True)
        for _ in range(5):  # a port may be taken between looking and listening
            cls.port, cls.tls_port = free_port(), free_port()
            cls.server = subprocess.Popen(
                ["redis-server", "--port", str(cls.port), "--unixsocket", cls.socket, "--tls-port", str(cls.tls_port),
                 "--tls-cert-file", cls.certificate, "--tls-key-file", key, "--tls-ca-cert-file", cls.certificate,
                 "--tls-auth-clients", "no", "--save", "", "--user", "joe", "on", ">pw", "+@all", "~*"], cwd=cls.directory,
                stdout=subprocess.DEVNULL)
            deadline = time.monotonic() + 20
            while cls.server.poll() is None and time.monotonic() < deadline:
                ping = subprocess.run(["redis-cli", "-p", str(cls.port), "PING"], capture_output=True)
                if ping.stdout == b"PONG\n":
                    return
                time.sleep(0.02)  # polls for readiness, with a limit
            cls.server.kill()
            cls.server.wait()
        raise RuntimeError("redis-server did not start")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        shutil.rmtree(cls.directory)

    def run_it(self, *arguments, **more):
        return subprocess.run([PROGRAM, "-p", str(self.port), *arguments], capture_output=True, text=True, timeout=60,
                              **more)

    def sound(self, *arguments, **more):
        done = self.run_it(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        # The progress line is for terminals; that the machine was busy is not this program's fault.
        said = [line for line in done.stderr.splitlines() if "this program waited for a CPU" not in line]
        self.assertEqual(said, [])
        return done.stdout

    def setting(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True).stdout.strip()

    def test_runs_every_standard_test(self):
        lines = self.sound("-q", "-n", "200", "-c", "5", "-r", "100").splitlines()
        self.assertEqual([line.split(":")[0] for line in lines][:len(TESTS)], TESTS)
        self.assertEqual(len(lines), 20)

    def test_sends_exactly_as_many_requests_as_asked(self):
        for arguments in (["-c", "7", "-n", "1001"], ["-c", "7", "-n", "1001", "-P", "16"], ["-c", "3", "-n", "2"],
                          ["-c", "4", "-n", "999", "--threads", "3"], ["-c", "2", "-n", "50", "-k", "0"]):
            self.setting("SET", "counter:000000000000", "0")
            self.sound("-q", "-t", "incr", *arguments)
            self.assertEqual(self.setting("GET", "counter:000000000000"), arguments[3], arguments)

    def test_stores_values_of_the_size_asked(self):
        for size in (0, 1, 16, 1_000_000):
            self.sound("-q", "-t", "set", "-d", str(size), "-n", "20", "-c", "2")
            self.assertEqual(self.setting("STRLEN", "key:000000000000"), str(size))

    def test_random_keys_stay_in_their_space_and_repeat_with_the_seed(self):
        self.setting("FLUSHALL")
        self.sound("-q", "-t", "set", "-r", "50", "-n", "300", "--seed", "5")
        keys = self.setting("KEYS", "*").split()
        self.assertGreater(len(keys), 30)
        self.assertTrue(all(int(key.removeprefix("key:")) < 50 for key in keys))

    def test_own_commands_and_standard_input(self):
        self.setting("DEL", "own")
        self.sound("-q", "-n", "10", "RPUSH", "own", "__rand_int__")
        self.assertEqual(self.setting("LLEN", "own"), "10")
        self.sound("-q", "-n", "1", "-c", "1", "-x", "SET", "from-stdin", input="text")
        self.assertEqual(self.setting("GET", "from-stdin"), "text")

    def test_csv_has_redis_benchmarks_columns_first(self):
        rows = list(csv.reader(io.StringIO(self.sound("--csv", "-t", "set,get", "-n", "500"))))
        self.assertEqual(rows[0][:8], ["test", "rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms",
                                       "p95_latency_ms", "p99_latency_ms", "max_latency_ms"])
        self.assertEqual([row[0] for row in rows[1:]], ["SET", "GET"])
        least, median, most = (float(rows[1][i]) for i in (3, 4, 7))
        self.assertTrue(0 < least <= median <= most)

    def test_text_has_percentiles_and_a_summary(self):
        text = self.sound("-t", "get", "-n", "500")
        for part in ("====== GET ======", "500 requests completed", "50 parallel clients", "99.", "p99.9", "throughput"):
            self.assertIn(part, text)

    def test_every_transport_but_rdma(self):
        for arguments in (["-s", self.socket], ["-p", str(self.tls_port), "--tls", "--cacert", self.certificate],
                          ["-p", str(self.tls_port), "--tls", "--insecure"],
                          ["-u", f"rediss://127.0.0.1:{self.tls_port}", "--cacert", self.certificate]):
            self.assertIn("requests per second", self.sound("-q", "-t", "set", "-n", "2000", "-P", "4", *arguments))

    def test_logs_in_and_selects(self):
        self.sound("-q", "-t", "set", "-n", "10", "--dbnum", "9", "--user", "joe", "-a", "pw", "-3")
        self.assertEqual(self.setting("-n", "9", "EXISTS", "key:000000000000"), "1")

    def test_comparison_prints_a_table_and_writes_json_and_charts(self):
        files = [os.path.join(self.directory, name) for name in ("c.json", "c.svg", "c.png")]
        text = self.sound("--compare", "tcp,unix,tls", "--cacert", self.certificate, "-t", "set,get", "-c", "1,4", "-d", "16",
                          "--duration", "0.05", "--repeat", "3", "--json", files[0], "--chart", files[1], "--chart", files[2])
        self.assertIn("SET, 1 connection", text)
        self.assertIn("GET, 4 connections", text)
        self.assertIn("redis 7", text)
        with open(files[0]) as file:
            told = json.load(file)
        self.assertEqual(len(told["cases"]), 4)
        for case in told["cases"]:
            self.assertEqual([row["transport"] for row in case["transports"]], ["tcp", "unix", "tls"])
            base = case["transports"][0]["ops_per_s"]
            for row in case["transports"]:
                self.assertEqual(len(row["rounds_ops_per_s"]), 3)
                self.assertAlmostEqual(row["ratio"], row["ops_per_s"] / base, delta=0.01 * row["ratio"] + 0.001)
                self.assertEqual(row["ops_per_s"], sorted(row["rounds_ops_per_s"])[1])
        with open(files[1]) as file:
            self.assertTrue("<svg" in file.read(2000))
        with open(files[2], "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_a_json_file_that_cannot_be_written_is_refused_before_the_load_runs(self):
        self.setting("SET", "counter:000000000000", "0")
        for arguments in ([], ["--compare", "tcp"]):
            done = self.run_it("-t", "incr", "-n", "10", "--json", "/nonexistent/x.json", *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn("/nonexistent/x.json", done.stderr)
            self.assertEqual(self.setting("GET", "counter:000000000000"), "0")

    def test_a_json_file_keeps_what_it_held_until_there_is_something_new(self):
        name = os.path.join(self.directory, "kept.json")
        with open(name, "w") as file:
            file.write("old" * 1000)
        self.run_it("-n", "10", "--json", name, "NOSUCH")
        with open(name) as file:
            self.assertEqual(file.read(), "old" * 1000)
        self.setting("SET", "key:000000000000", "there")
        self.sound("-q", "-t", "get", "-n", "10", "--json", name)
        with open(name) as file:
            self.assertEqual([told["test"] for told in json.load(file)], ["GET"])

    def test_a_get_that_finds_nothing_is_warned_of(self):
        self.setting("FLUSHALL")
        done = self.run_it("-q", "-t", "get", "-n", "10")
        self.assertIn("GET: every reply says that there is nothing", done.stderr)
        self.assertIn("every reply says that there is nothing", self.sound("-t", "get", "-n", "10"))
        self.assertNotIn("every reply", self.sound("-t", "set", "-n", "10") + self.sound("-t", "get", "-n", "10"))

    def test_an_open_loop_keeps_its_rate(self):
        # On a busy machine the program reports that it was late itself.
        done = self.run_it("--rate", "1000", "--duration", "1", "-t", "set", "-c", "4", "--threads", "2", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)[0]
        self.assertEqual(told["requests"] + told["open_loop"]["unsent"], 1000)
        self.assertEqual(told["open_loop"]["target_per_s"], 1000)
        self.assertLessEqual(told["open_loop"]["achieved_per_s"], 1100)
        self.assertGreaterEqual(told["open_loop"]["late_max_us"], told["open_loop"]["late_p50_us"])

    def test_a_mix_sends_each_test_in_its_share(self):
        self.setting("FLUSHALL")
        self.sound("-q", "-n", "1000", "-c", "1", "-P", "4", "--mix", "incr:3,lpush:1,evalsha:1")
        self.assertEqual(self.setting("GET", "counter:000000000000"), "600")
        self.assertEqual(self.setting("LLEN", "mylist"), "200")
        self.assertEqual(self.setting("GET", "key:000000000000"), "xxx")

    def test_streams_and_scripts_run_by_name(self):
        self.setting("FLUSHALL")
        lines = self.sound("-q", "-n", "100", "-c", "5", "-t", "xread,evalsha").splitlines()
        self.assertEqual([line.split(":")[0] for line in lines],
                         ["XADD", "XREAD (first 10 entries)", "EVALSHA (3 commands)"])
        self.assertEqual(self.setting("XLEN", "mystream"), "100")

    def test_sequential_keys_are_all_there_after_one_round(self):
        self.setting("FLUSHALL")
        self.sound("-q", "-t", "set", "-r", "100", "-n", "100", "-c", "4", "--keys-distribution", "sequential", "-P", "5")
        self.assertEqual(self.setting("DBSIZE"), "100")

    def interrupted(self, *arguments, signals=1):
        """A run that Ctrl-C ends once its load has begun."""
        self.setting("SET", "counter:000000000000", "0")
        child = subprocess.Popen([PROGRAM, "-p", str(self.port), "-t", "incr", "-c", "2", *arguments],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while int(self.setting("GET", "counter:000000000000")) < 1000 and time.monotonic() < deadline:
            time.sleep(0.02)  # polls for the load, with a limit
        for _ in range(signals):
            child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 130, err)
        self.assertIn("interrupted", err)
        return out

    def test_an_interrupt_tells_the_results_so_far(self):
        name = os.path.join(self.directory, "interrupted.json")
        text = self.interrupted("-n", "1000000000", "-q", "--json", name)
        self.assertRegex(text, r"^INCR: [1-9].* requests per second")
        with open(name) as file:
            self.assertGreaterEqual(json.load(file)[0]["requests"], 1000)

    def test_an_interrupt_that_comes_twice_at_once_is_one(self):
        self.assertIn("requests per second", self.interrupted("-n", "1000000000", "-q", signals=20))  # timeout -s INT sends two

    def test_an_interrupt_of_a_comparison_tells_its_whole_rounds(self):
        name = os.path.join(self.directory, "interrupted.json")
        text = self.interrupted("--compare", "tcp,unix", "-n", "200", "-P", "1,2", "--repeat", "1000", "--json", name)
        self.assertIn("INCR, 2 connections", text)
        with open(name) as file:
            rows = json.load(file)["cases"][0]["transports"]
        self.assertEqual(len(rows[0]["rounds_ops_per_s"]), len(rows[1]["rounds_ops_per_s"]))
        self.assertLess(len(rows[0]["rounds_ops_per_s"]), 1000)

    def test_a_loop_runs_the_tests_again_until_an_interrupt(self):
        lines = self.interrupted("-n", "100", "-l", "--csv").splitlines()
        self.assertGreaterEqual(len([line for line in lines if line.startswith('"INCR"')]), 10)

    def clients(self):
        return int(self.setting("INFO", "clients").split("connected_clients:")[1].split()[0]) - 1  # without the connection that asks

    def test_idle_connections_are_held_until_an_interrupt(self):
        for arguments in ([], ["-s", self.socket], ["-p", str(self.tls_port), "--tls", "--insecure"]):
            child = subprocess.Popen([PROGRAM, "-p", str(self.port), "-I", "-c", "7", *arguments], stdout=subprocess.PIPE,
                                     text=True)
            deadline = time.monotonic() + 20
            while self.clients() < 7 and time.monotonic() < deadline:
                time.sleep(0.02)  # polls for the connections, with a limit
            self.assertEqual(self.clients(), 7)
            self.assertTrue(any("clients: 7" in line for line in child.stdout))  # a carriage return ends a line
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=30)
            self.assertEqual(child.returncode, 130)

    def test_an_idle_connection_that_is_refused_or_lost_is_an_error(self):
        self.setting("CONFIG", "SET", "maxclients", "5")
        refused = self.run_it("-I", "-c", "10")
        self.setting("CONFIG", "SET", "maxclients", "10000")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("Error", refused.stderr)
        child = subprocess.Popen([PROGRAM, "-p", str(self.port), "-I", "-c", "1", "--user", "joe", "-a", "pw"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while self.setting("CLIENT", "KILL", "USER", "joe") != "1" and time.monotonic() < deadline:
            time.sleep(0.02)  # polls for the login, with a limit
        self.assertIn("Error: Server closed the connection", child.communicate(timeout=30)[1])
        self.assertEqual(child.returncode, 1)

    def test_errors_say_what_to_do_and_exit_with_1(self):
        cases = [
            (["-n", "10", "NOSUCH"], "unknown command"),
            (["-n", "10", "--user", "joe", "-a", "wrong"], "WRONGPASS"),
            (["-p", str(free_port())], "Connection refused"),
            (["-s", "/nonexistent/socket"], "/nonexistent/socket"),
            (["-p", str(self.tls_port), "--tls"], "--cacert"),
            (["-p", str(self.tls_port), "--tls", "--insecure", "--cert", "x"], "--key"),
            (["--compare", "tcp,tls", "--cacert", "/nonexistent", "-t", "get"], "--cacert"),
            (["--compare", "tcp", "-t", "get", "-n", "10", "--chart", "/nonexistent/x.svg"], "/nonexistent/x.svg"),
        ]
        for arguments, words in cases:
            done = self.run_it("-t", "set", *arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(words, done.stderr, arguments)

    def test_a_chart_that_cannot_be_written_is_said_before_the_load_runs(self):
        done = self.run_it("--compare", "tcp", "-t", "get", "-n", "10", "--chart", "/nonexistent/x.svg")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)

    def test_json_goes_into_what_is_no_regular_file(self):
        for name in ("/dev/null", "/dev/stdout"):
            done = self.run_it("-t", "get", "-n", "10", "-q", "--json", name)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"test": "GET"', done.stdout)

    def test_a_comparison_says_that_the_server_could_not_be_asked(self):
        done = self.run_it("-p", str(free_port()), "--compare", "tcp,unix")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Connection refused", done.stderr)

    def test_a_missing_gnuplot_is_named(self):
        done = self.run_it("--compare", "tcp", "-t", "get", "-n", "10", "--chart", "x.svg", env={"PATH": "/nonexistent"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("gnuplot-nox", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
