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

// --latency: round trips of PING, in milliseconds.
int measure_latency(client::Session&, const Options&, Output);

// --stat: one line of the server's figures per interval.
int show_statistics(client::Session&, const Options&);

// Prints the error on standard error; returns 1.
int failed(const client::Error&);

}  // namespace weir::shell
