#include "kv/server/options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weir::kv {

namespace {

std::string help_text() {
  std::string text =
      "weir-server: a key-value server that speaks RESP over TCP, Unix sockets, TLS and RDMA.\n"
      "\n"
      "  weir-server [FILE] [--NAME VALUE...]...\n"
      "\n"
      "FILE is a configuration file in redis.conf's form, one \"NAME VALUE\" a line; - reads standard "
      "input.\n"
      "Options given behind it win over it. CONFIG GET '*' lists every setting of a running server.\n"
      "\n"
      "Examples\n"
      "  weir-server                                     TCP on port 6379\n"
      "  weir-server --port 7000 --rdma-port 7000        TCP and RDMA on one port number\n"
      "  weir-server --port 0 --unixsocket /tmp/w.sock   a Unix socket only\n"
      "  weir-server --tls-port 6380 --tls-cert-file c.pem --tls-key-file k.pem --tls-auth-clients no\n"
      "\n"
      "Options\n";
  for (const SettingSpec& spec : setting_specs()) {
    if (spec.help.empty()) continue;
    std::string line = "  --" + std::string(spec.name);
    line.resize(std::max<std::size_t>(line.size() + 1, 28), ' ');
    text += line + std::string(spec.help) + '\n';
  }
  text +=
      "  --help, --version\n"
      "\n"
      "Exit codes: 0 stopped as asked, 1 could not run, 2 wrong usage.\n";
  return text;
}

std::string usage_error(const std::string& text) {
  return "weir-server: " + text + "\nTry weir-server --help.";
}

std::expected<std::string, std::string> read_config(const std::string& path) {
  // Not a std::ifstream: of a directory that throws.
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "re");
  bool read = file != nullptr;
  std::string text;
  if (file != nullptr) {
    char block[4096];
    for (std::size_t got; (got = std::fread(block, 1, sizeof block, file)) != 0;) text.append(block, got);
    read = std::ferror(file) == 0;
    const int reason = errno;
    if (file != stdin) std::fclose(file);
    errno = reason;
  }
  if (!read) {
    return std::unexpected(
        usage_error("cannot read the configuration file " + path + ": " + std::strerror(errno)));
  }
  return text;
}

}  // namespace

std::expected<StartOptions, std::string> parse_options(const std::vector<std::string>& arguments) {
  StartOptions options;
  auto asks = [&](std::initializer_list<std::string_view> names) {
    return arguments.size() == 1 && std::ranges::find(names, arguments[0]) != names.end();
  };
  if (asks({"--help", "-h"})) {
    options.answer = help_text();
    return options;
  }
  if (asks({"--version", "-v"})) {
    options.answer = "weir-server " WEIR_VERSION "\n";
    return options;
  }
  std::size_t at = 0;
  if (at < arguments.size() && !arguments[at].starts_with("--")) {
    options.config_file = arguments[at++];
    const auto text = read_config(options.config_file);
    if (!text) return std::unexpected(text.error());
    if (auto applied = apply_config(options.settings, *text); !applied) {
      const ConfigError& e = applied.error();
      return std::unexpected("weir-server: error in the configuration file " + options.config_file +
                             ", line " + std::to_string(e.line) + ":\n>>> '" + e.text + "'\n" + e.reason);
    }
  }
  while (at < arguments.size()) {
    const std::string& name = arguments[at++];
    if (!name.starts_with("--")) return std::unexpected(usage_error("unexpected argument '" + name + "'"));
    const SettingSpec* spec = find_setting(std::string_view(name).substr(2));
    if (spec == nullptr) return std::unexpected(usage_error("unknown option " + name));
    std::vector<std::string> values;
    while (at < arguments.size() && !arguments[at].starts_with("--")) values.push_back(arguments[at++]);
    if (values.empty() && std::holds_alternative<BoolSetting>(spec->kind)) values.emplace_back("yes");
    if (values.empty()) return std::unexpected(usage_error(name + " needs a value"));
    if (auto done = assign_setting(options.settings, *spec, values); !done) {
      return std::unexpected(usage_error(name + ": " + done.error()));
    }
  }
  return options;
}

}  // namespace weir::kv
