// A stream in the shell: the function reads the lines of standard input, one value each, and what it
// writes goes to standard output.
#pragma once

#include <string>

#include "rpc/client.hpp"

namespace weir::command {

std::string said(const rpc::Error& error);
// Returns the exit status. `schema` is the function's.
asio::awaitable<int> run_stream(rpc::EncodedStream stream, std::string schema);

}  // namespace weir::command
