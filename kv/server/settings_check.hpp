// Finds errors in settings that are valid one by one: in files and folders that they name, and in
// combinations. It neither listens nor writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::kv {

class Server;

inline constexpr std::string_view nothing_to_listen_on =
    "nothing to listen on: give --port, --unixsocket, --tls-port, --rdma-port or --rdma-tls-port";

// Call on a server that has not done anything yet. Paths are relative to the working folder, as for the
// server. Each error is for a user to read.
std::vector<std::string> wrong_with_settings(Server& server);

}  // namespace weir::kv
