// A client in one line of text, as CLIENT LIST shows it.
#pragma once

#include <string>

namespace weir::kv {

class Client;
class Server;

std::string describe_client(const Server& server, const Client& client);

}  // namespace weir::kv
