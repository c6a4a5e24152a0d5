// FAILOVER: this primary and one of its replicas change places, and no write is lost.
//
// Clients' writes are held back until the replica has confirmed the whole history; nothing else is added to
// it meanwhile. Then this server follows the replica, and asks it with "PSYNC id position FAILOVER" to take
// over. If it does, its answer to PSYNC says so, and this server goes on as its replica. If it refuses, or
// cannot be reached for repl-timeout before it was asked, this server is a primary again. Once it was asked
// and its answer is lost, nobody knows which of the two is the primary: then the question is repeated until
// an answer comes, or somebody calls it off.
//
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kv/core/primary.hpp"

namespace weir::kv {
class Client;
class ServerWhole;
struct ServerCommon;
}  // namespace weir::kv

namespace weir::kv::repl {

class Replicas;

class Failover {
 public:
  enum class Stage : std::uint8_t { none, waits_for_sync, in_progress };

  struct Order {
    std::optional<PrimaryAddress> to;  // nullopt: the first replica that has everything
    bool force = false;                // after the timeout, hand over to `to` whatever it lacks
    std::int64_t timeout_ms = 0;       // 0: wait for ever
  };
  // How the server changes its role.
  struct Role {
    std::function<void(PrimaryAddress)> follow;
    std::function<void()> follow_nobody;
  };

  Failover(ServerCommon& server, ServerWhole& whole, Replicas& replicas);

  Stage stage() const { return stage_; }
  bool under_way() const { return stage_ != Stage::none; }
  bool in_progress() const { return stage_ == Stage::in_progress; }
  std::string_view stage_name() const;

  // The error is for a client to read; empty: it has begun.
  std::string_view begin(Order order, Role role);
  // False: none is under way.
  bool abort();
  // A replica has confirmed something, or has left.
  void replica_moved();

  // What the link to the replica reports.
  void asked() { asked_ = true; }
  void accepted();
  void refused(std::string_view answer);

  // The server ends.
  void cancel() { stage_ = Stage::none, timer_.cancel(); }

 private:
  void look();
  void hand_over(PrimaryAddress to);
  void time_is_up();
  void call_off(std::string_view why);
  void end();
  void look_after(std::chrono::steady_clock::duration wait);
  const Client* ready_replica() const;

  ServerCommon& server_;
  ServerWhole& whole_;
  Replicas& replicas_;
  Stage stage_ = Stage::none;
  Order order_;
  Role role_;
  bool asked_ = false;  // the replica may have taken over
  std::optional<std::chrono::steady_clock::time_point> until_;
  asio::steady_timer timer_;
};

}  // namespace weir::kv::repl
