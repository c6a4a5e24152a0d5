// CONFIG: reading and changing the settings of the running server.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "kv/aof/append_only.hpp"
#include "kv/call/call.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/endpoints/listeners.hpp"
#include "kv/endpoints/transports.hpp"
#include "kv/replication/replication.hpp"
#include "kv/settings/config_rewrite.hpp"
#include "kv/settings/options.hpp"
#include "kv/settings/replaced_file.hpp"
#include "kv/text/glob.hpp"

namespace weir::kv {

namespace {

// If the system chose the port, the value is the chosen number.
std::string value_of(const ServerParts& server, const SettingSpec& spec) {
  if (const std::uint16_t port = server.listeners.port_of_setting(spec.name); port != 0)
    return std::to_string(port);
  return setting_text(server.settings, spec);
}

void config_get(const Call& call) {
  std::vector<std::pair<std::string_view, const SettingSpec*>> found;
  for (const SettingSpec& spec : setting_specs()) {
    for (std::string_view name : {spec.name, spec.other_name}) {
      const bool wanted =
          !name.empty() && std::ranges::any_of(call.arguments.subspan(2), [&](const Argument& pattern) {
            return glob_match(pattern.text, name, Case::ignore);
          });
      if (wanted) found.emplace_back(name, &spec);
    }
  }
  std::ranges::sort(found, {}, [](const auto& one) { return one.first; });
  call.reply.map(found.size());
  for (const auto& [name, spec] : found) {
    call.reply.bulk(name);
    call.reply.bulk(value_of(call.server, *spec));
  }
}

// Does what a changed setting requires beyond the new value.
std::expected<void, std::string> apply(const Call& call, const SettingSpec& spec) {
  if (call.server.listeners.depend_on(spec.name)) {
    auto opened = call.server.listeners.open_again(spec.name);
    if (opened) return opened;
    const bool addresses = spec.name.ends_with("bind");  // Redis's words, then the cause
    return std::unexpected(
        (addresses ? "Failed to bind to specified addresses. " : "Unable to listen on this port. ") +
        opened.error());
  }
  // A file may change under the same name: every CONFIG SET of these settings reads the files again.
  for (std::string_view certificates : {"tls-cert-file", "tls-key-file", "tls-key-file-pass",
                                        "tls-ca-cert-file", "tls-ca-cert-dir", "tls-auth-clients"}) {
    if (spec.name == certificates) return call.server.transports.load_tls_again();
  }
  if (spec.name == "requirepass") call.server.access.set_default_password(call.server.settings.requirepass);
  if (spec.name == "dir") {
    std::string& dir = call.server.settings.dir;
    if (::chdir(dir.c_str()) != 0) return std::unexpected(std::strerror(errno));
    std::error_code ignored;
    dir = std::filesystem::current_path(ignored).string();
  }
  if (spec.name == "appendonly") {
    if (call.server.loading) return std::unexpected("the server is loading");
    if (call.server.settings.appendonly) return call.server.append_only->turn_on();
    call.server.append_only->turn_off();
  }
  if (spec.name == "maxclients" && call.server.surroundings.make_way_for_clients) {
    const std::int64_t wanted = call.server.settings.maxclients;
    const std::int64_t possible = call.server.surroundings.make_way_for_clients(wanted);
    if (possible < wanted) {
      return std::unexpected(
          "The operating system is not able to handle the specified number of clients, try with " +
          std::to_string(possible));
    }
  }
  if (spec.name.ends_with("timeout")) call.server.arm_timer();
  call.server.settings_changed();
  return {};
}

// enable-protected-configs: no, yes, local.
bool may_set_protected(const Call& call) {
  const int allowed = call.server.settings.protected_configs;
  return allowed == 1 || (allowed == 2 && call.client.connection().local());
}

void config_set(const Call& call) {
  if (call.count() % 2 != 0) return call.syntax_error();
  auto failed = [&](std::string_view name, std::string_view reason) {
    call.reply.error("ERR CONFIG SET failed (possibly related to argument '" + std::string(name) + "') - " +
                     std::string(reason));
  };
  std::vector<const SettingSpec*> changed;
  for (std::size_t i = 2; i < call.count(); i += 2) {
    const SettingSpec* spec = find_setting(call[i]);
    if (spec == nullptr) {
      return call.reply.error("ERR Unknown option or number of arguments for CONFIG SET - '" +
                              std::string(call[i]) + "'");
    }
    if (spec->change == Change::at_start) return failed(call[i], "can't set immutable config");
    if (spec->change == Change::at_start_for_safety && !may_set_protected(call))
      return failed(call[i], "can't set protected config");
    if (std::ranges::find(changed, spec) != changed.end()) return failed(call[i], "duplicate parameter");
    changed.push_back(spec);
  }
  Settings& settings = call.server.settings;
  const Settings before = settings;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const std::string words[] = {std::string(call[i * 2 + 3])};
    if (auto done = assign_setting(settings, *changed[i], words); !done) {
      settings = before;
      return failed(call[i * 2 + 2], done.error());
    }
  }
  // Reopening a listener drops clients that wait to be accepted, so a listener that stays as it is stays
  // open. Asking for any port means asking for another port.
  const Settings wanted = settings;
  const auto stays = [&](const SettingSpec& spec) {
    const std::string text = setting_text(wanted, spec);
    return call.server.listeners.depend_on(spec.name) && text == setting_text(before, spec) &&
           text != std::to_string(any_port);
  };
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (stays(*changed[i])) continue;
    if (auto done = apply(call, *changed[i]); !done) {
      call.server.log(LogLevel::warning, done.error());
      settings = before;
      for (std::size_t k = 0; k <= i; ++k) {
        if (!stays(*changed[k])) static_cast<void>(apply(call, *changed[k]));
      }
      return failed(call[i * 2 + 2], done.error());
    }
  }
  call.reply.ok();
}

