// A well-behaved client of either server: victims and bystanders use it, and an attacker stops or kills one
// in the middle of its work.
#pragma once

#include "tests/bystander/line.hpp"

namespace weir::bystander {

// The environment variable that names the file of the server's certificate authority.
inline constexpr char authority_variable[] = "WEIR_BYSTANDER_AUTHORITY";

// Operations throw std::runtime_error if the server refuses one or the connection has ended.
class HonestClient {
 public:
  virtual ~HonestClient() = default;
  virtual asio::awaitable<void> ping() = 0;
  virtual asio::awaitable<void> put(std::string key, std::string text) = 0;
  virtual asio::awaitable<std::string> get(std::string key) = 0;
};

// Connects and authenticates; throws if that fails.
asio::awaitable<std::unique_ptr<HonestClient>> meet(asio::io_context& io, Protocol protocol,
                                                    std::string address);

// Connects over TLS slowly, from an address of its own, authenticates and asks once; throws if that fails.
asio::awaitable<void> visit_slowly(asio::io_context& io, Protocol protocol, std::string address);

// Connects, and runs a command of weir-server that waits 50 ms for what does not come; throws if it is not
// answered, or before its time. `number` chooses the command.
asio::awaitable<void> wait_in_vain(asio::io_context& io, std::string address, std::size_t number);

// A text that repeats its key and writer throughout, so that any foreign byte shows.
std::string check_text(const std::string& key, std::uint64_t number, std::size_t bytes);

}  // namespace weir::bystander
