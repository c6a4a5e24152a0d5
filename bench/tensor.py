#!/usr/bin/env python3
"""Tensors from Python beside perftest, ZeroMQ, gRPC, Gloo and TensorPipe, in one run.

Each row fetches from a server in another process, alternating between ours and its peer's, REPEAT times. It shows the best of
each, the medians in brackets, and the ratio of the bests. If what a peer needs (perftest, python3-zmq, python3-grpcio,
libgloo-dev, libtensorpipe-dev) is not installed or not built, its rows are left out. The load of the machine before and after is
printed at the end. Prints Markdown. Nothing here passes or fails.

Debian's Python has its packages: /usr/bin/python3 bench/tensor.py. --all measures everything that the documentation says of
tensors, in less than eight minutes on an idle machine: these rows, killed hubs, torn fetches and nccl.py's table.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import nic

MIB = 1 << 20
LARGE, SMALL, LEAVES, LEAF = 64 * MIB, 4096, 10_000, 4096
VIEWS, VIEW = 100_000, 416  # about as many bytes as those leaves
MANY = 64  # names fetched at once


def load_ours(build):
    os.environ["WEIR_TENSOR_LIBRARY"] = str(build / "lib/libweir_tensor.so.0")
    sys.path.insert(0, str(nic.ROOT / "tensor/python"))
    import weir_tensor
    return weir_tensor


# --- servers: print their address, serve until they are killed

def published(weir_tensor, name):
    import numpy
    sizes = {"large": LARGE, "small": SMALL, "whole": LEAVES * LEAF}
    if name in sizes:
        return numpy.ones(sizes[name], "uint8")
    if name == "large.shared":
        shared = weir_tensor.empty(LARGE, "uint8")
        shared[:] = 1
        return shared
    count, size, unlike = {"tree": (LEAVES, LEAF, 1), "tree.unlike": (LEAVES, LEAF, 7), "tree.views": (VIEWS, VIEW, 1)}[name]
    return {str(i): numpy.ones(size - i % unlike, "uint8") for i in range(count)}


def serve_tensor(build, scheme, name):
    weir_tensor = load_ours(build)
    hub = weir_tensor.listen(f"{scheme}://127.0.0.1:0")
    what = published(weir_tensor, "small" if name.startswith("many") else name)
    if name.startswith("many"):
        for i in range(MANY):
            hub.publish(str(i), what.copy())
    elif isinstance(what, dict):
        hub.publish_tree(name, what)
    else:
        hub.publish(name, what)
    print(hub.address, flush=True)
    sys.stdin.read()


def serve_zmq(*_):
    import zmq
    sizes = {b"large": bytes(LARGE), b"small": bytes(SMALL)}
    socket = zmq.Context().socket(zmq.REP)
    print(f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}", flush=True)
    while True:
        socket.send(sizes[socket.recv()], copy=False)


def serve_grpc(*_):
    from concurrent import futures
    import grpc
    sizes = {b"large": bytes(LARGE), b"small": bytes(SMALL)}
    handler = grpc.method_handlers_generic_handler("t", {"get": grpc.unary_unary_rpc_method_handler(lambda name, _: sizes[name])})
    server = grpc.server(futures.ThreadPoolExecutor(1), options=GRPC_OPTIONS)
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


GRPC_OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
SERVERS = {"tensor": serve_tensor, "zmq": serve_zmq, "grpc": serve_grpc}


# --- clients: a function that fetches once

def fetcher(build, kind, name, address):
    if kind == "zmq":
        import zmq
        socket = zmq.Context().socket(zmq.REQ)
        socket.connect(address)

        def fetch():
            socket.send(name.encode())
            return len(socket.recv(copy=False))
        return fetch
    if kind == "grpc":
        import grpc
        get = grpc.insecure_channel(address, options=GRPC_OPTIONS).unary_unary("/t/get")
        return lambda: len(get(name.encode()))
    weir_tensor = load_ours(build)
    peer = weir_tensor.connect(address)
    if name.startswith("tree"):
        return lambda: len(peer.fetch_tree(name))
    if name.startswith("many"):
        arrays = {str(i): peer.fetch(str(i)).copy() for i in range(MANY)}
        if name == "many":
            return lambda: peer.fetch_many(arrays, out=arrays)

        def one_after_the_other():
            for each, into in arrays.items():
                peer.fetch(each, out=into)
        return one_after_the_other
    into = weir_tensor.empty(LARGE, "uint8") if name.endswith(".shared") else peer.fetch(name).copy()
    return lambda: peer.fetch(name, out=into)


def seconds_each(build, kind, scheme, name, count, cores):
    """Runs the client in another process, too, so that the compared systems' libraries never share one."""
    words = [sys.executable, "-B", __file__, "--build", str(build)]
    server = subprocess.Popen(["taskset", "-c", str(cores[1]), *words, "--serve", kind, "--scheme", scheme, "--name", name],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        done = subprocess.run(["taskset", "-c", str(cores[0]), *words, "--fetch", kind, "--name", name, "--address", address,
                               "--count", str(count)], check=True, capture_output=True, text=True, timeout=600)
        return float(done.stdout)
    finally:
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()


def seconds_of_gloo(build, count, cores):
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(["taskset", "-c", str(core), str(build / "bin/gloo_tcp_bench"), str(rank), folder, str(LARGE), str(count)],
                                  stdout=subprocess.PIPE, text=True) for rank, core in ((0, cores[1]), (1, cores[0]))]
        try:
            return float(ranks[1].communicate(timeout=120)[0])
        finally:
            for each in ranks:
                each.kill()
                each.wait()
                each.stdout.close()


