#!/usr/bin/env python3
"""Weir's own programs between hosts of a simulated network that loses packets and links, for many seeds.

  own_programs_test.py WEIR [NAME [SEEDS [FOLDER]]]     NAME: one of the scenarios below, or all; SEEDS: 1..1000; FOLDER: takes the scenarios
Exit status 77: this machine permits no user namespaces.

Each scenario checks its own results, so a seed fails if a program ends with another status than 0, does not end, or waits for ever. A seed
decides which packets are lost, and the numbers that programs draw.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NETWORK = """name = "own"
[[switch]]
name = "s1"
model = "generic-32m"
"""


def network(*hosts):
    return NETWORK + "".join(f'[[host]]\nname = "{host}"\n[[link]]\nbetween = ["{host}", "s1"]\nspeed = "100G"\ncable = "3m"\n' for host in hosts)


def loss(host, rate, begin, end):
    return f'[[loss]]\nhost = "{host}"\nrate = {rate}\nfrom = "{begin}"\nuntil = "{end}"\n'


def link_failure(host, at, back):
    return f'[[link_failure]]\nbetween = ["{host}", "s1"]\nat = "{at}"\nback = "{back}"\n'


def program(host, script, start=None):
    return f'[[program]]\nhost = "{host}"\ncommand = {json.dumps(["sh", "-ec", script])}\n' + (f'start = "{start}"\n' if start else "")


class Scenarios:
    """What the programs are, by their folder; the scripts compare what arrived with what was sent."""

    def __init__(self, bin_folder, scratch):
        self.bin, self.scratch = bin_folder, scratch

    def server(self, host, *options):
        folder = f"{self.scratch}/{host}"
        os.makedirs(folder, exist_ok=True)
        return (f"exec {self.bin}/weir-server --port 6379 --rdma-port 6379 --bind 0.0.0.0 --dir {folder} --protected-mode no --save '' "
                f"--logfile /dev/null {' '.join(options)}")

    def replication(self):
        """A primary and a replica over RDMA; while keys are written packets are lost and the replica's link fails."""
        cli = f"{self.bin}/weir-cli"
        ask = (f"{cli} -h h2 ping >/dev/null; i=0; while [ $i -lt 40 ]; do {cli} -h h1 set key:$i value:$i >/dev/null; i=$((i+1)); done; "
               f"{cli} -h h1 set big $(head -c 60000 /dev/zero | tr '\\0' x) >/dev/null; "
               f"n=0; until [ \"$({cli} -h h2 dbsize)\" = 41 ] && [ \"$({cli} -h h2 strlen big)\" = 60000 ]; do n=$((n+1)); [ $n -lt 60 ]; sleep 0.5; done; "
               f"i=0; while [ $i -lt 40 ]; do [ \"$({cli} -h h2 get key:$i)\" = value:$i ]; i=$((i+1)); done; "
               f"for h in h2 h1; do {cli} -h $h shutdown nosave || true; done")
        return (network("h1", "h2", "h3") + loss("h2", 0.03, "500ms", "20s") + link_failure("h2", "1500ms", "1800ms") +
                program("h1", self.server("h1"), "0ms") + program("h2", self.server("h2", "--rdma-replication yes", "--replicaof 'h1 6379'"), "100ms") +
                program("h3", ask, "1400ms"))

    def rpc(self):
        """Channel and RPC: calls, streams in both directions, and a link that fails during them."""
        serve = f"{self.bin}/rpc_shop serve rdma://0.0.0.0:7000 & p=$!; sleep 30; kill -TERM $p; wait $p"
        call = (f"i=0; while [ $i -lt 10 ]; do {self.bin}/rpc_shop call rdma://h1:7000 > {self.scratch}/said-$$; "
                f"grep -qx '2 + 3 = 5' {self.scratch}/said-$$; grep -qx '12 of bolt' {self.scratch}/said-$$; i=$((i+1)); done; rm {self.scratch}/said-$$")
        return (network("h1", "h2", "h3") + loss("h2", 0.02, "0ms", "60s") + loss("h3", 0.02, "0ms", "60s") + link_failure("h1", "300ms", "420ms") +
                program("h1", serve, "0ms") + program("h2", call, "100ms") + program("h3", call, "101ms"))

    def tensors(self):
        """A hub, and peers that fetch each version and push one of their own."""
        library = os.path.join(os.path.dirname(self.bin), "lib", "libweir_tensor.so.0")
        if not os.path.exists(library):
            return None
        interpreter = next((each for each in (sys.executable, "/usr/bin/python3") if has_numpy(each)), None)
        if interpreter is None:
            return None
        python = f"WEIR_TENSOR_LIBRARY={library} PYTHONPATH={ROOT}/tensor/python {interpreter} -c"
        hub = ("import numpy, time, weir_tensor\n"
               "with weir_tensor.listen('rdma://0.0.0.0:7800', push_names='sum-*', open=True) as hub:\n"
               "  for version in range(1, 6): hub.publish('w', numpy.full(50000, version, 'float32')); time.sleep(.3)\n"
               "  for host in 'h2', 'h3': assert hub.get(f'sum-{host}', timeout=60).value.tolist() == [5 * 50000.0], host\n")
        peer = ("import numpy, sys, weir_tensor\n"
                "with weir_tensor.connect('rdma://h1:7800') as peer:\n"
                "  seen = 0\n"
                "  while seen < 5:\n"
                "    fetched = peer.fetch_version('w', newer_than=seen, timeout=60); seen = fetched.number\n"
                "    assert (fetched.value == fetched.value[0]).all() and fetched.value[0] == seen, seen\n"
                "  peer.push(f'sum-{sys.argv[1]}', numpy.array([fetched.value.sum(dtype='float64')]))\n")
        return (network("h1", "h2", "h3") + loss("h2", 0.02, "0ms", "60s") + loss("h3", 0.02, "0ms", "60s") + link_failure("h3", "700ms", "900ms") +
                program("h1", f"{python} {json.dumps(hub)}".replace("\\n", "\n"), "0ms") +
                "".join(program(host, f"{python} {json.dumps(peer)} {host}".replace("\\n", "\n"), "100ms") for host in ("h2", "h3")))


    def sockets(self):
        """TCP programs whose connections change to RDMA between hosts: an echo that selects, and clients that send ahead and end one half."""
        run = f"{self.bin}/weir run --sockets --sockets-peers 10.0.0.0/8 -- {sys.executable} -c"
        serve = ("import selectors, socket\n"
                 "chosen, ends = selectors.DefaultSelector(), 0\n"
                 "listener = socket.create_server(('0.0.0.0', 7900)); chosen.register(listener, selectors.EVENT_READ)\n"
                 "while ends < 6:\n"
                 "  for key, events in chosen.select():\n"
                 "    if key.fileobj is listener:\n"
                 "      peer = listener.accept()[0]; peer.setblocking(False); chosen.register(peer, selectors.EVENT_READ, bytearray()); continue\n"
                 "    peer, held = key.fileobj, key.data\n"
                 "    if events & selectors.EVENT_READ:\n"
                 "      some = peer.recv(30000); held += some\n"
                 "      if not some: peer.setblocking(True); peer.sendall(held); chosen.unregister(peer); peer.close(); ends += 1; continue\n"
                 "    if held:\n"
                 "      try: del held[:peer.send(held)]\n"
                 "      except BlockingIOError: pass\n"
                 "    chosen.modify(peer, selectors.EVENT_READ | (selectors.EVENT_WRITE if held else 0), held)\n")
        ask = ("import random, socket, threading, time\n"
               "def talk(number):\n"
               "  numbers, sent, heard = random.Random(number), bytearray(), bytearray()\n"
               "  with socket.create_connection(('h1', 7900)) as peer:\n"
               "    for turn in range(60):\n"
               "      some = numbers.randbytes(numbers.choice((1, 40, 700, 9000))); peer.sendall(some); sent += some\n"
               "      while len(heard) < len(sent) - numbers.choice((0, 0, 5000)): heard += peer.recv(20000) or exit('ended early')\n"
               "      if turn % 3 == 0: time.sleep(.005)\n"
               "    peer.shutdown(socket.SHUT_WR)\n"
               "    while some := peer.recv(20000): heard += some\n"
               "  same[number] = heard == sent\n"
               "same = {}\n"
               "talks = [threading.Thread(target=talk, args=(number,)) for number in range(3)]\n"
               "[each.start() for each in talks]; [each.join() for each in talks]\n"
               "assert same == {0: True, 1: True, 2: True}, same\n")
        return (network("h1", "h2", "h3") + loss("h2", 0.02, "0ms", "60s") + loss("h3", 0.02, "0ms", "60s") + link_failure("h1", "150ms", "230ms") +
                program("h1", f"exec {run} {json.dumps(serve)}".replace("\\n", "\n"), "0ms") +
                "".join(program(host, f"exec {run} {json.dumps(ask)}".replace("\\n", "\n"), "100ms") for host in ("h2", "h3")))


