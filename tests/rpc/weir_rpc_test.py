#!/usr/bin/env python3
"""`weir rpc` against a running server (examples/rpc/shop.cpp), over TCP, a unix socket and RDMA; and curl, by HTTP.

usage: weir_rpc_test.py WEIR RPC_SHOP RPC_STREAMING
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

WEIR, SHOP, STREAMING = sys.argv[1:4]

# words after the address, exit status, standard output, part of standard error
CALLS = [
    (["shop.add", "[2, 3]"], 0, "5\n", ""),
    (["shop.brew", '"tea"', "--timeout", "20"], 0, None, ""),
    (["shop.Stock.find", '"bolt"'], 0, '{\n  "name": "bolt",\n  "count": 12\n}\n', ""),
    (["shop.Stock.find", '"screw"'], 0, "null\n", ""),
    (["shop.Stock.take", '{"count": 2, "name": "nut"}'], 0, "5\n", ""),
    (["shop.Stock.take", '[["nut", 2]]'], 0, "3\n", ""),
    (["shop.Stock.take", '{"name": "nut", "count": 9}'], 1, "", "failed: there are not 9 of nut"),
    (["shop.add", '[2, "three"]'], 1, "", "bad_arguments: element 1: expected an integer, found text"),
    (["shop.add", "[2"], 2, "", "is no JSON"),
    (["shop.add", "2", "3"], 2, "", "call takes the arguments as one word, a JSON array: '[2, 3]'"),
    (["shop.add", "bolt", "-1"], 2, "", """a JSON array: '["bolt", -1]'"""),
    (["shop.Stock.take", '{"name": "nut", "conut": 1}'], 2, "", "Item has no field 'conut'; it has name, count"),
    (["shop.add", "@/"], 2, "", "cannot read '/': Is a directory"),
    (["shop.add", "@/dev/null"], 2, "", "'/dev/null' is empty"),
    (["shop.sell"], 1, "", "unknown_method: the server has no function 'shop.sell'"),
    (["shop.ad", "[2, 3]"], 1, "", "; did you mean 'shop.add'?"),
    (["shop.brew", '"tea"', "--timeout", "0.001"], 1, "", "deadline_exceeded"),
    (["shop.add", "--timeout", "soon"], 2, "", "--timeout takes seconds"),
    (["shop.add", "--timeout", "nan"], 2, "", "--timeout takes seconds"),
    (["shop.add", "--timeout", "2000000"], 2, "", "1000000 at most"),
    (["shop.add", "[2, 3]", "--compress", "zstd", "--token", "nobody asks"], 0, "5\n", ""),
    (["shop.add", "--compress", "gzip"], 2, "", "--compress takes lz4 or zstd"),
    (["shop.add", "--token-file", "/nowhere/at/all"], 2, "", "cannot read a token from '/nowhere/at/all'"),
    (["shop.add", "[2, 3]", "--attachment", "/"], 1, "", "cannot read '/': Is a directory"),
    (["shop.add", "--token", "a", "--token-file", "b"], 2, "", "give one of them"),
]

# words after the address, standard input, exit status, standard output, part of standard error
STREAMS = [
    (["demo.ticks", "3"], "", 0,
     '{"number":0,"square":0}\n{"number":1,"square":1}\n{"number":2,"square":4}\n', ""),
    (["demo.total"], "1\n2\n\n3\n", 0, "6\n", ""),
    (["demo.total"], "", 0, "0\n", ""),
    (["demo.total"], "1\n2", 0, "3\n", ""),
    (["demo.upper"], '"a"\n"b"\n', 0, '"A"\n"B"\n', ""),
    (["demo.total"], "one\n", 2, "", "'one' is no JSON"),
    (["demo.total", "-"], "[]", 2, "", "the function reads a stream from standard input"),
    (["demo.ticks", "-"], "1\n", 0, '{"number":0,"square":0}\n', ""),
    (["demo.ticks", "@-"], "[1]", 0, '{"number":0,"square":0}\n', ""),
    (["demo.ticks", "@/dev/stdin"], "[1]", 0, '{"number":0,"square":0}\n', ""),
    (["demo.ticks", "-"], "", 2, "", "standard input is empty"),
    (["demo.total"], '"one"\n', 1, "", "bad_arguments: an item is not of the stream's type"),
    (["demo.ticks", '"many"'], "", 1, "", "bad_arguments"),
]


def weir(*words, stdin=""):
    return subprocess.run([WEIR, "rpc", *words], input=stdin, capture_output=True, text=True, timeout=60)


def check(ran, status, out, err, what):
    assert ran.returncode == status, f"{what}: status {ran.returncode}, not {status}: {ran.stdout}{ran.stderr}"
    assert out is None or ran.stdout == out, f"{what}: printed {ran.stdout!r}, not {out!r}"
    assert err in ran.stderr, f"{what}: said {ran.stderr!r}, not {err!r}"


def with_streams(where):
    server = subprocess.Popen([STREAMING, "serve", where], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[-1]
        for words, stdin, status, out, err in STREAMS:
            check(weir("call", address, *words, stdin=stdin), status, out, err, f"{where}: {words} {stdin!r}")
        check(weir("stats", address), 1, "", "counts nothing", f"{where}: stats of a server that keeps none")
    finally:
        server.kill()
        server.wait()


def check_stats(address):
    """shop.add was called three times by CALLS, once with a wrong argument; calls with invalid JSON are never sent."""
    counted = {row["name"]: row for row in json.loads(weir("stats", address, "--json").stdout)}
    assert (counted["shop.add"]["calls"], counted["shop.add"]["failures"]) == (3, 1), counted["shop.add"]
    table = weir("stats", address).stdout.splitlines()
    assert table[0].split()[:3] == ["FUNCTION", "CALLS", "FAILED"], table
    assert [row.split()[:3] for row in table if row.startswith("shop.add ")] == [["shop.add", "3", "1"]], table
    text = weir("stats", address, "--prometheus").stdout
    assert 'weir_rpc_failures_total{method="shop.add"} 1\n' in text, text


def with_server(where):
    server = subprocess.Popen([SHOP, "serve", where], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        assert line.startswith("serving at "), f"{where}: {line!r}"
        address = line.split()[-1]
        check(weir("list", address), 0,
              "shop.Stock.find(str) -> ?Item{name: str, count: u32}\n"
              "shop.Stock.take(Item{name: str, count: u32}) -> u32\n"
              "shop.add(i32, i32) -> i32\n"
              "shop.brew(str) -> str\n"
              "weir.methods() -> [MethodInfo{name: str, schema: str, codec: str}]\n"
              "weir.stats() -> [MethodReport{name: str, calls: u64, failures: u64, in_flight: u32, bytes_in: u64, "
              "bytes_out: u64, total_ns: u64, latency: [u64], packed_in: CompressionCounts{bodies: u64, bytes_before: u64, "
              "bytes_after: u64}, packed_out: CompressionCounts{bodies: u64, bytes_before: u64, bytes_after: u64}, "
              "latency_fine: [u64]}]\n",
              "", f"{where}: list")
        listed = json.loads(weir("list", "--json", address).stdout)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            old = [dict(row, schema="(i32) -> i32") if row["name"] == "shop.add" else row for row in listed]
            json.dump(old, file)
            file.flush()
            check(weir("diff", file.name, address), 1,
                  "shop.add: breaking: the caller sends 1 argument, the server wants 2\n", "", f"{where}: diff")
            check(weir("diff", address, address), 0, "", "", f"{where}: diff of one")
        assert {"name": "shop.add", "schema": "(i32, i32) -> i32", "codec": "msgpack"} in listed, f"{where}: {listed}"
        check(weir("list", "--names", address), 0,
              "shop.Stock.find\nshop.Stock.take\nshop.add\nshop.brew\nweir.methods\nweir.stats\n", "", f"{where}: names")
        if "://127.0.0.1" in where:
            named = address.replace("127.0.0.1", "localhost")
            check(weir("call", named, "shop.Stock.find", '"screw"'), 0, "null\n", "", f"{where}: by name")
        for words, status, out, err in CALLS:
            check(weir("call", address, *words), status, out, err, f"{where}: {words}")
        check_stats(address)
        server.terminate()
        assert server.wait(timeout=30) == 0, f"{where}: the server ended with {server.returncode}"
    finally:
        server.kill()
        server.wait()
    check(weir("list", address), 1, "", "unreachable", f"{where}: nobody there")
    caller = subprocess.run([SHOP, "call", address], capture_output=True, text=True, timeout=60)
    check(caller, 1, "", "cannot connect", f"{where}: the example's caller")


def curl(address, path, *options):
    """Status and body."""
    where = [f"http://{address.removeprefix('tcp://')}{path}"]
    if address.startswith("unix://"):
        where = ["--unix-socket", address.removeprefix("unix://"), f"http://localhost{path}"]
    ran = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", *options, *where], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, f"{address}{path}: curl: {ran.stderr}"
    body, status = ran.stdout.rsplit("\n", 1)
    return int(status), body


def by_http(address):
    """The rows of CALLS that a request can express: what `weir rpc` prints is the body, what it complains of the error."""
    for words, status, out, err in CALLS:
        if len(words) > 2 or words[-1].startswith("@") or "did you mean" in err:
            continue
        code, body = curl(address, "/" + words[0], "-d", words[1] if len(words) > 1 else "")
        if status == 0:
            assert (code, json.loads(body)) == (200, json.loads(out)), f"{address}: {words}: {code} {body}"
        else:
            reply = json.loads(body)
            said = f"{reply['error']}: {reply['message']}"
            assert code >= 400 and err in said, f"{address}: {words}: {code} {said}"


def with_http(where):
    server = subprocess.Popen([SHOP, "serve", where], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[-1]
        by_http(address)
        assert curl(address, "/health") == (200, '{"status":"serving"}\n')
        assert json.loads(curl(address, "/")[1]) == json.loads(weir("list", "--json", address).stdout)
        counted = {row["name"]: row["calls"] for row in json.loads(curl(address, "/calls")[1])}
        assert counted["shop.add"] == 2, counted  # JSON that is none, or not of the types, calls nothing
        status, text = curl(address, "/metrics")
        assert status == 200 and 'weir_rpc_failures_total{method="shop.add"} 1\n' in text, text
        status, body = curl(address, "/shop.brew", "-d", '"tea"', "-H", "weir-timeout: 0.001")
        assert (status, json.loads(body)["error"]) == (504, "deadline_exceeded"), body
        assert curl(address, "/shop.add")[0] == 405
    finally:
        server.kill()
        server.wait()


# what a server of another protocol sends to a client, part of standard error
STRANGERS = [
    (b"SSH-2.0-Some_1.0\r\n", "protocol: the peer does not speak Weir's RPC: it speaks SSH"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it is an HTTP server"),
    (b"", "said nothing for 0.2 s: it is no server of Weir's rpc, or one that hangs"),
    (None, "before it said anything: it may be no server of Weir's rpc, or want TLS (tls://)"),
]


def meet_a_stranger(greeting, err):
    """Sends that much and then waits forever, as such servers do; with None it reads something and closes, as TLS does."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        met = []

        def greet():
            met.append(stranger.accept()[0])
            if greeting is None:
                met[0].recv(4096)
                met[0].close()
            else:
                met[0].sendall(greeting)

        thread = threading.Thread(target=greet)
        thread.start()
        check(weir("list", "--timeout", "0.2", f"127.0.0.1:{stranger.getsockname()[1]}"), 1, "", err, repr(greeting))
        thread.join()
        met[0].close()


for said, understood in STRANGERS:
    meet_a_stranger(said, understood)
with tempfile.TemporaryDirectory() as folder:
    for transport in ("tcp://127.0.0.1:0", f"unix://{os.path.join(folder, 'shop.sock')}", "rdma://127.0.0.1:0"):
        with_server(transport)
        with_streams(transport.replace("shop.sock", "streams.sock"))
        if not transport.startswith("rdma"):
            with_http(transport.replace("shop.sock", "http.sock"))
        print(transport, "ok")
check(weir(), 2, "", "missing", "nothing")
check(weir("list"), 2, "", "list takes an address", "no address")
check(weir("list", "--prometheus", "127.0.0.1:1"), 2, "", "--prometheus is for stats", "a format of stats")
check(weir("stats", "--names", "127.0.0.1:1"), 2, "", "--names is for list", "an option of list")
check(weir("lists"), 2, "", "'lists' is none of list, call, stats and diff", "no such action")
check(weir("diff", "127.0.0.1:1"), 2, "", "diff takes OLD and NEW", "one of two")
check(weir("diff", "/dev/null", "no such file"), 2, "", "is empty", "an empty file")
check(weir("list", "ftp://x:1"), 2, "", "unknown transport 'ftp'", "no such transport")
print("ok")
