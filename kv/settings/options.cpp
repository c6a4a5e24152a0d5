#include "kv/settings/options.hpp"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "kv/settings/config_file.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::kv {

namespace {

std::string help_text() {
  std::string text =
      "weir-server: a key-value server that speaks RESP over TCP, unix sockets, TLS and RDMA.\n"
      "\n"
      "  weir-server [FILE] [--NAME VALUE...]...\n"
      "\n"
      "FILE is a configuration file in redis.conf's form, one \"NAME VALUE\" a line; - reads standard "
      "input.\n"
      "Options after it override it. CONFIG GET '*' lists every setting of a running server.\n"
      "\n"
      "Examples\n"
      "  weir-server                                     TCP on port 6379\n"
      "  weir-server --port 7000 --rdma-port 7000        TCP and RDMA on one port number\n"
      "  weir-server --port 0 --unixsocket /tmp/w.sock   a unix socket only\n"
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
      "  --check-config            report what is wrong with FILE, options and the files they name, and "
      "exit\n"
      "  --help, --version\n"
      "\n"
      "Exit status: 0 stopped as asked; 1 could not run, or --check-config found something; 2 the command\n"
      "line is invalid.\n";
  return text;
}

std::string usage_error(const std::string& text) {
  return "weir-server: " + text + "; see weir-server --help";
}

std::string unknown_option(const std::string& name) {
  std::vector<std::string> options{"--help", "--version", "--check-config"};
  for (const SettingSpec& spec : setting_specs()) options.push_back("--" + std::string(spec.name));
  const std::vector<std::string_view> candidates(options.begin(), options.end());
  return usage_error("unknown option " + name + did_you_mean(name, candidates));
}

std::expected<std::string, std::string> contents_of(std::FILE* file, const std::string& path) {
  // Not a std::ifstream: it throws if the file is a directory.
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
    return std::unexpected("cannot read the configuration file " + path + ": " + std::strerror(errno));
  }
  return text;
}

}  // namespace

std::expected<ConfigText, std::string> read_config(const std::string& path) {
  auto text = contents_of(std::fopen(path.c_str(), "re"), path);
  if (!text) return std::unexpected(text.error());
  std::error_code ignored;
  const std::string name = std::filesystem::canonical(path, ignored).string();
  return ConfigText{name.empty() ? path : name, std::move(*text)};
}

std::expected<std::vector<ConfigText>, std::string> read_included(const std::string& folder,
                                                                  const std::string& pattern) {
  const std::string path = (std::filesystem::path(folder) / pattern).string();
  std::vector<std::string> paths;
  if (pattern.find_first_of("*?[") == std::string::npos) {
    paths.push_back(path);
  } else {
    glob_t found{};
    if (::glob(path.c_str(), 0, nullptr, &found) == 0) {
      paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
  }
  std::vector<ConfigText> files;
  for (const std::string& one : paths) {
    auto file = read_config(one);
    if (!file) return std::unexpected(file.error());
    files.push_back(std::move(*file));
  }
  return files;
}

namespace {

using Wrong = std::vector<std::string>;

// Loads the configuration file and its includes. Returns all errors, or only the first.
Wrong load_config(Settings& settings, const std::string& path, bool all) {
  std::expected<ConfigText, std::string> config;
  if (path == "-") {
    auto text = contents_of(stdin, path);
    if (!text) return {usage_error(text.error())};
    config = ConfigText{{}, std::move(*text)};
  } else {
    config = read_config(path);
  }
  if (!config) return {usage_error(config.error())};
  const ReadConfig read = [&](const std::string& pattern) { return read_included(settings.dir, pattern); };
  std::vector<ConfigError> errors;
  if (all) {
    errors = apply_right_lines(settings, *config, read);
  } else if (auto applied = apply_config(settings, *config, read); !applied) {
    errors.push_back(std::move(applied.error()));
  }
  Wrong wrong;
  for (const ConfigError& e : errors) {
    const std::string& file = e.file.empty() || e.file == config->file ? path : e.file;
    wrong.push_back("weir-server: error in the configuration file " + file + ", line " +
                    std::to_string(e.line) + ":\n>>> '" + e.text + "'\n" + e.reason);
  }
  return wrong;
}

// Applies the option at `at` with its values, and moves past them.
std::expected<void, std::string> take_one_option(Settings& settings,
                                                 const std::vector<std::string>& arguments, std::size_t& at) {
  const std::string& name = arguments[at++];
  if (!name.starts_with("--")) return std::unexpected(usage_error("unexpected argument '" + name + "'"));
  std::vector<std::string> values;
  while (at < arguments.size() && !arguments[at].starts_with("--")) values.push_back(arguments[at++]);
  std::expected<void, std::string> done;
  if (name == "--user") {
    done = add_user_line(settings, values);
  } else if (name == "--loadmodule") {
    done = apply_module_line(settings, values);
  } else {
    const SettingSpec* spec = find_setting(std::string_view(name).substr(2));
    if (spec == nullptr) return std::unexpected(unknown_option(name));
    if (values.empty() && std::holds_alternative<BoolSetting>(spec->kind)) values.emplace_back("yes");
    if (values.empty()) return std::unexpected(usage_error(name + " needs a value"));
    done = assign_setting(settings, *spec, values);
  }
  if (!done) return std::unexpected(usage_error(name + ": " + done.error()));
  return {};
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
  options.check = std::ranges::find(arguments, "--check-config") != arguments.end();
  std::size_t at = 0;
  if (at < arguments.size() && !arguments[at].starts_with("--")) {
    const std::string& path = arguments[at++];
    options.wrong = load_config(options.settings, path, options.check);
    options.config_file = path == "-" ? path : std::filesystem::absolute(path).string();
  }
  while (at < arguments.size() && (options.check || options.wrong.empty())) {
    if (arguments[at] == "--check-config") {
      ++at;
    } else if (auto taken = take_one_option(options.settings, arguments, at); !taken) {
      options.wrong.push_back(std::move(taken.error()));
    }
  }
  if (!options.check && !options.wrong.empty()) return std::unexpected(std::move(options.wrong.front()));
  return options;
}

}  // namespace weir::kv
