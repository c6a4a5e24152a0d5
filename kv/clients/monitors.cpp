#include "kv/clients/monitors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/core/server_common.hpp"
#include "kv/resp/words.hpp"

namespace weir::kv {

namespace {

bool is_secret_setting(std::string_view name) {
  constexpr std::array secrets{"requirepass",
                               "masterauth",
                               "primaryauth",
                               "masteruser",
                               "primaryuser",
                               "tls-key-file-pass",
                               "tls-client-key-file-pass"};
  return std::ranges::any_of(secrets, [name](const char* secret) { return is_word(name, secret); });
}

}  // namespace

std::vector<std::string_view> without_passwords(const Command& command, Arguments arguments) {
  constexpr std::string_view blot = "(redacted)";
  std::vector<std::string_view> words(arguments.begin(), arguments.end());
  if (command.full_name() == "config|set") {
    for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
      if (is_secret_setting(words[i])) words[i + 1] = blot;
    }
  }
  if (command.full_name() == "acl|setuser") std::fill(words.begin() + 2, words.end(), blot);
  if (!command.container.empty()) return words;
  if (command.name == "auth") std::fill(words.begin() + 1, words.end(), blot);
  if (command.name == "migrate") {
    for (std::size_t i = 6; i + 1 < words.size() && !is_word(words[i], "KEYS"); ++i) {
      const std::size_t secrets = is_word(words[i], "AUTH") ? 1 : is_word(words[i], "AUTH2") ? 2 : 0;
      for (std::size_t j = 0; j < secrets && i + 1 < words.size(); ++j) words[++i] = blot;
    }
  }
  if (command.name == "hello") {
    for (std::size_t i = 2; i + 2 < words.size(); ++i) {
      if (!is_word(words[i], "AUTH")) continue;
      words[i + 1] = words[i + 2] = blot;
      i += 2;
    }
  }
  return words;
}

void Monitors::add(Client& client) {
  client.monitors = true;
  clients_.push_back(&client);
}

void Monitors::remove(Client& client) {
  if (!client.monitors) return;
  client.monitors = false;
  std::erase(clients_, &client);
}

void Monitors::tell(const Client& from, const Command& command, Arguments arguments) {
  // Redis gives scripting commands this flag, too, but shows them itself.
  const bool skipped = command.has(flag::skip_monitor) && command.group != "scripting";
  if (command.has(flag::admin) || skipped) return;
  from.refresh_time();
  Connection& connection = from.connection();
  char stamp[64];
  std::snprintf(stamp, sizeof stamp, "%lld.%06lld [%d ", static_cast<long long>(server_.now_us / 1000000),
                static_cast<long long>(server_.now_us % 1000000), from.db);
  std::string line = stamp;
  const std::string peer = connection.peer_address();
  // Unix sockets are shown by their path, and a script's commands without an address.
  line += from.in_script                ? "lua"
          : connection.kind() == "unix" ? "unix:" + peer.substr(0, peer.rfind(':'))
                                        : peer;
  line += ']';
  for (std::string_view word : without_passwords(command, arguments))
    line.append(1, ' ').append(quoted(word));
  for (Client* client : clients_) {
    if (client->reply.muted()) continue;
    client->reply.simple(line);
    client->will_flush();
  }
}

}  // namespace weir::kv
