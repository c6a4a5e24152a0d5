#include "kv/endpoints/dialler.hpp"

#include <utility>

#include "kv/net/rdma.hpp"

namespace weir::kv {

namespace {

// The certificate shown to servers that it dials: one for that purpose, or the one shown to clients.
transport::TlsFiles tls_files_to_dial(const Settings& settings) {
  transport::TlsFiles files = tls_files(settings);
  if (settings.tls_client_cert_file.empty() || settings.tls_client_key_file.empty()) return files;
  files.certificate = settings.tls_client_cert_file;
  files.key = settings.tls_client_key_file;
  files.key_password = settings.tls_client_key_file_pass;
  return files;
}

}  // namespace

Opened<std::shared_ptr<TlsSettings>> Dialler::tls_to_primary() const {
  if (!settings_.tls_replication) return nullptr;
  return load_tls_to_dial(tls_files_to_dial(settings_));
}

std::unique_ptr<Dialling> Dialler::dial_with_tls(std::shared_ptr<TlsSettings> tls, const std::string& host,
                                                 std::uint16_t port, Dialled dialled) {
  return dial_tls(
      transports_.io(), std::move(tls), host, port,
      [&transports = transports_] { transports.end_socket_round(); }, std::move(dialled));
}

Opened<std::unique_ptr<Dialling>> Dialler::dial_primary(const std::string& host, std::uint16_t port,
                                                        Dialled dialled) {
  if (host.starts_with('/'))
    return dial_unix(transports_.sockets(), transports_.io(), host, std::move(dialled));
  auto tls = tls_to_primary();
  if (!tls) return std::unexpected(std::move(tls.error()));
  if (settings_.rdma_replication) {
    if (auto ready = transports_.start_rdma(); !ready) return std::unexpected(std::move(ready.error()));
    RdmaDial how;
    how.stream.receive_buffer_bytes = static_cast<std::uint32_t>(settings_.rdma_rx_size);
    how.tls = std::move(*tls);
    how.after_input = transports_.end_round();
    return dial_rdma(transports_.rdma(), host, port, std::move(how), std::move(dialled));
  }
  if (*tls != nullptr) return dial_with_tls(std::move(*tls), host, port, std::move(dialled));
  return dial_tcp(transports_.sockets(), transports_.io(), host, port, std::move(dialled));
}

Opened<std::unique_ptr<Dialling>> Dialler::dial_node(const std::string& host, std::uint16_t port,
                                                     Dialled dialled) {
  if (!settings_.tls_cluster)
    return dial_tcp(transports_.sockets(), transports_.io(), host, port, std::move(dialled));
  auto tls = load_tls_to_dial(tls_files_to_dial(settings_));
  if (!tls) return std::unexpected(std::move(tls.error()));
  return dial_with_tls(std::move(*tls), host, port, std::move(dialled));
}

}  // namespace weir::kv
