// The options that name a server and how to reach it, spelled as in redis-cli and redis-benchmark. Both
// of our programs share them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cli/client/endpoint.hpp"
#include "cli/client/session.hpp"

namespace weir::client {

// Walks a command line: options with their values, until the first word that is no option.
class ArgumentReader {
 public:
  explicit ArgumentReader(std::span<const std::string> arguments) : arguments_(arguments) {}

  bool at_end() const { return next_ >= arguments_.size(); }
  const std::string& current() const { return arguments_[next_]; }
  bool is(std::string_view option) const { return !at_end() && current() == option; }
  void skip() { ++next_; }

  // The value of the current option; moves past both.
  Result<std::string> value();
  Result<long long> number(long long least, long long most);
  // At least `least` and below `limit`; accepts fractions.
  Result<double> seconds(double least, double limit);

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

  // Defaults from the environment, for main(). A variable may be null.
  struct Environment {
    const char* password;
    const char* rdma_provider;
    const char* library_path;
  };
  void take_environment(const Environment&);
};

// Rejects impossible combinations: RDMA or TLS over a unix socket.
Result<void> check_server_options(const ServerOptions&);

// Takes the current option if it is one of these; otherwise false.
Result<bool> take_server_option(ArgumentReader&, ServerOptions&);

// For a program's own options: each takes the current option with its value, and returns true.
Result<bool> text_into(ArgumentReader&, std::string& target);
template <class Number>
Result<bool> number_into(ArgumentReader& arguments, long long least, long long most, Number& target) {
  const auto number = arguments.number(least, most);
  if (!number) return std::unexpected(number.error());
  target = static_cast<Number>(*number);
  return true;
}

// Options without a value, in a table of what each sets; false: it is none of them.
template <class Value, std::size_t count, class Target>
bool take_choice(ArgumentReader& arguments, const std::pair<std::string_view, Value> (&choices)[count],
                 Target& target) {
  for (const auto& [name, value] : choices) {
    if (!arguments.is(name)) continue;
    target = value;
    arguments.skip();
    return true;
  }
  return false;
}
bool take_switch(ArgumentReader&, std::span<const std::pair<std::string_view, bool*>> switches);

// In the words of redis-cli, with a suggestion.
Error unknown_option(std::string_view word, std::string_view help);

// The complaint about a command line, ready to print: names the program and where to read on.
std::string usage_complaint(std::string_view program, const Error&);

// Takes all options: each by the first of the program's `own` functions that knows it, or else as an option
// that names the server. The reader stops at the first word that is no option. `Options` must have a member
// `server`; `help` lists the options that a mistyped one is compared with.
template <class Options, class... Own>
Result<void> take_options(ArgumentReader& arguments, Options& options, std::string (*help)(), Own... own) {
  using Take = Result<bool> (*)(ArgumentReader&, Options&);
  constexpr auto of_the_server = [](ArgumentReader& reader, Options& into) {
    return take_server_option(reader, into.server);
  };
  const Take takers[] = {own..., of_the_server};
  while (!arguments.at_end() && arguments.current().starts_with('-')) {
    Result<bool> taken = false;
    for (const Take take : takers) {
      taken = take(arguments, options);
      if (!taken) return std::unexpected(std::move(taken.error()));
      if (*taken) break;
    }
    if (!*taken) return std::unexpected(unknown_option(arguments.current(), help()));
  }
  return check_server_options(options.server);
}

// The paragraph about these options for --help.
std::string_view server_options_help();

}  // namespace weir::client
