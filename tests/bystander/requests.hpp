// The bytes of requests, valid and invalid, in either protocol.
#pragma once

#include <random>
#include <string>

#include "tests/bystander/line.hpp"

namespace weir::bystander {

// Shows the password.
std::string credentials(Protocol protocol);
// Of about so many bytes, and with a reply of as many where the password was shown.
std::string echo_request(Protocol protocol, std::uint64_t number, std::size_t bytes);
// So many parts of next to no bytes each: names that do not exist, or texts to be counted.
std::string request_of_parts(Protocol protocol, std::uint64_t number, std::uint32_t parts);
// Claims far more than it brings: a count, a length, or both.
std::string huge_claim(Protocol protocol, std::mt19937_64& random);
// An echo with some of its bytes changed, cut or doubled.
std::string broken_request(Protocol protocol, std::mt19937_64& random);
// What a client of TLS says first.
std::string client_hello();

}  // namespace weir::bystander
