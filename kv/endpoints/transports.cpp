#include "kv/endpoints/transports.hpp"

#include <array>
#include <chrono>
#include <utility>

#include "rdma/engine.hpp"
#include "rdma/provider.hpp"

namespace weir::kv {

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

Transports::Transports(asio::io_context& io, const Settings& settings, std::string library_path,
                       std::function<void()> end_round, LogLine log)
    : io_(io),
      settings_(settings),
      library_path_(std::move(library_path)),
      end_round_(std::move(end_round)),
      log_(std::move(log)),
      idle_spin_(io, std::chrono::microseconds(settings.idle_spin_us), [this] { return rdma_polls(); }),
      sockets_(io, [this] { end_socket_round(); }) {}

void Transports::end_socket_round() {
  end_round_();
  idle_spin_.worked();
}

std::expected<void, std::string> Transports::start_rdma() {
  if (rdma_ != nullptr) return {};
  rdma::ProviderOptions options;
  constexpr std::array choices{rdma::ProviderChoice::automatic, rdma::ProviderChoice::weir,
                               rdma::ProviderChoice::system};
  options.choice = choices[static_cast<std::size_t>(settings_.rdma_provider)];
  options.library_path = library_path_;
  auto provider = rdma::load_provider(options);
  if (!provider) return std::unexpected("Could not start RDMA: " + provider.error().what);
  rdma::EngineSettings engine_settings;
  engine_settings.idle_spin = std::chrono::microseconds(settings_.idle_spin_us);
  engine_settings.completion_vector = static_cast<int>(settings_.rdma_comp_vector);
  engine_settings.warn = [this](const std::string& line) { log_(LogLevel::warning, line); };
  auto engine = rdma::Engine::open(io_, *provider, engine_settings);
  if (!engine) return std::unexpected("Could not start RDMA: " + engine.error().what);
  rdma_ = *engine;
  rdma_provider_ = provider->kind() == rdma::Provider::Kind::weir ? "weir" : "system";
  log_(LogLevel::notice, "RDMA: " + provider->describe());
  return {};
}

bool Transports::rdma_polls() const { return rdma_ != nullptr && rdma_->awake(); }

std::uint64_t Transports::rdma_refused_accesses() const {
  return rdma_ != nullptr ? rdma_->stats().trespasses : 0;
}

std::expected<void, std::string> Transports::start_tls() {
  return tls_ != nullptr ? std::expected<void, std::string>() : load_tls_again();
}

std::expected<void, std::string> Transports::load_tls_again() {
  if (settings_.tls_port == 0 && settings_.rdma_tls_port == 0) {
    tls_.reset();  // a TLS port opened later reads the files as they are then
    return {};
  }
  auto taken = load_tls(tls_files(settings_));
  if (!taken) return std::unexpected(taken.error());
  tls_ = std::move(*taken);
  return {};
}

}  // namespace weir::kv