void config_resetstat(const Call& call) {
  call.server.stats = Stats();
  call.server.replication->replicas().reset_counts();
  call.reply.ok();
}

// The lines for users that a configuration file needs. Empty: the users have their own file, or only the
// default user exists and is as it would be without a line.
std::vector<std::string> user_lines(const ServerParts& server) {
  std::vector<std::string> lines;
  if (!server.settings.aclfile.empty()) return lines;
  const auto& users = server.access.users().all();
  constexpr std::string_view untouched = "on nopass ~* &* +@all";
  if (users.size() == 1 && server.settings.users.empty() && users.begin()->second->text() == untouched)
    return lines;
  for (const auto& [name, user] : users) lines.push_back("user " + name + ' ' + user->text());
  return lines;
}

void config_rewrite(const Call& call) {
  const std::string& path = call.server.surroundings.config_file;
  if (path.empty() || path == "-") return call.reply.error("ERR The server is running without a config file");
  const Settings& settings = call.server.settings;
  const ReadConfig read = [&](const std::string& pattern) { return read_included(settings.dir, pattern); };
  std::expected<void, std::string> done;
  if (const auto old = read_config(path); !old) {
    done = std::unexpected(old.error());
  } else {
    const std::string text = rewritten_config(old->text, {settings, user_lines(call.server)}, read);
    done = replace_file(path, text, "the configuration file");
  }
  if (!done) {
    call.server.log(LogLevel::warning, "CONFIG REWRITE failed: " + done.error());
    return call.reply.error("ERR Rewriting config file: " + done.error());
  }
  call.server.log(LogLevel::notice, "a client asked for CONFIG REWRITE: " + path + " is as the settings are");
  call.reply.ok();
}

void config_help(const Call& call) {
  reply_help(call, {
                       "GET <pattern>",
                       "    Return parameters matching the glob-like <pattern> and their values.",
                       "SET <directive> <value>",
                       "    Set the configuration <directive> to <value>.",
                       "RESETSTAT",
                       "    Reset statistics reported by the INFO command.",
                       "REWRITE",
                       "    Rewrite the configuration file.",
                   });
}

}  // namespace

std::span<const Command> configuration_commands() {
  using namespace flag;
  constexpr std::uint32_t common = admin | noscript | loading | stale;
  static constexpr Command subcommands[] = {
      {"get", -3, common, 0, 0, 0, config_get, "server", "Returns settings.", {}, "config"},
      {"set", -4, common, 0, 0, 0, config_set, "server", "Changes settings.", {}, "config"},
      {"resetstat",
       2,
       common,
       0,
       0,
       0,
       config_resetstat,
       "server",
       "Sets the statistics to zero.",
       {},
       "config"},
      {"rewrite",
       2,
       common,
       0,
       0,
       0,
       config_rewrite,
       "server",
       "Writes the configuration file.",
       {},
       "config"},
      {"help", 2, loading | stale, 0, 0, 0, config_help, "server", "Explains CONFIG.", {}, "config"},
  };
  static constexpr Command commands[] = {
      {"config", -2, 0, 0, 0, 0, nullptr, "server", "Reads and changes settings.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
