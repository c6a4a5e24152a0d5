// What is wrong with settings that are right one by one: the files and folders that they name, and what makes
// sense only together. It listens nowhere, and writes nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::kv {

class Server;

inline constexpr std::string_view nothing_to_listen_on =
    "nothing to listen on: give --port, --unixsocket, --tls-port, --rdma-port or --rdma-tls-port";

// Of a server that has done nothing yet; paths are seen from the working folder, as it will see them. Each is
// fit to show a user.
std::vector<std::string> wrong_with_settings(Server& server);

}  // namespace weir::kv
