// The end of the server, as SHUTDOWN or a signal asked for it.
//
// Clients were told that their writes are done, and a replica that lags may take this server's place. So
// clients' writes are held back first, until every replica has confirmed the history up to that moment, but
// at most for shutdown-timeout. Then the data is saved as the settings or the order say, and the server
// stops. If the data cannot be saved the server goes on, unless the order forces it.
//
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "kv/persistence/snapshots.hpp"

namespace weir::kv {
class Blocking;
class ServerWhole;
struct ServerCommon;
}  // namespace weir::kv

namespace weir::kv::repl {

class Replicas;

class Shutdown {
 public:
  struct Order {
    EndWish wish = EndWish::as_configured;
    bool now = false;    // do not wait for replicas
    bool force = false;  // stop even if the data cannot be saved
  };
  enum class Begun : std::uint8_t { stopped, waits, failed };

  Shutdown(ServerCommon& server, ServerWhole& whole, Blocking& blocking, Snapshots& snapshots,
           Replicas& replicas);

  // While a shutdown waits, another order only joins it, or ends the waiting if it is to be done now.
  Begun begin(const Order& order);
  // False: none waits.
  bool abort();
  bool waits() const { return waits_; }
  // How long it still waits at most.
  std::int64_t left_ms() const;

  // A replica has confirmed some of the history, or has left.
  void replica_moved();
  // Ends the waiting without any other effect, as the server is about to go.
  void cancel() { waits_ = false, timer_.cancel(); }

  static constexpr std::string_view failed = "ERR Errors trying to SHUTDOWN. Check logs.";

 private:
  using Clock = std::chrono::steady_clock;

  void wait();
  Begun finish();
  void give_up();
  void report_lag() const;

  ServerCommon& server_;
  ServerWhole& whole_;
  Blocking& blocking_;
  Snapshots& snapshots_;
  Replicas& replicas_;
  bool waits_ = false;
  Order order_;
  std::int64_t position_ = 0;  // up to here replicas are to have the history
  asio::steady_timer timer_;
};

}  // namespace weir::kv::repl
