// `weir rpc`: lists the functions of a server, and calls them.
#include <asio/co_spawn.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/weir/command.hpp"
#include "cli/weir/rpc/rpc_diff.hpp"
#include "cli/weir/rpc/rpc_stats.hpp"
#include "cli/weir/rpc/rpc_stream.hpp"
#include "cli/weir/whole_file.hpp"
#include "rdma/engine.hpp"
#include "rpc/address.hpp"
#include "rpc/client.hpp"
#include "rpc/json/json_body.hpp"
#include "rpc/server/reflection.hpp"
#include "screen/terminal.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {

using rpc::json::body_from_json;
using rpc::json::BodyOf;
using rpc::json::gives_stream;
using rpc::json::json_from_body;
using rpc::json::json_of_word;
using rpc::json::no_json_for;
using rpc::json::takes_stream;

namespace {

constexpr std::string_view help = R"(Usage: weir rpc list [OPTION...] ADDRESS
       weir rpc call [OPTION...] ADDRESS FUNCTION [JSON]
       weir rpc stats [OPTION...] ADDRESS
       weir rpc diff [OPTION...] OLD NEW

Lists the functions of a server made with Weir's rpc, with their types (list); calls one and prints the result as JSON
(call); or shows how often each was called and how long it took, if the server counts that (stats).
ADDRESS is tcp://HOST:PORT, unix:///PATH, tls://HOST:PORT, rdma://HOST:PORT or rdma+tls://HOST:PORT; HOST:PORT means
tcp. JSON is the array of the arguments; a single argument that is not an array may stand alone. @FILE reads it from a
file, - from standard input. An object stands for an aggregate, with its fields by name. Values that a stream returns
are printed one a line; those that it takes are read from standard input, one JSON value a line, to the end. Functions
with Protobuf messages, which list marks with "in protobuf", cannot be called from here.
diff says for each function that differs whether a caller built for OLD can call a server of NEW (compatible) or not
(breaking). OLD and NEW are addresses, or files with list's output, with --json or without.

  $ weir rpc list tcp://127.0.0.1:9000
  $ weir rpc call tcp://127.0.0.1:9000 shop.add '[2, 3]'
  $ weir rpc call tcp://127.0.0.1:9000 shop.Stock.take '{"name": "nut", "count": 2}'
  $ weir rpc diff released.json tcp://127.0.0.1:9000

