// The options that name a server and say how to speak to it, spelled as redis-cli and redis-benchmark spell
// them. Both programs take the same ones.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cli/client/endpoint.hpp"
#include "cli/client/session.hpp"

namespace weir::client {

// Walks a command line: options first, each with its values, until something that is none.
class ArgumentReader {
 public:
  explicit ArgumentReader(std::span<const std::string> arguments) : arguments_(arguments) {}

  bool at_end() const { return next_ >= arguments_.size(); }
  const std::string& current() const { return arguments_[next_]; }
  bool is(std::string_view option) const { return !at_end() && current() == option; }
  void skip() { ++next_; }

  // The value that follows the current option; steps past both.
  Result<std::string> value();
  Result<long long> number(long long least, long long most);

  std::span<const std::string> rest() const { return arguments_.subspan(next_); }

 private:
  std::span<const std::string> arguments_;
  std::size_t next_ = 0;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  std::string socket;
  bool tls = false;
  bool rdma = false;
  TlsSettings tls_settings;
  RdmaSettings rdma_settings;
  Login login;
  bool password_on_command_line = false;

  Endpoint endpoint() const;

  // What the environment says where the command line says nothing; for main(). A variable may be null.
  struct Environment {
    const char* password;
    const char* rdma_provider;
    const char* library_path;
  };
  void take_environment(const Environment&);
};

// Takes the option the reader stands at, if it is one of these; false if not.
Result<bool> take_server_option(ArgumentReader&, ServerOptions&);

// The paragraph on these options for --help.
std::string_view server_options_help();

}  // namespace weir::client
