// Opening listeners from the settings, at start and when CONFIG SET changes one.
#include <algorithm>

#include "kv/resp/words.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

struct BindAddress {
  std::string address;
  bool may_be_missing = false;  // "-::1": no error when the host lacks it
};

std::vector<BindAddress> bind_addresses(std::string_view setting) {
  std::vector<BindAddress> addresses;
  for (std::string& word : split_words(setting).value_or(std::vector<std::string>{})) {
    const bool optional = word.starts_with('-');
    addresses.push_back({optional ? word.substr(1) : word, optional});
  }
  return addresses;
}

}  // namespace

std::expected<void, std::string> Server::open(std::string_view setting, Entrances& into) {
  const SocketOptions options{static_cast<int>(settings.tcp_backlog),
                              static_cast<int>(settings.tcp_keepalive_s)};
  const Accept take = [this](std::unique_ptr<Connection> connection) { accept(std::move(connection)); };
  const Log note = [this](std::string_view text) { log(LogLevel::warning, text); };
  auto add = [&](OpenedListener opened, bool may_fail) -> std::expected<void, std::string> {
    if (!opened) {
      if (may_fail) return {};
      return std::unexpected(opened.error());
    }
    into.push_back({std::string(setting), std::move(*opened)});
    return {};
  };
  // One listener an address; with port 0 asked of the system the first one's choice holds for all.
  auto each_address = [&](std::string_view bind, std::uint16_t port,
                          auto listen_on) -> std::expected<void, std::string> {
    std::string missing;
    const std::size_t before = into.size();
    for (const BindAddress& address : bind_addresses(bind)) {
      auto opened = listen_on(address.address, port);
      if (!opened) missing = opened.error();
      if (auto added = add(std::move(opened), address.may_be_missing); !added) return added;
    }
    if (into.size() == before) {
      return std::unexpected(missing.empty() ? "bind names no address to listen on" : missing);
    }
    return {};
  };

  if (setting == "port" && settings.port != 0) {
    return each_address(settings.bind, static_cast<std::uint16_t>(settings.port),
                        [&](const std::string& address, std::uint16_t port) {
                          return listen_tcp(poller_, address, port, options, take, note);
                        });
  }
  if (setting == "unixsocket" && !settings.unixsocket.empty()) {
    return add(listen_unix(poller_, settings.unixsocket, static_cast<unsigned>(settings.unixsocketperm),
                           options, take, note),
               false);
  }
  return {};
}

std::expected<void, std::string> Server::listen() {
  Entrances opened;
  for (std::string_view setting : {"port", "unixsocket", "tls-port", "rdma-port", "rdma-tls-port"}) {
    if (auto done = open(setting, opened); !done) return done;
  }
  entrances_ = std::move(opened);
  return {};
}

std::expected<void, std::string> Server::listen_again(std::string_view setting) {
  std::string_view group = setting == "bind" ? "port" : setting == "rdma-bind" ? "rdma-port" : setting;
  // The old listeners go first: a new address may overlap the old one. If the new ones fail, they come back.
  Entrances old;
  for (Entrance& entrance : entrances_) {
    if (entrance.setting == group) old.push_back(std::move(entrance));
  }
  std::erase_if(entrances_, [](const Entrance& entrance) { return entrance.listener == nullptr; });
  old.clear();
  return open(group, entrances_);
}

std::vector<std::string> Server::listening() const {
  std::vector<std::string> where;
  for (const Entrance& entrance : entrances_) where.push_back(entrance.listener->where());
  return where;
}

std::uint16_t Server::port(std::string_view kind) const {
  for (const Entrance& entrance : entrances_) {
    if (entrance.listener->where().starts_with(std::string(kind) + ' ')) return entrance.listener->port();
  }
  return 0;
}

void Server::close_listeners() { entrances_.clear(); }

}  // namespace weir::kv
