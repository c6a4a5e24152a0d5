// A stream from the shell: standard input as what the function reads, a line a value, and what it writes on
// standard output.
#pragma once

#include <string>

#include "rpc/client.hpp"

namespace weir::command {

std::string said(const rpc::Error& error);
// The exit status. `schema` is the function's.
asio::awaitable<int> run_stream(rpc::EncodedStream stream, std::string schema);

}  // namespace weir::command
