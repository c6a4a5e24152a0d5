"""Which sources may read the clock of the system, and why. For check-tree.py.

Others set that clock: NTP steps it, a machine that was suspended finds it hours ahead, and an administrator may turn it back.
A wait or a deadline that is counted by it then lasts hours or none at all, so durations are counted by the steady clock.
"""
import re

READERS = {  # source: what it does with the time of the day
    "cli/weir/network/sim.cpp": "telemetry bears dates",
    "cli/weir/telemetry/publisher.cpp": "gRPC takes no other deadline; it counts by its own clock from there",
    "cli/weir/telemetry/receiver.cpp": "likewise",
    "kv/main.cpp": "the server's clocks are made here; dates of log lines",
    "link/slot_directory.cpp": "compares with the date of a folder",
    "rpc/tracing.cpp": "spans bear dates",
    "twin/inside/clock_calls.cpp": "programs ask for it; it shows virtual time",
    "twin/inside/thread_calls.cpp": "programs give deadlines by it; it shows virtual time",
    "verbs/ibv/extended_cq.cpp": "programs ask for it (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)",
    "verbs/trace/tracer.cpp": "traces bear dates",
}
READING = re.compile(
    r"\b(?:system_clock|utc_clock|high_resolution_clock|CLOCK_REALTIME\w*|gettimeofday|timespec_get|ftime"
    r"|pthread_mutex_timedlock|pthread_rwlock_timed\w+lock|pthread_cond_timedwait|sem_timedwait|mq_timed\w+)\b"
    r"|(?<![\w.>])(?:std::|::)?time\((?:nullptr|NULL|0|&\w+)\)")

# What the server makes of it: ServerCommon::now_ms and now_us.
SERVER_READERS = {
    "kv/aof/replay.cpp": "commands see it",
    "kv/commands/info.cpp": "shows it; how soon keys expire",
    "kv/commands/server.cpp": "TIME",
    "kv/gateway/router_connections.cpp": "commands see it",
    "kv/migration/migration.cpp": "keys expire; commands see it",
    "kv/persistence/loading.cpp": "keys expire",
    "kv/persistence/snapshot.cpp": "files bear dates",
    "kv/persistence/snapshots.cpp": "LASTSAVE",
    "kv/replication/snapshot_load.cpp": "keys expire",
    "kv/scripts/script_turns.cpp": "it stands still while a script runs",
    "kv/clients/blocking.cpp": "keys expire",
    "kv/clients/monitors.cpp": "MONITOR shows it",
    "kv/clients/slow_work.cpp": "SLOWLOG and LATENCY show dates",
}
SERVER_READING = re.compile(r"\bserver_?(?:\.|->)(?:now_[mu]s|surroundings\.clock_us)\b")

RULES = [
    (READING, READERS, "the clock of the system, which others set: count durations by the steady clock, or say in tools/wall_clock.py why not"),
    (SERVER_READING, SERVER_READERS, "the time of the day: steady_ms is for what lasts; else say in tools/wall_clock.py what it is for"),
]
SOURCES = (".c", ".cpp", ".h", ".hpp")
NOT_OURS = ("tests/", "bench/", "examples/")


def complaints(root, names):
    for name in names:
        if not name.endswith(SOURCES) or name.startswith(NOT_OURS):
            continue
        lines = (root / name).read_text(encoding="utf-8", errors="replace").splitlines()
        for reading, readers, why in RULES:
            found = [(number, match.group(0)) for number, line in enumerate(lines, 1)
                     if (match := reading.search(line.split("//")[0]))]
            if name not in readers:
                yield from ((name, number, f"'{what}': {why}") for number, what in found)
            elif not found:
                yield name, 1, "does not read the time of the day: take it off the list in tools/wall_clock.py"