def has_numpy(interpreter):
    return os.path.exists(interpreter) and subprocess.run([interpreter, "-c", "import numpy"], capture_output=True).returncode == 0


def names():
    return ["replication", "rpc", "tensors", "sockets"]


def run(weir, name, seeds, out):
    with tempfile.TemporaryDirectory(prefix="weir-own-") as scratch:
        text = getattr(Scenarios(os.path.dirname(weir), scratch), name)()
        if text is None:
            print(f"{name}: skipped")
            return True
        path = f"{scratch}/{name}.toml"
        with open(path, "w") as file:
            file.write(text)
        if out:
            shutil.copy(path, out)
        done = subprocess.run([weir, "fabric", "test", "--seeds", seeds, path], capture_output=True, text=True)
        print(f"{name}: {done.stdout}{done.stderr}", flush=True)
        return done.returncode == 0


def main():
    weir = sys.argv[1]
    tried = subprocess.run([weir, "fabric", "up", "--hosts", "1", "--name", f"try-{os.getpid()}"], capture_output=True, text=True)
    if tried.returncode != 0:
        print(f"skipped: {tried.stderr}")
        return SKIPPED
    subprocess.run([weir, "fabric", "down", f"try-{os.getpid()}"], capture_output=True)
    wanted = names() if len(sys.argv) < 3 or sys.argv[2] == "all" else [sys.argv[2]]
    seeds = sys.argv[3] if len(sys.argv) > 3 else "1..2"
    out = sys.argv[4] if len(sys.argv) > 4 else None
    return 0 if all([run(weir, name, seeds, out) for name in wanted]) else 1


if __name__ == "__main__":
    sys.exit(main())
