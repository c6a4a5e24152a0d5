"""perftest: a short form for every test run, and the whole matrix of verbs, transports and options, which is slow.

-n is small: these are tests that it works, tools/demo.sh and bench/ measure.
"""
from case import Case

EVERY_SIZE = [2 ** power for power in range(1, 24)]


def perftest(program, name, *options, sizes, iterations=200, **more):
    length = [] if "-D" in options else ["-n", str(iterations)]
    command = [f"ib_{program}", "-F", "-p", "{port}", *length, *options]
    ready = "rdma" if "-R" in options else "tcp"
    return Case(f"ib_{program}.{name}", "pair", command, [*command, "{host}"], ready=ready, sizes=sizes, **more)


def perftests():
    for verb in ("write", "read", "send"):
        for kind in ("lat", "bw"):
            program, small = f"{verb}_{kind}", 2 if kind == "lat" else 65536
            yield perftest(program, "default", sizes=[small], iterations=1000)
            yield perftest(program, "all_sizes", "-a", sizes=EVERY_SIZE, iterations=50, limit_s=120)
            for size in (1, 64, 4096, 1048576):
                yield perftest(program, f"size_{size}", "-s", str(size), sizes=[size])
            yield perftest(program, "rdma_cm", "-R", sizes=[small])
            yield perftest(program, "rdma_cm_all_sizes", "-R", "-a", sizes=EVERY_SIZE, iterations=20, limit_s=120, label="slow")
            if verb != "write":
                yield perftest(program, "events", "-e", sizes=[small])
            if verb != "read":
                yield perftest(program, "no_inline", "-I", "0", "-s", "64", sizes=[64])
                yield perftest(program, "inline", "-I", "128", "-s", "64", sizes=[64])
            if kind == "bw":
                yield perftest(program, "both_ways", "-b", sizes=[small])
                yield perftest(program, "both_ways_all_sizes", "-b", "-a", sizes=EVERY_SIZE, iterations=20, limit_s=120,
                               label="slow")
                yield perftest(program, "queue_pairs_16", "-q", "16", sizes=[small])
                yield perftest(program, "queue_pairs_16_both_ways", "-q", "16", "-b", sizes=[small])
    for verb, size in (("write", 2), ("read", 2), ("send", 2), ("atomic", 8)):
        yield perftest(f"{verb}_lat", "extended_reliable_connection", "-c", "XRC", sizes=[size])
        yield perftest(f"{verb}_bw", "extended_reliable_connection", "-c", "XRC", sizes=[8 if verb == "atomic" else 65536])
    for kind in ("lat", "bw"):
        for verb in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
            yield perftest(f"atomic_{kind}", verb.lower(), "-A", verb, sizes=[8])
        yield perftest(f"atomic_{kind}", "events", "-e", sizes=[8])
        yield perftest(f"atomic_{kind}", "rdma_cm", "-R", sizes=[8])
    yield perftest("atomic_bw", "both_ways_queue_pairs_16", "-b", "-q", "16", sizes=[8])
    yield perftest("send_bw", "events_queue_pairs_16", "-e", "-q", "16", sizes=[65536])
    yield perftest("send_bw", "rdma_cm_queue_pairs_16", "-R", "-q", "16", sizes=[65536])
    yield perftest("send_bw", "shared_receive_queue", "--use-srq", "-q", "4", sizes=[65536])
    yield perftest("write_bw", "unreliable_connection", "-c", "UC", sizes=[65536])
    yield perftest("send_lat", "unreliable_connection", "-c", "UC", sizes=[2])
    # Few enough for the receiver's socket buffer if it gets no processor: lost packets are not repeated.
    yield perftest("send_bw", "unreliable_connection", "-c", "UC", "-s", "1024", sizes=[1024], iterations=100)
    for verb in ("write", "read", "send"):
        yield perftest(f"{verb}_lat", "shareable_memory", sizes=[2], options=["--share-memory"])
        yield perftest(f"{verb}_bw", "shareable_memory_all_sizes", "-a", sizes=EVERY_SIZE, iterations=50, limit_s=120,
                       options=["--share-memory"])
    yield perftest("send_lat", "datagrams", "-c", "UD", sizes=[2])
    yield perftest("send_bw", "datagrams", "-c", "UD", "-s", "1024", sizes=[1024])


# ---- the matrix

TRANSPORTS = {"write": ("RC", "UC", "XRC"), "read": ("RC", "XRC"), "send": ("RC", "UC", "UD", "XRC"), "atomic": ("RC", "XRC")}
DATAGRAM_SIZES = [size for size in EVERY_SIZE if size <= 4096]
# Combinations for which perftest has no use, or which it refuses on every device.
OPTIONS = {
    "default": ([], lambda verb, kind, transport: True),
    "all_sizes": (["-a"], lambda verb, kind, transport: verb != "atomic"),
    "both_ways": (["-b"], lambda verb, kind, transport: kind == "bw"),
    "events": (["-e"], lambda verb, kind, transport: verb != "write"),
    "queue_pairs_16": (["-q", "16"], lambda verb, kind, transport: kind == "bw"),
    "shared_receive_queue": (["--use-srq"], lambda verb, kind, transport: verb == "send"),
    "rdma_cm": (["-R"], lambda verb, kind, transport: transport in ("RC", "UD")),
    "two_seconds": (["-D", "2"], lambda verb, kind, transport: True),
    "inline": (["-I", "64", "-s", "64"], lambda verb, kind, transport: verb in ("write", "send")),
    "five": (["-n", "5"], lambda verb, kind, transport: True),
}


def sizes_of(verb, kind, transport, option):
    if option == "all_sizes":
        return DATAGRAM_SIZES if transport == "UD" else EVERY_SIZE
    if option == "inline":
        return [64]
    if verb == "atomic":
        return [8]
    return [2] if kind == "lat" else [1024] if transport == "UD" else [65536]


def matrix():
    for verb, transports in TRANSPORTS.items():
        for kind in ("lat", "bw"):
            for transport in transports:
                for option, (words, applies) in OPTIONS.items():
                    if not applies(verb, kind, transport):
                        continue
                    sizes = sizes_of(verb, kind, transport, option)
                    size = ["-s", "1024"] if sizes == [1024] else []
                    iterations = 5 if option == "five" else 50 if option == "all_sizes" else 200
                    yield perftest(f"{verb}_{kind}", f"{transport.lower()}.{option}", "-c", transport,
                                   *(words if option != "five" else []), *size, sizes=sizes, iterations=iterations,
                                   limit_s=120, label="slow", options=["--mtu", "4096"] if sizes == DATAGRAM_SIZES else [])


PERFTESTS = [*perftests(), *matrix()]
