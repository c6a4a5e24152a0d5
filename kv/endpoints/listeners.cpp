#include "kv/endpoints/listeners.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kv/net/rdma.hpp"
#include "kv/resp/words.hpp"

namespace weir::kv {

namespace {

constexpr std::array<std::string_view, 6> listener_settings{"port",      "unixsocket",    "tls-port",
                                                            "rdma-port", "rdma-tls-port", "metrics-port"};

struct BindAddress {
  std::string address;
  bool may_be_missing = false;  // "-::1": no error if the host lacks the address
};

std::vector<BindAddress> bind_addresses(std::string_view setting) {
  std::vector<BindAddress> addresses;
  for (std::string& word : split_words(setting).value_or(std::vector<std::string>{})) {
    const bool optional = word.starts_with('-');
    addresses.push_back({optional ? word.substr(1) : word, optional});
  }
  return addresses;
}

// Whether a change of the setting `changed` reopens what the setting `listener` opened.
bool depends_on(std::string_view listener, std::string_view changed, const Settings& settings) {
  if (listener == changed) return true;
  if (listener.starts_with("rdma"))
    return changed == "rdma-bind" || (changed == "bind" && settings.rdma_bind.empty());
  if (listener == "metrics-port") return changed == "metrics-bind";
  return changed == "bind" && listener != "unixsocket";
}

}  // namespace

Listeners::Listeners(const Settings& settings, Transports& transports, Accept accept, LogLine log)
    : settings_(settings),
      transports_(transports),
      accept_(std::move(accept)),
      warn_([log = std::move(log)](std::string_view text) { log(LogLevel::warning, text); }) {}

SocketOptions Listeners::socket_options() const {
  return {static_cast<int>(settings_.tcp_backlog),
          [this] { return static_cast<int>(settings_.tcp_keepalive_s); }};
}

// Opens a listener for each address of `bind`. If the system chooses the port, its choice for the
// first address holds for all.
std::expected<void, std::string> Listeners::open_each(std::string_view setting, std::string_view bind,
                                                      std::int64_t port, const Open& open, Entries& into) {
  const std::size_t before = into.size();
  std::string reason = "bind names no address to listen on";
  auto wanted = static_cast<std::uint16_t>(port == any_port ? 0 : port);
  for (const BindAddress& address : bind_addresses(bind)) {
    auto opened = open(address.address, wanted);
    if (opened) {
      if (wanted == 0) wanted = (*opened)->port();
      into.push_back({std::string(setting), std::move(*opened)});
    } else if (address.may_be_missing) {
      reason = opened.error();
    } else {
      return std::unexpected(opened.error());
    }
  }
  if (into.size() == before) return std::unexpected(reason);
  return {};
}

std::expected<void, std::string> Listeners::open_unix(Entries& into) {
  auto opened =
      listen_unix(transports_.sockets(), settings_.unixsocket,
                  static_cast<unsigned>(settings_.unixsocketperm), socket_options(), accept_, warn_);
  if (!opened) return std::unexpected(opened.error());
  into.push_back({"unixsocket", std::move(*opened)});
  return {};
}

std::expected<void, std::string> Listeners::open_rdma(std::string_view setting, bool secured, Entries& into) {
  if (auto ready = transports_.start_rdma(); !ready) return ready;
  CurrentTls tls;
  if (secured) {
    if (auto ready = transports_.start_tls(); !ready) return ready;
    tls = [&transports = transports_] { return transports.tls(); };
  }
  RdmaListenOptions options;
  options.stream.receive_buffer_bytes = static_cast<std::uint32_t>(settings_.rdma_rx_size);
  options.backlog = static_cast<std::uint32_t>(settings_.tcp_backlog);
  const Open rdma = [&](const std::string& address, std::uint16_t port) {
    return listen_rdma(transports_.rdma(), address, port, options, tls, transports_.handshake_places(),
                       accept_, transports_.end_round(), warn_);
  };
  const std::string& bind = settings_.rdma_bind.empty() ? settings_.bind : settings_.rdma_bind;
  return open_each(setting, bind, secured ? settings_.rdma_tls_port : settings_.rdma_port, rdma, into);
}

std::expected<void, std::string> Listeners::open(std::string_view setting, Entries& into) {
  if (setting == "port" && settings_.port != 0) {
    const Open tcp = [&](const std::string& address, std::uint16_t port) {
      return listen_tcp(transports_.sockets(), address, port, socket_options(), accept_, warn_);
    };
    return open_each(setting, settings_.bind, settings_.port, tcp, into);
  }
  if (setting == "unixsocket" && !settings_.unixsocket.empty()) return open_unix(into);
  if (setting == "tls-port" && settings_.tls_port != 0) {
    if (auto ready = transports_.start_tls(); !ready) return ready;
    const Open tls = [&](const std::string& address, std::uint16_t port) {
      return listen_tls(
          transports_.sockets(), transports_.io(), [&transports = transports_] { return transports.tls(); },
          transports_.handshake_places(), address, port, socket_options(), accept_,
          [&transports = transports_] { transports.end_socket_round(); }, warn_);
    };
    return open_each(setting, settings_.bind, settings_.tls_port, tls, into);
  }
  if (setting == "metrics-port" && settings_.metrics_port != 0)
    return open_each(setting, settings_.metrics_bind, settings_.metrics_port, open_metrics_, into);
  if (setting == "rdma-port" && settings_.rdma_port != 0) return open_rdma(setting, false, into);
  if (setting == "rdma-tls-port" && settings_.rdma_tls_port != 0) return open_rdma(setting, true, into);
  return {};
}

std::expected<void, std::string> Listeners::open_all(Open open_metrics) {
  open_metrics_ = std::move(open_metrics);
  Entries opened;
  for (std::string_view setting : listener_settings) {
    const std::size_t before = opened.size();
    auto done = open(setting, opened);
    if (done) continue;
    if (!setting.starts_with("rdma")) return done;
    if (settings_.rdma_required)
      return std::unexpected(done.error() + "; or set rdma-required no to serve the other ports without it");
    opened.erase(opened.begin() + static_cast<std::ptrdiff_t>(before), opened.end());
    warn_(std::string(setting) + " is not served (rdma-required no): " + done.error());
  }
  open_ = std::move(opened);
  return {};
}

bool Listeners::depend_on(std::string_view setting) const {
  return std::ranges::any_of(
      listener_settings, [&](std::string_view listener) { return depends_on(listener, setting, settings_); });
}

std::expected<void, std::string> Listeners::open_again(std::string_view changed) {
  const auto concerned = [&](std::string_view listener) { return depends_on(listener, changed, settings_); };
  // Close all old listeners first: a new address may overlap an old one.
  std::erase_if(open_, [&](const Entry& entry) { return concerned(entry.setting); });
  for (std::string_view setting : listener_settings) {
    if (!concerned(setting)) continue;
    if (auto done = open(setting, open_); !done) return done;
  }
  return {};
}

std::vector<std::string> Listeners::where() const {
  std::vector<std::string> where;
  for (const Entry& entry : open_) where.push_back(entry.listener->where());
  return where;
}

std::uint16_t Listeners::port_of_type(std::string_view type) const {
  const std::string prefix = std::string(type) + ' ';
  const auto entry =
      std::ranges::find_if(open_, [&](const Entry& e) { return e.listener->where().starts_with(prefix); });
  return entry == open_.end() ? 0 : entry->listener->port();
}

std::uint16_t Listeners::port_of_setting(std::string_view setting) const {
  const auto entry = std::ranges::find(open_, setting, &Entry::setting);
  return entry == open_.end() ? 0 : entry->listener->port();
}

}  // namespace weir::kv