  --timeout S           seconds to wait for the result (default 30; for a stream: forever), and before that until a
                        server of Weir's rpc answers at all (default 5; for a call: at least 5)
  --attachment FILE     send the file along with the arguments
  --attachment-out FILE write the result's attachment to this file
  --cacert FILE         certificate authority to trust (default: the system's)
  --cert FILE           own certificate
  --key FILE            its private key
  --server-name NAME    name that the server's certificate must have (default: HOST)
  --insecure            accept any certificate
  --token TOKEN         send this token to the server; others on this machine can see it while the command runs
  --token-file FILE     send the first line of the file instead
  --compress HOW        lz4 or zstd: compress arguments and results, if the server does, too
  --names               list: names only
  --json                list, stats and diff: print JSON
  --prometheus          stats: print Prometheus's text format
  --help                this text

For rdma:// addresses WEIR_RDMA_PROVIDER chooses the hardware or the software NIC (auto, weir or system).
Exit status: 0; 1 the server could not be reached, the call failed, or a file or standard output could not be read or
written; 2 the command line or the JSON is invalid.
Exit status of diff: 0; 1 a function is breaking; 2 OLD or NEW could not be read.
)";

struct Request {
  std::string action;
  bool names = false;
  StatsFormat stats = StatsFormat::table;
  std::string address, function, json, attachment, attachment_out;
  std::string old_methods;  // for diff, which compares those of `address`; either may be a file
  rpc::ConnectOptions connect;
  std::optional<double> timeout_s;
  std::string token, token_file, compress;
};

// Reads what the token and compression options say about the connection.
std::optional<std::string> complete(Request& request) {
  if (!request.token.empty() && !request.token_file.empty())
    return "--token and --token-file: give one of them";
  if (!request.token_file.empty()) {
    std::ifstream file(request.token_file);
    if (!std::getline(file, request.token)) return "cannot read a token from '" + request.token_file + "'";
  }
  if (!request.token.empty()) request.connect.token = [token = request.token] { return token; };
  if (request.compress.empty()) return std::nullopt;
  for (const rpc::Compression one : {rpc::Compression::lz4, rpc::Compression::zstd})
    if (request.compress == rpc::name_of(one)) request.connect.compression.with = one;
  if (request.connect.compression.with == rpc::Compression::none) return "--compress takes lz4 or zstd";
  return std::nullopt;
}

// The words after address and function as the array that the user meant, quoted for a shell.
std::string as_array(std::span<const std::string> words) {
  std::string array = "'[";
  for (const std::string& word : words.subspan(3))
    array += (array.size() > 2 ? ", " : "") + json_of_word(word);
  return array + "]'";
}

std::string as_address(const std::string& word) {
  return word.find("://") == std::string::npos ? "tcp://" + word : word;
}

constexpr std::string_view actions[] = {"list", "call", "stats", "diff"};

std::expected<Request, std::string> parse(std::span<const std::string> words) {
  Request request;
  std::vector<std::string> plain;
  rpc::TlsOptions& tls = request.connect.transport.tls;
  const std::pair<std::string_view, std::string*> files[] = {{"--attachment", &request.attachment},
                                                             {"--attachment-out", &request.attachment_out},
                                                             {"--cacert", &tls.authority_file},
                                                             {"--cert", &tls.certificate_file},
                                                             {"--key", &tls.key_file},
                                                             {"--server-name", &tls.server_name},
                                                             {"--token", &request.token},
                                                             {"--token-file", &request.token_file},
                                                             {"--compress", &request.compress}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto* file = std::ranges::find(files, word, [](const auto& row) { return std::string(row.first); });
    if (word == "--insecure") {
      tls.check_certificate = false;
    } else if (word == "--names") {
      request.names = true;
    } else if (word == "--json") {
      request.stats = StatsFormat::json;
    } else if (word == "--prometheus") {
      request.stats = StatsFormat::prometheus;
    } else if (file != std::end(files) && i + 1 < words.size()) {
      *file->second = words[++i];
    } else if (word == "--timeout" && i + 1 < words.size()) {
      const std::string& text = words[++i];
      const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), request.timeout_s.emplace());
      const bool fits = *request.timeout_s > 0 && *request.timeout_s <= 1e6;  // and it is not a NaN
      if (error != std::errc() || end != text.data() + text.size() || !fits)
        return std::unexpected("--timeout takes seconds above 0, and 1000000 at most");
    } else if (word.starts_with("--")) {
      return std::unexpected(option_complaint(word, help));
    } else {
      plain.push_back(word);
    }
  }
  if (plain.empty()) return std::unexpected("list, call, stats or diff, and an address, are missing");
  request.action = plain[0];
  if (request.action == "call") {
    if (plain.size() < 3) return std::unexpected("call takes an address, a function and JSON");
    if (plain.size() > 4)
      return std::unexpected("call takes the arguments as one word, a JSON array: " + as_array(plain));
  } else if (request.action == "diff") {
    if (plain.size() != 3) return std::unexpected("diff takes OLD and NEW, each an address or a file");
    request.old_methods = std::move(plain[1]);
    plain.erase(plain.begin() + 1);
  } else if (request.action != "list" && request.action != "stats") {
    return std::unexpected("'" + request.action + "' is none of list, call, stats and diff" +
                           did_you_mean(request.action, actions));
  } else if (plain.size() != 2) {
    return std::unexpected(request.action + " takes an address" + (plain.size() > 2 ? " only" : ""));
  }
  if (request.stats == StatsFormat::prometheus && request.action != "stats")
    return std::unexpected("--prometheus is for stats");
  if (request.names && request.action != "list") return std::unexpected("--names is for list");
  request.address = request.action == "diff" ? plain[1] : as_address(plain[1]);
  if (request.action != "diff")
    if (const auto address = rpc::parse_address(request.address); !address)
      return std::unexpected(address.error().what);
  if (plain.size() > 2) request.function = plain[2];
  if (plain.size() > 3) request.json = plain[3];
  if (auto wrong = complete(request)) return std::unexpected(std::move(*wrong));
  // A server that is silent for so long hangs, or speaks another protocol.
  constexpr double enough_s = 5;
  const double asked_s = request.timeout_s.value_or(enough_s);
  const double patience_s = request.action == "call" ? std::max(asked_s, enough_s) : asked_s;
  request.connect.hello_timeout = std::chrono::milliseconds(std::max(1ll, std::llround(patience_s * 1e3)));
  return request;
}

