// The stream of killed_client_test, which the client's process opens and never ends.
#pragma once

#include <asio/awaitable.hpp>
#include <string>

#include "rpc/stream.hpp"

namespace chaos {

// Echoes what it reads.
asio::awaitable<void> endless(weir::rpc::Reader<std::string> in, weir::rpc::Writer<std::string> out);

}  // namespace chaos
