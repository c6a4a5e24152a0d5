// Clients that are not established yet: a TLS handshake is under way, or over RDMA no buffer has been
// announced. tls-handshake-timeout limits how long that may take. Which of them leaves when others need its
// place is not decided here but in transport/handshake_places.hpp and kv/core/strangers.hpp.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "kv/net/connection.hpp"
#include "kv/settings/settings.hpp"

namespace weir::kv {

class Handshakes {
 public:
  // The connection of the client with this number; nullptr if it is gone.
  using Find = std::function<const Connection*(std::uint64_t client)>;
  // Closes the client; the reason is for the log.
  using Close = std::function<void(std::uint64_t client, const std::string& why)>;

  Handshakes(const Settings& settings, Find find, Close close)
      : settings_(settings), find_(std::move(find)), close_(std::move(close)) {}

  // Notes a new client that is not established.
  void begin(std::uint64_t client, std::int64_t now_ms) { here_.push_back({client, now_ms}); }
  // The deadline of the next handshake; 0: none is in progress, or there is no limit.
  std::int64_t next_deadline_ms();
  void close_late(std::int64_t now_ms);

 private:
  struct Waiting {
    std::uint64_t client;
    std::int64_t since_ms;
  };

  const Connection* first_not_established();

  const Settings& settings_;
  const Find find_;
  const Close close_;
  // In order of arrival. A client that is established or gone by now leaves when it reaches the front.
  std::deque<Waiting> here_;
};

}  // namespace weir::kv
