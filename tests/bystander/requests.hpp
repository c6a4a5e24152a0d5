// The bytes of requests, valid and invalid, in either protocol.
#pragma once

#include <random>
#include <string>

#include "tests/bystander/line.hpp"

namespace weir::bystander {

// Authenticates with the password.
std::string credentials(Protocol protocol);
// A request of about that many bytes, whose reply is as large if the client has authenticated.
std::string echo_request(Protocol protocol, std::uint64_t number, std::size_t bytes);
// That many tiny parts: names that do not exist, or texts to be counted.
std::string request_of_parts(Protocol protocol, std::uint64_t number, std::uint32_t parts);
// Claims far more than it sends: a count, a length, or both.
std::string huge_claim(Protocol protocol, std::mt19937_64& random);
// An echo with some of its bytes changed, removed or doubled.
std::string broken_request(Protocol protocol, std::mt19937_64& random);
// The first bytes of a TLS client.
std::string client_hello();

}  // namespace weir::bystander