def seconds_of_tensorpipe(build, bench, count):
    port = nic.free_port()
    command, where = [str(build / "tests/interop/tensorpipe_exchange")], f"127.0.0.1:{port}"
    return float(bench.pair([*command, "serve", "uv", where], [*command, "fetch", "uv", where, str(LARGE), str(count)], port,
                            cores=(bench.cores[1], bench.cores[0])))


def fetch_and_print(build, kind, name, address, count):
    fetch = fetcher(build, kind, name, address)
    for _ in range(max(count // 10, 2)):
        fetch()
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        fetch()
        took.append(time.perf_counter() - begun)
    print(statistics.median(took))


# --- rows

def there(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def rows(build, cores, scale):
    """(what, unit, goal, ours, peer's name, peer; as seconds or GB/s, whichever the unit is)"""
    def of(kind, name, count, scheme="rdma"):
        return lambda _: seconds_each(build, kind, scheme, name, max(int(count * scale), 3), cores)

    def rate(of_what, size):
        return lambda bench: size / of_what(bench) / 1e9

    def write_bw(options, size=MIB):
        words = ["ib_write_bw", "-s", str(size), "-n", str(max(int(2000 * scale * MIB / size), 10)), "-F"]
        return lambda bench: bench.perftest(options, words, nic.BANDWIDTH_MIB) * 1.048576 / 1000

    private, shared = rate(of("tensor", "large", 60), LARGE), rate(of("tensor", "large.shared", 60), LARGE)
    yield "64 MiB into out=, private memory", "GB/s", ">= 0.9", private, "ib_write_bw", write_bw([])
    yield "64 MiB into out=, weir_tensor.empty()", "GB/s", ">= 0.85", shared, "ib_write_bw --share-memory", write_bw(nic.SHARED)
    # Few enough bytes stay in a cache if they are the same each time.
    yield "64 MiB into out=, private memory", "GB/s", "", private, "ib_write_bw of 64 MiB", write_bw([], LARGE)
    yield "64 MiB into out=, weir_tensor.empty()", "GB/s", "", shared, "ib_write_bw of 64 MiB, --share-memory", write_bw(nic.SHARED, LARGE)
    small = of("tensor", "small", 20000)
    if there("zmq"):
        yield "64 MiB", "GB/s", ">= 4", private, "ZeroMQ, copy=False", rate(of("zmq", "large", 30), LARGE)
        yield "64 MiB over TCP", "GB/s", "", rate(of("tensor", "large", 30, "tcp"), LARGE), "ZeroMQ, copy=False", rate(
            of("zmq", "large", 30), LARGE)
        yield "4 KiB", "us", "ours <= 20", lambda bench: small(bench) * 1e6, "ZeroMQ, REQ and REP", lambda bench: of(
            "zmq", "small", 5000)(bench) * 1e6
    yield f"{MANY} x 4 KiB, fetch_many", "us", "", lambda bench: of("tensor", "many", 1000)(bench) * 1e6, "one after the other", (
        lambda bench: of("tensor", "many.each", 300)(bench) * 1e6)
    if there("grpc"):
        yield "64 MiB", "GB/s", ">= 8", private, "gRPC, bytes", rate(of("grpc", "large", 10), LARGE)
    if (build / "bin/gloo_tcp_bench").exists():
        yield "64 MiB", "GB/s", ">= 3", private, "Gloo, TCP", rate(lambda _: seconds_of_gloo(build, max(int(30 * scale), 3), cores), LARGE)
    if (build / "tests/interop/tensorpipe_exchange").exists():
        yield "64 MiB", "GB/s", ">= 3", private, "TensorPipe, uv", rate(
            lambda bench: seconds_of_tensorpipe(build, bench, max(int(30 * scale), 3)), LARGE)
    for what, name, count, goal in (("tree of 10,000 x 4 KiB", "tree", 20, "<= 1.5"),
                                    ("tree of 10,000, no two neighbours of one shape", "tree.unlike", 20, ""),
                                    ("tree of 100,000 x 416 B", "tree.views", 10, "<= 3")):
        yield what, "ms", goal, lambda bench, name=name, count=count: of("tensor", name, count)(bench) * 1e3, "one array of 40 MiB", (
            lambda bench: of("tensor", "whole", 40)(bench) * 1e3)


def run_rest(build, scale, kills, fetches):
    """Killed hubs and torn fetches, as counted by the tests of the same names, and NCCL's plugin."""
    print("\n| what | seen |\n|---|---|")
    for what, program, variable, count in (("hub killed", "tensor_killed_hub_test", "WEIR_TEST_KILLS", kills),
                                           ("fetches under a writer at full speed", "tensor_torn_test", "WEIR_TEST_FETCHES", fetches)):
        print(f"{what} ...", file=sys.stderr, flush=True)
        done = subprocess.run([str(build / "bin" / program)], capture_output=True, text=True, env={**os.environ, variable: str(count)})
        said = ""
        for line in done.stdout.splitlines():
            if found := re.match(r"\[ +(OK|FAILED) +\] .*/(\w+) \(\d+ ms\)", line):
                print(f"| {what} {count} times, {found[2]} | {'' if found[1] == 'OK' else 'FAILED: '}{said} |", flush=True)
            said = line
    print(flush=True)
    return subprocess.run([sys.executable, "-B", str(nic.ROOT / "bench/nccl.py"), "--build", str(build), "--repeat", "3", "--scale", str(scale / 2)]).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=nic.ROOT / "build/release")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--scale", type=float, default=1, help="of the number of fetches (1)")
    parser.add_argument("--cores", default="0,1", help="reader's and hub's core (0,1)")
    parser.add_argument("--only", default="", help="rows whose name has this word")
    parser.add_argument("--all", action="store_true", help="killed hubs, torn fetches and NCCL's plugin, too")
    parser.add_argument("--kills", type=int, default=300, help="with --all: of hubs, by RDMA and by TCP each (300)")
    parser.add_argument("--fetches", type=int, default=100_000, help="with --all: under a writer, in each of three ways (100000)")
    for name in ("--serve", "--fetch", "--name", "--address", "--scheme"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if arguments.serve:
        return SERVERS[arguments.serve](build, arguments.scheme, arguments.name)
    if arguments.fetch:
        return fetch_and_print(build, arguments.fetch, arguments.name, arguments.address, arguments.count)
    before = os.getloadavg()[0]
    cores = tuple(int(core) for core in arguments.cores.split(","))
    print("| what | weir_tensor | peer | ratio | goal |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEIR_RUNTIME_DIR"] = folder
        bench = nic.Bench(build, cores, folder)
        for what, unit, goal, ours, peer_name, peer in rows(build, cores, arguments.scale):
            if arguments.only not in what + peer_name:
                continue
            print(f"{what} ...", file=sys.stderr, flush=True)
            of_us, of_peer = [], []
            for _ in range(arguments.repeat):
                of_us.append(ours(bench))
                of_peer.append(peer(bench))
            best = max if unit == "GB/s" else min

            def shown(values, best=best):
                return f"{nic.figure(best(values))} ({nic.figure(statistics.median(values))})"

            print(f"| {what} | {shown(of_us)} {unit} | {shown(of_peer)} {unit}, {peer_name} | {best(of_us) / best(of_peer):.2f} | {goal} |",
                  flush=True)
    if arguments.all:
        run_rest(build, arguments.scale, arguments.kills, arguments.fetches)
    print(f"\nLoad before and after: {before:.1f} and {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
