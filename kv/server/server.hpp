// The server: its databases, its clients, and the execution of one request.
//
// Everything runs on the thread of one io_context. A round: connections deliver bytes, clients split them
// into requests, and execute() runs each and adds its reply to the client's queue. At the end of the round
// end_round() sends all queues, serves waiting clients and frees ended ones.
//
// The state that its parts go by is in ServerCommon; what commands see is ServerParts. The server owns the
// parts and knows them all; no part and no command includes this header.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/call/server_parts.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/client_host.hpp"
#include "kv/clients/client_pause.hpp"
#include "kv/clients/client_turns.hpp"
#include "kv/clients/monitors.hpp"
#include "kv/clients/notifications.hpp"
#include "kv/clients/output_limits.hpp"
#include "kv/clients/pubsub.hpp"
#include "kv/clients/slow_work.hpp"
#include "kv/clients/tracking.hpp"
#include "kv/clients/watches.hpp"
#include "kv/command/command.hpp"
#include "kv/core/eviction.hpp"
#include "kv/core/keys_under_way.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/core/uncounted_memory.hpp"
#include "kv/effects/effects.hpp"
#include "kv/endpoints/dialler.hpp"
#include "kv/endpoints/handshakes.hpp"
#include "kv/endpoints/listeners.hpp"
#include "kv/endpoints/transports.hpp"
#include "kv/migration/migrations.hpp"
#include "kv/net/connection.hpp"

namespace weir::kv {

class Server final : public ServerParts, public BlockingHost {
 public:
  Server(asio::io_context& io, Settings initial, Surroundings given);
  ~Server();

  // Loads the users, then opens the listeners that the settings ask for. The error is for a user to read.
  std::expected<void, std::string> listen();
  std::uint16_t port(std::string_view type) const { return listeners_.port_of_type(type); }
  // Closes every client and listener. The io_context's run() returns when nothing is left.
  void shut_down();

  // Takes a new connection from any listener.
  void accept(std::unique_ptr<Connection> connection);

  bool execute(Client& client, Arguments arguments) override;
  bool execute_here(Client& client, Arguments arguments) override;
  void run(Client& client, const Command& command, Arguments arguments) override;

  void discard_transaction(Client& client) override;
  using ServerParts::wait_for;
  void wait_for(const Call& call, Arguments words, std::vector<std::string> keys, std::int64_t timeout_ms,
                NullForm null) override;
  bool make_room() override;
  UncountedMemory uncounted_memory() const override;
  void settings_changed() override;
  void pause(std::int64_t until_ms, Paused what) override;
  void end_pause() override;
  std::string_view write_refusal() const override;
  std::string_view snapshot_refusal() const override;
  void restore_history(const repl::PlaceInHistory& place) override;
  bool paused() const override { return pause_.any(); }
  const ClientPause& client_pause() const override { return pause_; }
  void hold_writes(HeldFor what) override;
  void let_writes(HeldFor what) override;

  void begin_round() override { refresh_time(); }
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

 private:
  LogLine log_line() const {
    return [this](LogLevel level, std::string_view text) { log(level, text); };
  }
  void reject(Client& client, const Command* command, std::string_view error);
  std::string unknown_command(Arguments arguments) const;
  bool held_back(const Client& client, const Command& command, Arguments arguments) const;
  void close_because(Client& client, const std::string& why);
  bool protects_from(const Connection& connection) const;
  void close_idle();
  void pause_changed();
  void go_on(std::uint64_t client);
  std::int64_t next_expiry_look_ms() const;
  void expire_due();
  void free_in_turns();

  PubSub pubsub_;
  Notifications notifications_{pubsub_};
  Tracking tracking_{*this};
  AccessControl access_{*this};
  Monitors monitors_{*this};
  Watches watches_;
  SlowWork slow_work_{*this};
  Blocking blocking_{*this, *this};
  KeysUnderWay keys_under_way_;
  Effects effects_{watches_, blocking_, tracking_, keys_under_way_};
  const std::shared_ptr<aof::AppendOnly> append_only_;  // the server's alone
  const std::unique_ptr<FunctionLibraries> functions_;
  const std::unique_ptr<Snapshots> snapshots_;
  const std::unique_ptr<Scripts> scripts_;
  const std::unique_ptr<migration::Migrations> migrations_;
  std::unique_ptr<repl::Replication> replication_;  // made last
  Transports transports_;
  Dialler dialler_{settings, transports_};
  Listeners listeners_;
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
