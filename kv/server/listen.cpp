// Opening listeners from the settings, at start and when CONFIG SET changes one; and dialling other servers.
#include <algorithm>
#include <array>

#include "kv/net/rdma.hpp"
#include "kv/resp/words.hpp"
#include "kv/server/metrics_page.hpp"
#include "kv/server/server.hpp"
#include "rdma/engine.hpp"
#include "rdma/provider.hpp"

namespace weir::kv {

namespace {

constexpr std::array<std::string_view, 6> entrance_settings{"port",      "unixsocket",    "tls-port",
                                                            "rdma-port", "rdma-tls-port", "metrics-port"};

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

transport::TlsFiles tls_files(const Settings& settings) {
  constexpr std::array asked{transport::PeerCertificate::ignored, transport::PeerCertificate::required,
                             transport::PeerCertificate::optional};
  return {.certificate = settings.tls_cert_file,
          .key = settings.tls_key_file,
          .key_password = settings.tls_key_file_pass,
          .authorities = settings.tls_ca_cert_file,
          .authorities_directory = settings.tls_ca_cert_dir,
          .peer = asked[static_cast<std::size_t>(settings.tls_auth_clients)]};
}

// What it shows those whom it dials: a certificate for that, or the one that it shows its clients.
transport::TlsFiles tls_files_to_dial(const Settings& settings) {
  transport::TlsFiles files = tls_files(settings);
  if (settings.tls_client_cert_file.empty() || settings.tls_client_key_file.empty()) return files;
  files.certificate = settings.tls_client_cert_file;
  files.key = settings.tls_client_key_file;
  files.key_password = settings.tls_client_key_file_pass;
  return files;
}

// Whether what the setting `entrance` opens is opened again when `changed` changes.
bool hangs_on(std::string_view entrance, std::string_view changed, const Settings& settings) {
  if (entrance == changed) return true;
  if (entrance.starts_with("rdma"))
    return changed == "rdma-bind" || (changed == "bind" && settings.rdma_bind.empty());
  if (entrance == "metrics-port") return changed == "metrics-bind";
  return changed == "bind" && entrance != "unixsocket";
}

}  // namespace

// Loads the RDMA provider and starts its engine when the first RDMA listener wants it.
std::expected<void, std::string> Server::start_rdma() {
  if (rdma_engine_ != nullptr) return {};
  rdma::ProviderOptions options;
  constexpr std::array choices{rdma::ProviderChoice::automatic, rdma::ProviderChoice::weir,
                               rdma::ProviderChoice::system};
  options.choice = choices[static_cast<std::size_t>(settings.rdma_provider)];
  options.library_path = surroundings.library_path;
  auto provider = rdma::load_provider(options);
  if (!provider) return std::unexpected("Could not start RDMA: " + provider.error().what);
  rdma::EngineSettings engine_settings;
  engine_settings.idle_spin = std::chrono::microseconds(settings.idle_spin_us);
  engine_settings.completion_vector = static_cast<int>(settings.rdma_comp_vector);
  auto engine = rdma::Engine::open(io, *provider, engine_settings);
  if (!engine) return std::unexpected("Could not start RDMA: " + engine.error().what);
  rdma_engine_ = *engine;
  rdma_provider = provider->kind() == rdma::Provider::Kind::weir ? "weir" : "system";
  log(LogLevel::notice, "RDMA: " + provider->describe());
  return {};
}

bool Server::rdma_polls() const { return rdma_engine_ != nullptr && rdma_engine_->awake(); }

std::expected<void, std::string> Server::start_tls() {
  return tls_ != nullptr ? std::expected<void, std::string>() : load_tls_again();
}

std::expected<void, std::string> Server::load_tls_again() {
  if (settings.tls_port == 0 && settings.rdma_tls_port == 0) {
    tls_.reset();  // a TLS port that is opened later reads the files as they are then
    return {};
  }
  auto taken = load_tls(tls_files(settings));
  if (!taken) return std::unexpected(taken.error());
  tls_ = std::move(*taken);
  return {};
}

// Opens a listener for each address of `bind`. When the system chooses the port, the first one's choice holds
// for all.
std::expected<void, std::string> Server::open_each(std::string_view setting, std::string_view bind,
                                                   std::int64_t port, const ListenOn& listen_on,
                                                   Entrances& into) {
  const std::size_t before = into.size();
  std::string reason = "bind names no address to listen on";
  auto wanted = static_cast<std::uint16_t>(port == any_port ? 0 : port);
  for (const BindAddress& address : bind_addresses(bind)) {
    auto opened = listen_on(address.address, wanted);
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

std::expected<void, std::string> Server::open(std::string_view setting, Entrances& into) {
  const SocketOptions options{static_cast<int>(settings.tcp_backlog),
                              [this] { return static_cast<int>(settings.tcp_keepalive_s); }};
  const Accept take = [this](std::unique_ptr<Connection> connection) { accept(std::move(connection)); };
  const Log note = [this](std::string_view text) { log(LogLevel::warning, text); };
  const std::function<void()> after_input = [this] { end_round(); };
  const CurrentTls current_tls = [this] { return tls_; };

  if (setting == "port" && settings.port != 0) {
    const ListenOn tcp = [&](const std::string& address, std::uint16_t port) {
      return listen_tcp(poller_, address, port, options, take, note);
    };
    return open_each(setting, settings.bind, settings.port, tcp, into);
  }
  if (setting == "unixsocket" && !settings.unixsocket.empty()) {
    auto opened = listen_unix(poller_, settings.unixsocket, static_cast<unsigned>(settings.unixsocketperm),
                              options, take, note);
    if (!opened) return std::unexpected(opened.error());
    into.push_back({std::string(setting), std::move(*opened)});
    return {};
  }
  if (setting == "tls-port" && settings.tls_port != 0) {
    if (auto ready = start_tls(); !ready) return ready;
    const ListenOn tls = [&](const std::string& address, std::uint16_t port) {
      const auto after_socket_input = [this] { end_socket_round(); };
      return listen_tls(poller_, io, current_tls, handshakes_, address, port, options, take,
                        after_socket_input, note);
    };
    return open_each(setting, settings.bind, settings.tls_port, tls, into);
  }
  if (setting == "metrics-port" && settings.metrics_port != 0) {
    const ListenOn pages = [&](const std::string& address, std::uint16_t port) {
      return listen_metrics(*this, address, port);
    };
    return open_each(setting, settings.metrics_bind, settings.metrics_port, pages, into);
  }
  const bool plain = setting == "rdma-port" && settings.rdma_port != 0;
  const bool secured = setting == "rdma-tls-port" && settings.rdma_tls_port != 0;
  if (!plain && !secured) return {};
  if (auto ready = start_rdma(); !ready) return ready;
  if (secured) {
    if (auto ready = start_tls(); !ready) return ready;
  }
  RdmaListenOptions rdma_options;
  rdma_options.stream.receive_buffer_bytes = static_cast<std::uint32_t>(settings.rdma_rx_size);
  rdma_options.backlog = static_cast<std::uint32_t>(settings.tcp_backlog);
  const ListenOn rdma = [&](const std::string& address, std::uint16_t port) {
    return listen_rdma(*rdma_engine_, address, port, rdma_options, secured ? current_tls : nullptr,
                       handshakes_, take, after_input, note);
  };
  const std::string& bind = settings.rdma_bind.empty() ? settings.bind : settings.rdma_bind;
  return open_each(setting, bind, secured ? settings.rdma_tls_port : settings.rdma_port, rdma, into);
}

Opened<std::shared_ptr<TlsSettings>> Server::tls_to_dial() const {
  if (!settings.tls_replication) return nullptr;
  return load_tls_to_dial(tls_files_to_dial(settings));
}

Opened<std::unique_ptr<Dialling>> Server::dial(const std::string& host, std::uint16_t port, Dialled dialled) {
  if (host.starts_with('/')) return dial_unix(poller_, io, host, std::move(dialled));
  auto tls = tls_to_dial();
  if (!tls) return std::unexpected(std::move(tls.error()));
  if (settings.rdma_replication) {
    if (auto ready = start_rdma(); !ready) return std::unexpected(std::move(ready.error()));
    RdmaDial how;
    how.stream.receive_buffer_bytes = static_cast<std::uint32_t>(settings.rdma_rx_size);
    how.tls = std::move(*tls);
    how.after_input = [this] { end_round(); };
    return dial_rdma(*rdma_engine_, host, port, std::move(how), std::move(dialled));
  }
  if (*tls != nullptr) {
    const auto after_socket_input = [this] { end_socket_round(); };
    return dial_tls(io, std::move(*tls), host, port, after_socket_input, std::move(dialled));
  }
  return dial_tcp(poller_, io, host, port, std::move(dialled));
}

Opened<std::unique_ptr<Dialling>> Server::dial_cluster(const std::string& host, std::uint16_t port,
                                                       Dialled dialled) {
  if (!settings.tls_cluster) return dial_tcp(poller_, io, host, port, std::move(dialled));
  auto tls = load_tls_to_dial(tls_files_to_dial(settings));
  if (!tls) return std::unexpected(std::move(tls.error()));
  const auto after_socket_input = [this] { end_socket_round(); };
  return dial_tls(io, std::move(*tls), host, port, after_socket_input, std::move(dialled));
}

std::expected<void, std::string> Server::listen() {
  // Nobody comes in before it is known who may.
  if (auto users = access.load_configured(); !users) return users;
  Entrances opened;
  for (std::string_view setting : entrance_settings) {
    if (auto done = open(setting, opened); !done) return done;
  }
  entrances_ = std::move(opened);
  return {};
}

bool Server::listeners_hang_on(std::string_view setting) const {
  return std::ranges::any_of(
      entrance_settings, [&](std::string_view entrance) { return hangs_on(entrance, setting, settings); });
}

std::expected<void, std::string> Server::listen_again(std::string_view changed) {
  const auto hangs_on_it = [&](std::string_view entrance) { return hangs_on(entrance, changed, settings); };
  // All of the old listeners go first: a new address may overlap an old one.
  std::erase_if(entrances_, [&](const Entrance& entrance) { return hangs_on_it(entrance.setting); });
  for (std::string_view setting : entrance_settings) {
    if (!hangs_on_it(setting)) continue;
    if (auto done = open(setting, entrances_); !done) return done;
  }
  return {};
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

std::uint16_t Server::bound_port(std::string_view setting) const {
  const auto entrance =
      std::ranges::find_if(entrances_, [&](const Entrance& e) { return e.setting == setting; });
  return entrance == entrances_.end() ? 0 : entrance->listener->port();
}

}  // namespace weir::kv
