// One line of text about a client, as CLIENT LIST shows it.
#pragma once

#include <string>

namespace weir::kv {

class Client;
class Server;

std::string describe_client(const Server& server, const Client& client);

}  // namespace weir::kv
