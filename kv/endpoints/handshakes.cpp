#include "kv/endpoints/handshakes.hpp"

#include <algorithm>
#include <chrono>

#include "transport/handshake_places.hpp"

namespace weir::kv {

void Handshakes::begin(std::uint64_t client, bool crowded, std::int64_t now_ms) {
  const Connection* const connection = find_(client);
  const bool hurries = crowded && connection != nullptr && connection->kind().ends_with("tls");
  (hurries ? hurried_ : calm_).push_back({client, now_ms});
}

// nullptr: every client in `row` is established or gone.
const Connection* Handshakes::first_not_established(Row& row) const {
  while (!row.empty()) {
    const Connection* const connection = find_(row.front().client);
    if (connection != nullptr && !connection->established()) return connection;
    row.pop_front();
  }
  return nullptr;
}

// 0: no limit.
std::int64_t Handshakes::limit_ms(const Row& row) const {
  const std::int64_t calm_ms = settings_.tls_handshake_timeout_s * 1000;
  if (&row != &hurried_) return calm_ms;
  const std::int64_t hurried_ms = std::chrono::milliseconds(transport::HandshakePlaces::hurried).count();
  return calm_ms == 0 ? hurried_ms : std::min(calm_ms, hurried_ms);
}

std::int64_t Handshakes::next_deadline_ms() {
  std::int64_t next = 0;
  for (Row* row : {&calm_, &hurried_}) {
    if (limit_ms(*row) == 0 || first_not_established(*row) == nullptr) continue;
    const std::int64_t due = row->front().since_ms + limit_ms(*row);
    next = next == 0 ? due : std::min(next, due);
  }
  return next;
}

void Handshakes::close_late(std::int64_t now_ms) {
  for (Row* row : {&calm_, &hurried_}) {
    const std::int64_t limit = limit_ms(*row);
    if (limit == 0) continue;
    while (const Connection* const late = first_not_established(*row)) {
      if (row->front().since_ms + limit > now_ms) break;
      const std::string missing = late->kind() == "rdma" ? "buffer announced" : "TLS handshake";
      close_(row->front().client, "no " + missing + " for " + std::to_string(limit / 1000) + " s" +
                                      (row == &hurried_ ? "; many others wait to begin theirs" : ""));
    }
  }
}

}  // namespace weir::kv
