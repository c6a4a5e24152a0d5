// What weir-cli does besides running commands, each in a file named for it. They give the exit status.
#pragma once

#include "cli/client/session.hpp"
#include "cli/shell/options.hpp"

namespace weir::shell {

// --pipe: standard input, which is Redis protocol, goes to the server as it is; replies are counted.
int pipe_standard_input(client::Session&, const Options&);

// --scan: prints keys, a line each.
int scan_keys(client::Session&, const Options&, Output);

// --bigkeys: the biggest key of each type.
int find_big_keys(client::Session&, const Options&);

// --memkeys: the key of each type that takes most of the server's memory.
int find_memory_keys(client::Session&, const Options&);

// --hotkeys: the keys that are used most often.
int find_hot_keys(client::Session&, const Options&);

// --latency: round trips of PING, in milliseconds.
int measure_latency(client::Session&, const Options&, Output);

// --stat: a line of the server's figures each interval.
int show_statistics(client::Session&, const Options&);

// Says an error on standard error; 1.
int failed(const client::Error&);

}  // namespace weir::shell
