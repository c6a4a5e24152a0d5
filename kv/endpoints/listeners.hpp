// The listeners that the settings ask for: opened at start, and again when CONFIG SET changes one.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv/core/log_line.hpp"
#include "kv/endpoints/transports.hpp"
#include "kv/net/listener.hpp"
#include "kv/settings/settings.hpp"

namespace weir::kv {

class Listeners {
 public:
  using Open = std::function<OpenedListener(const std::string& address, std::uint16_t port)>;

  // `accept` takes each client.
  Listeners(const Settings& settings, Transports& transports, Accept accept, LogLine log);

  // Opens all listeners or none; `open_metrics` opens the one for Prometheus, also later. The
  // error is for a user to read.
  std::expected<void, std::string> open_all(Open open_metrics);
  // Reopens the listeners that depend on a changed setting. The old listeners are gone even on failure: the
  // caller restores the setting and calls this again.
  std::expected<void, std::string> open_again(std::string_view changed);
  // Whether the setting determines where a listener listens: a port or addresses.
  bool depend_on(std::string_view setting) const;
  void close_all() { open_.clear(); }

  // "tcp 127.0.0.1:6379" for each.
  std::vector<std::string> where() const;
  // The port that was bound; 0: no such listener. Looked up by type ("tcp") or by the setting that asked for
  // the listener ("tls-port").
  std::uint16_t port_of_type(std::string_view type) const;
  std::uint16_t port_of_setting(std::string_view setting) const;

 private:
  struct Entry {
    std::string setting;  // a change of this setting reopens it
    std::unique_ptr<Listener> listener;
  };
  using Entries = std::vector<Entry>;

  std::expected<void, std::string> open(std::string_view setting, Entries& into);
  std::expected<void, std::string> open_each(std::string_view setting, std::string_view bind,
                                             std::int64_t port, const Open& open, Entries& into);
  std::expected<void, std::string> open_unix(Entries& into);
  std::expected<void, std::string> open_rdma(std::string_view setting, bool secured, Entries& into);
  SocketOptions socket_options() const;

  const Settings& settings_;
  Transports& transports_;
  const Accept accept_;
  const Log warn_;
  Open open_metrics_;
  Entries open_;
};

}  // namespace weir::kv
