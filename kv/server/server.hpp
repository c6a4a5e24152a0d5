// The server: its databases, its clients, and the execution of one request.
//
// Everything runs on the thread of one io_context. A round: connections deliver bytes, clients split them
// into requests, and execute() runs each and adds its reply to the client's queue. At the end of the round
// end_round() sends all queues, serves waiting clients and frees ended ones.
//
// The state that its parts go by is in ServerCommon. The server owns the parts and knows them all; no part
// includes this header.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv/commands/command.hpp"
#include "kv/effects/effects.hpp"
#include "kv/migration/keys_under_way.hpp"
#include "kv/migration/migrations.hpp"
#include "kv/net/connection.hpp"
#include "kv/server/access_control.hpp"
#include "kv/server/blocking.hpp"
#include "kv/server/client.hpp"
#include "kv/server/client_host.hpp"
#include "kv/server/client_pause.hpp"
#include "kv/server/client_turns.hpp"
#include "kv/server/dialler.hpp"
#include "kv/server/eviction.hpp"
#include "kv/server/handshakes.hpp"
#include "kv/server/listeners.hpp"
#include "kv/server/monitors.hpp"
#include "kv/server/notifications.hpp"
#include "kv/server/output_limits.hpp"
#include "kv/server/pubsub.hpp"
#include "kv/server/server_common.hpp"
#include "kv/server/server_whole.hpp"
#include "kv/server/slow_work.hpp"
#include "kv/server/tracking.hpp"
#include "kv/server/transports.hpp"
#include "kv/server/uncounted_memory.hpp"
#include "kv/server/watches.hpp"

namespace weir::kv::aof {
class AppendOnly;
}

namespace weir::kv {

class FunctionLibraries;
class Scripts;
class Snapshots;

namespace repl {
class Replication;
}

class Server final : public ServerCommon, public ServerWhole, public ClientHost, public BlockingHost {
 public:
  Server(asio::io_context& io, Settings initial, Surroundings given);
  ~Server();

  // Loads the users, then opens the listeners that the settings ask for. The error is for a user to read.
  std::expected<void, std::string> listen();
  std::uint16_t port(std::string_view type) const { return listeners.port_of_type(type); }
  // Closes every client and listener. The io_context's run() returns when nothing is left.
  void shut_down();

  // Takes a new connection from any listener.
  void accept(std::unique_ptr<Connection> connection);

  bool execute(Client& client, Arguments arguments) override;
  // Likewise, after a gateway has decided that it is the request's turn.
  bool execute_here(Client& client, Arguments arguments);
  void run(Client& client, const Command& command, Arguments arguments) override;

  void discard_transaction(Client& client);
  // For blocking commands that found nothing: parks the client. When the command is tried
  // again, leaves it parked.
  void wait_for(const Call& call, std::vector<std::string> keys, std::int64_t timeout_ms, NullForm null) {
    wait_for(call, call.arguments, std::move(keys), timeout_ms, null);
  }
  // Likewise, for a command that is tried again with other words.
  void wait_for(const Call& call, Arguments words, std::vector<std::string> keys, std::int64_t timeout_ms,
                NullForm null);
  bool make_room() override;
  UncountedMemory uncounted_memory() const;
  void reset_stats() { stats = Stats(); }
  // Recomputes everything that depends on the settings.
  void settings_changed();
  // See ClientPause. `until_ms` is of the steady clock.
  void pause(std::int64_t until_ms, Paused what);
  void end_pause();
  std::string_view write_refusal() const override;
  bool paused() const override { return pause_.any(); }
  void hold_writes(HeldFor what) override;
  void let_writes(HeldFor what) override;

  void end_round() override;
  void keep_effects() override;
  bool retry_blocked(Client& client, const BlockedOn& on, std::string_view key) override;
  void answer_in_vain(Client& client) override;
  void released(Client& client, const Command& command) override;
  bool limit_output(Client& client) override { return output_limits_.limit(client); }
  void replica_drained(Client& client) override;
  void give_turn_later(Client& client) override { turns_.wait(client.id()); }
  void forget(Client& client) override;
  void arm_timer() override;
  // Called by the timer: does whatever is due.
  void tick();

  PubSub pubsub;
  Notifications notifications{pubsub};
  Tracking tracking{*this};
  AccessControl access{*this};
  Monitors monitors{*this};
  Watches watches;
  SlowWork slow_work{*this};
  Blocking blocking{*this, *this};
  KeysUnderWay keys_under_way;
  Effects effects{watches, blocking, tracking, keys_under_way};
  const std::shared_ptr<aof::AppendOnly> append_only;  // the server's alone
  const std::unique_ptr<FunctionLibraries> functions;
  bool expires_in_time = true;  // false, for tests: keys expire only when accessed
  const std::unique_ptr<Snapshots> snapshots;
  const std::unique_ptr<Scripts> scripts;
  const std::unique_ptr<migration::Migrations> migrations;
  std::unique_ptr<repl::Replication> replication;  // made last; never null after that
  Transports transports;
  Dialler dialler{settings, transports};
  Listeners listeners;

 private:
  LogLine log_line() const {
    return [this](LogLevel level, std::string_view text) { log(level, text); };
  }
  bool refuse(Client& client, const Command* command, Arguments arguments);
  void reject(Client& client, const Command* command, std::string_view error);
  std::string unknown_command(Arguments arguments) const;
  bool held_back(const Client& client, const Command& command) const;
  void close_because(Client& client, const std::string& why);
  bool protects_from(const Connection& connection) const;
  void close_idle();
  void pause_changed();
  void go_on(std::uint64_t client);
  std::int64_t next_expiry_look_ms() const;
  void expire_due();
  void free_in_turns();

  Handshakes handshakes_{settings,
                         [this](std::uint64_t id) {
                           const auto it = clients.find(id);
                           return it == clients.end() ? nullptr : &it->second->connection();
                         },
                         [this](std::uint64_t id, const std::string& why) {
                           if (const auto it = clients.find(id); it != clients.end())
                             close_because(*it->second, why);
                         }};
  Eviction eviction_{databases,
                     use_clock,
                     lazy_free,
                     settings,
                     [this] { return random(); },
                     [this] { return uncounted_memory().all(); }};
  ClientPause pause_;
  ClientTurns turns_{io, [this](std::uint64_t client) { go_on(client); }};
  OutputLimits output_limits_{*this, *this};
  asio::steady_timer timer_;
  asio::steady_timer free_timer_;
  std::int64_t timer_due_ms_ = 0;  // 0: not armed
  bool expiry_is_behind_ = false;  // more keys are due than one step removes
  bool frees_in_turns_ = false;    // its timer is running
  std::uint64_t next_client_id_ = 1;
  bool still_waits_ = false;
  // The errors of the current command's client that are already counted.
  std::uint64_t counted_errors_ = 0;
};

}  // namespace weir::kv
