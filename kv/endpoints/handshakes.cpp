#include "kv/endpoints/handshakes.hpp"

namespace weir::kv {

// nullptr: every client is established or gone.
const Connection* Handshakes::first_not_established() {
  while (!here_.empty()) {
    const Connection* const connection = find_(here_.front().client);
    if (connection != nullptr && !connection->established()) return connection;
    here_.pop_front();
  }
  return nullptr;
}

std::int64_t Handshakes::next_deadline_ms() {
  if (settings_.tls_handshake_timeout_s == 0 || first_not_established() == nullptr) return 0;
  return here_.front().since_ms + settings_.tls_handshake_timeout_s * 1000;
}

void Handshakes::close_late(std::int64_t now_ms) {
  for (std::int64_t due; (due = next_deadline_ms()) != 0 && due <= now_ms;) {
    const std::string missing =
        first_not_established()->kind() == "rdma" ? "buffer announced" : "TLS handshake";
    close_(here_.front().client,
           "no " + missing + " for " + std::to_string(settings_.tls_handshake_timeout_s) + " s");
  }
}

}  // namespace weir::kv
