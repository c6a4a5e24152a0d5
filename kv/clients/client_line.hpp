// One line of text about a client, as CLIENT LIST shows it.
#pragma once

#include <cstdint>
#include <string>

namespace weir::kv {

class Client;

// Its letters, such as "N".
std::string client_flags(const Client& client);
std::string describe_client(const Client& client, std::int64_t now_ms);

}  // namespace weir::kv
