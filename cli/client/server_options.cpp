#include "cli/client/server_options.hpp"

#include <charconv>
#include <limits>
#include <utility>

#include "spelling/did_you_mean.hpp"

namespace weir::client {
namespace {

Result<bool> take_uri(ArgumentReader& arguments, ServerOptions& options) {
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  auto uri = parse_uri(*text, options.endpoint());
  if (!uri) return std::unexpected(std::move(uri.error()));
  options.host = uri->endpoint.host;
  options.port = uri->endpoint.port;
  options.socket = uri->endpoint.path;
  options.tls = is_tls(uri->endpoint.transport);
  options.rdma = is_rdma(uri->endpoint.transport);
  if (!uri->user.empty()) options.login.user = uri->user;
  if (!uri->password.empty()) {
    options.login.password = uri->password;
    options.password_on_command_line = true;
  }
  if (uri->database) options.login.database = uri->database;
  return true;
}

Result<bool> take_tls_option(ArgumentReader& arguments, ServerOptions& options) {
  auto& tls = options.tls_settings;
  const std::pair<std::string_view, std::string*> with_value[] = {
      {"--sni", &tls.server_name},
      {"--cacert", &tls.files.authorities},
      {"--cacertdir", &tls.files.authorities_directory},
      {"--cert", &tls.files.certificate},
      {"--key", &tls.files.key},
      {"--tls-ciphers", &tls.files.ciphers},
      {"--tls-ciphersuites", &tls.files.ciphersuites}};
  for (const auto& [name, target] : with_value)
    if (arguments.is(name)) return text_into(arguments, *target);
  if (arguments.is("--insecure")) {
    tls.files.peer = transport::PeerCertificate::ignored;
    arguments.skip();
    return true;
  }
  return false;
}

}  // namespace

Result<std::string> ArgumentReader::value() {
  const auto& option = current();
  if (next_ + 1 >= arguments_.size())
    return fail(ErrorKind::usage,
                "Unrecognized option or bad number of args for: '" + option + "', which wants a value");
  next_ += 2;
  return arguments_[next_ - 1];
}

Result<long long> ArgumentReader::number(long long least, long long most) {
  const auto option = current();
  auto text = value();
  if (!text) return std::unexpected(std::move(text.error()));
  long long number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size() || number < least || number > most)
    return fail(ErrorKind::usage, "option " + option + " wants a number from " + std::to_string(least) +
                                      " to " + std::to_string(most) + ", not '" + *text + "'");
  return number;
}

Result<double> ArgumentReader::seconds(double least, double limit) {
  const auto option = current();
  auto text = value();
  if (!text) return std::unexpected(std::move(text.error()));
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size() || !(number >= least && number < limit))
    return fail(ErrorKind::usage, "option " + option + " wants seconds, not '" + *text + "'");
  return number;
}

Result<bool> text_into(ArgumentReader& arguments, std::string& target) {
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  target = std::move(*text);
  return true;
}

bool take_switch(ArgumentReader& arguments, std::span<const std::pair<std::string_view, bool*>> switches) {
  for (const auto& [name, target] : switches) {
    if (!arguments.is(name)) continue;
    *target = true;
    arguments.skip();
    return true;
  }
  return false;
}

Error unknown_option(std::string_view word, std::string_view help) {
  return {ErrorKind::usage, "Unrecognized option or bad number of args for: '" + std::string(word) + "'" +
                                did_you_mean_option(word, help)};
}

std::string usage_complaint(std::string_view program, const Error& error) {
  const std::string name(program);
  return name + ": " + error.what + "; see " + name + " --help\n";
}

Endpoint ServerOptions::endpoint() const {
  Endpoint endpoint;
  endpoint.transport = !socket.empty() ? Transport::unix_socket
                       : tls && rdma   ? Transport::rdma_tls
                       : tls           ? Transport::tls
                       : rdma          ? Transport::rdma
                                       : Transport::tcp;
  endpoint.host = host;
  endpoint.port = port;
  endpoint.path = socket;
  endpoint.tls = tls_settings;
  endpoint.rdma = rdma_settings;
  return endpoint;
}

