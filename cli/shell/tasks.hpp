// weir-cli's tasks other than running commands, each in a file of that name. They return the exit status.
#pragma once

#include "cli/client/session.hpp"
#include "cli/shell/options.hpp"

namespace weir::shell {

// --pipe: sends standard input, which must be Redis protocol, unchanged to the server, and counts replies.
int pipe_standard_input(client::Session&, const Options&);

// --scan: prints keys, one per line.
int scan_keys(client::Session&, const Options&, Output);

// --bigkeys: the biggest key of each type.
int find_big_keys(client::Session&, const Options&);

// --memkeys: for each type, the key that uses most of the server's memory.
int find_memory_keys(client::Session&, const Options&);

// --hotkeys: the most frequently used keys.
int find_hot_keys(client::Session&, const Options&);

// --latency, --latency-history: round trips of PING, in milliseconds.
int measure_latency(client::Session&, const Options&, Output);

// --latency-dist: a line of 256 colors per interval, one character for each class of round trips.
int show_latency_spectrum(client::Session&, const Options&);

// --intrinsic-latency: how long the system keeps this process, which never waits, from running.
int measure_own_latency(const Options&);

// --lru-test: writes and reads keys as a cache's users do, and prints the share of hits each second.
int test_cache(client::Session&, const Options&);

// --rdb, --functions-rdb: writes the server's snapshot to a file.
int save_snapshot(client::Session&, const Options&);

// --replica: prints the requests that the server sends its replicas, as CSV.
int follow_server(client::Session&, const Options&);

// --eval with --ldb: the server's debugger of scripts.
int debug_script(client::Session&, const Options&, Output);

// --cluster: commands for all nodes.
int manage_cluster(const Options&);

// EVAL with the text of --eval's file, its keys and arguments.
client::Result<client::Arguments> eval_request(const Options&);

// --stat: one line of the server's figures per interval.
int show_statistics(client::Session&, const Options&);

// Prints the error on standard error; returns 1.
int failed(const client::Error&);

}  // namespace weir::shell