bool goes_over_rdma(const std::string& text) {
  const auto address = rpc::parse_address(text);
  return address && (address->scheme == rpc::Scheme::rdma || address->scheme == rpc::Scheme::rdma_tls);
}

// Opens the engine with the libraries that the environment names.
std::optional<std::string> open_engine(asio::io_context& io, Request& request) {
  if (!goes_over_rdma(request.address) && !goes_over_rdma(request.old_methods)) return std::nullopt;
  const auto variable = [](const char* name) {
    return std::string(std::getenv(name) != nullptr ? std::getenv(name) : "");
  };
  rdma::ProviderOptions options;
  const auto choice = rdma::parse_provider_choice(variable("WEIR_RDMA_PROVIDER"));
  if (!choice) return choice.error().what;
  options.choice = *choice;
  options.library_path = variable("LD_LIBRARY_PATH");
  const auto provider = rdma::load_provider(options);
  if (!provider) return provider.error().what;
  const auto engine = rdma::Engine::open(io, *provider);
  if (!engine) return engine.error().what;
  request.connect.transport.engine = *engine;
  return std::nullopt;
}

int print_list_as_json(const std::vector<rpc::MethodInfo>& methods) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const rpc::MethodInfo& method : methods)
    all.push_back({{"name", method.name}, {"schema", method.schema}, {"codec", method.codec}});
  std::printf("%s\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  return 0;
}

int print_list(const std::vector<rpc::MethodInfo>& methods, bool names) {
  for (const rpc::MethodInfo& method : methods)
    std::printf("%s%s%s\n", method.name.c_str(), names ? "" : method.schema.c_str(),
                names || method.codec == "msgpack" ? "" : (" in " + method.codec).c_str());
  return 0;
}

// The word itself, the contents of the file that it names after @, or standard input.
std::expected<std::string, std::string> read_json(const std::string& word, bool input_is_taken) {
  const bool input = word == "-" || word == "@-";
  if (!input && !word.starts_with('@')) return word;
  if (input && input_is_taken)
    return std::unexpected(
        "the function reads a stream from standard input; give its arguments themselves, or @FILE");
  auto text = input ? read_standard_input() : read_whole_file(word.substr(1));
  if (text && text->find_first_not_of(" \t\r\n") == std::string::npos)
    return std::unexpected((input ? "standard input" : "'" + word.substr(1) + "'") +
                           " is empty; no arguments are []");
  return text;
}

asio::awaitable<int> call(rpc::Client& client, const Request& request,
                          const std::vector<rpc::MethodInfo>& methods) {
  const auto known = std::ranges::find(methods, request.function, &rpc::MethodInfo::name);
  const std::string schema = known != methods.end() ? known->schema : "";
  if (known != methods.end())
    if (const auto why = no_json_for(known->name, schema, known->codec)) co_return complain("rpc", *why, 1);
  const auto json_text = read_json(request.json, takes_stream(schema));
  if (!json_text) co_return complain("rpc", json_text.error());
  const auto body = body_from_json(*json_text, schema);
  if (!body) co_return complain("rpc", body.error());
  std::string attached;
  if (!request.attachment.empty()) {
    auto read = read_whole_file(request.attachment);
    if (!read) co_return complain("rpc", read.error(), 1);
    attached = std::move(*read);
  }
  const bool streams = takes_stream(schema) || gives_stream(schema);
  rpc::Buffer reply;
  rpc::CallOptions options;
  const double timeout_s = request.timeout_s.value_or(streams ? 0 : 30);
  options.timeout = std::chrono::microseconds(static_cast<std::int64_t>(std::ceil(timeout_s * 1e6)));
  options.attachment = rpc::as_bytes(attached);
  options.reply_attachment = &reply;
  if (streams) co_return co_await run_stream(client.stream_encoded(request.function, options, *body), schema);
  const auto result = co_await client.call_encoded(request.function, options, *body);
  if (!result) {
    const rpc::Error error = rpc::named(result.error(), request.function);
    std::vector<std::string_view> names;
    for (const rpc::MethodInfo& method : methods) names.push_back(method.name);
    const bool unknown = error.code == rpc::Errc::unknown_method;
    co_return complain("rpc", said(error) + (unknown ? did_you_mean(request.function, names) : ""), 1);
  }
  const auto json = json_from_body(*result, schema, BodyOf::result);
  if (!json) co_return complain("rpc", json.error(), 1);
  std::printf("%s\n", json->c_str());
  if (!request.attachment_out.empty()) {
    std::ofstream file(request.attachment_out, std::ios::binary);
    file << reply.text();
    if (!file.flush()) co_return complain("rpc", "cannot write '" + request.attachment_out + "'", 1);
  }
  co_return 0;
}