void ServerOptions::take_environment(const Environment& environment) {
  if (environment.password && !password_on_command_line) login.password = environment.password;
  if (environment.rdma_provider && rdma_settings.provider.empty())
    rdma_settings.provider = environment.rdma_provider;
  if (environment.library_path) rdma_settings.library_path = environment.library_path;
}

Result<void> check_server_options(const ServerOptions& options) {
  if (options.socket.empty() || (!options.rdma && !options.tls)) return {};
  return fail(
      ErrorKind::usage,
      options.rdma
          ? "--rdma and a unix socket (-s, unix://) contradict each other: RDMA wants a host and a port"
          : "--tls and a unix socket (-s, unix://) contradict each other: a unix socket goes without");
}

Result<bool> take_provider(ArgumentReader& arguments, std::string& target) {
  auto taken = text_into(arguments, target);
  if (taken && target != "auto" && target != "weir" && target != "system")
    return fail(ErrorKind::usage, "option --rdma-provider wants auto, weir or system, not '" + target + "'");
  return taken;
}

Result<bool> take_server_option(ArgumentReader& arguments, ServerOptions& options) {
  if (arguments.is("-h")) return text_into(arguments, options.host);
  if (arguments.is("-s")) return text_into(arguments, options.socket);
  if (arguments.is("--rdma-provider")) return take_provider(arguments, options.rdma_settings.provider);
  if (arguments.is("--rdma-rx-size"))
    return number_into(arguments, 64 << 10, 16 << 20, options.rdma_settings.rx_bytes);
  if (arguments.is("--user")) return text_into(arguments, options.login.user);
  if (arguments.is("-u")) return take_uri(arguments, options);
  if (arguments.is("-p"))
    return number_into(arguments, 1, std::numeric_limits<std::uint16_t>::max(), options.port);
  if (arguments.is("-a") || arguments.is("--pass")) {
    options.password_on_command_line = true;
    return text_into(arguments, options.login.password);
  }
  if (arguments.is("--tls") || arguments.is("--rdma") || arguments.is("-2") || arguments.is("-3")) {
    if (arguments.is("--tls")) options.tls = true;
    if (arguments.is("--rdma")) options.rdma = true;
    if (arguments.is("-2")) options.login.resp = 2;
    if (arguments.is("-3")) options.login.resp = 3;
    arguments.skip();
    return true;
  }
  return take_tls_option(arguments, options);
}

std::string_view server_options_help() {
  return R"(Server:
  -h <host>            host name or address (default 127.0.0.1)
  -p <port>            port (default 6379)
  -s <socket>          unix socket, instead of host and port
  -u <uri>             redis://[user:password@]host[:port][/db]; also rediss:// (TLS), rdma://,
                       rdma+tls:// (TLS over RDMA), unix://path
  -a, --pass <word>    password; WEIRCLI_AUTH or REDISCLI_AUTH in the environment is safer
  --user <name>        user name, with -a
  -2, -3               speak RESP2 or RESP3
  --rdma               connect over RDMA; with --tls, TLS over RDMA
  --rdma-provider <which>
                       weir (the software NIC), system (RDMA hardware), auto (hardware if there is any); also
                       WEIR_RDMA_PROVIDER in the environment (default auto)
  --rdma-rx-size <bytes>
                       largest receive buffer of a connection, 65536 to 16777216 (default 1048576)
  --tls                connect with TLS
  --cacert <file>      certificate authority to trust (default: the system's)
  --cacertdir <dir>    directory of certificate authorities
  --cert <file>        own certificate
  --key <file>         its private key
  --sni <name>         server name to ask for and to check
  --insecure           do not check the server's certificate
  --tls-ciphers <list>, --tls-ciphersuites <list>
                       in OpenSSL's notation, for TLS 1.2 and TLS 1.3
)";
}

}  // namespace weir::client