// A server that closes before it sent anything may not speak the protocol.
std::string said_of(const rpc::Client& client, const std::string& address, const rpc::Error& error) {
  const bool silent = error.code == rpc::Errc::connection_lost && client.stats().bytes_received == 0;
  if (!silent || !address.starts_with("tcp:")) return said(error);
  return said(error) + " before it said anything: it may be no server of Weir's rpc, or want TLS (tls://)";
}

using Methods = std::vector<rpc::MethodInfo>;

// Reads the methods from a file or asks a server.
asio::awaitable<std::expected<Methods, std::string>> methods_of(std::string where, const Request& request) {
  std::error_code ignored;
  if (where.find("://") == std::string::npos && std::filesystem::exists(where, ignored)) {
    const auto text = read_whole_file(where);
    if (!text) co_return std::unexpected(text.error());
    auto listed = listed_methods(*text);
    if (!listed) co_return std::unexpected("'" + where + "': " + listed.error());
    co_return std::move(*listed);
  }
  const std::string address = as_address(where);
  if (const auto parsed = rpc::parse_address(address); !parsed)
    co_return std::unexpected("'" + where + "' is no file, and no address: " + parsed.error().what);
  rpc::ConnectOptions connect = request.connect;
  auto client = co_await rpc::connect(address, connect);
  if (!client) co_return std::unexpected(said(client.error()));
  auto methods = co_await client->call_by_name<Methods>(rpc::methods_method);
  if (!methods) co_return std::unexpected(said_of(*client, address, methods.error()));
  co_return std::move(*methods);
}

asio::awaitable<int> compare(const Request& request) {
  const auto before = co_await methods_of(request.old_methods, request);
  if (!before) co_return complain("rpc", before.error());
  const auto now = co_await methods_of(request.address, request);
  if (!now) co_return complain("rpc", now.error());
  co_return print_differences(differences(*before, *now), request.stats == StatsFormat::json);
}

asio::awaitable<int> serve_request(const Request& request) {
  if (request.action == "diff") co_return co_await compare(request);
  rpc::ConnectOptions connect = request.connect;
  auto client = co_await rpc::connect(request.address, connect);
  if (!client) co_return complain("rpc", said(client.error()), 1);
  if (request.action == "stats") co_return co_await show_stats(*client, request.stats);
  const auto methods = co_await client->call_by_name<std::vector<rpc::MethodInfo>>(rpc::methods_method);
  if (!methods) co_return complain("rpc", said_of(*client, request.address, methods.error()), 1);
  if (request.action == "list" && request.stats == StatsFormat::json) co_return print_list_as_json(*methods);
  if (request.action == "list") co_return print_list(*methods, request.names);
  co_return co_await call(*client, request, *methods);
}

}  // namespace

int rpc(std::span<const std::string> arguments) {
  for (const std::string& word : arguments)
    if (word == "--help" || word == "-h") {
      screen::print_wrapped(stdout, help);
      return 0;
    }
  auto request = parse(arguments);
  if (!request) return complain("rpc", request.error() + "; see weir rpc --help");
  asio::io_context io(1);
  if (const auto why = open_engine(io, *request)) return complain("rpc", *why, 1);
  int status = 1;
  asio::co_spawn(io, serve_request(*request), [&](const std::exception_ptr& thrown, int ended) {
    if (thrown) std::rethrow_exception(thrown);
    status = ended;
  });
  io.run();
  return status;
}

}  // namespace weir::command
