// The server: its databases, its clients, and the execution of one request.
//
// Everything runs on the thread of one io_context. A round: connections deliver bytes, clients split them
// into requests, and execute() runs each and adds its reply to the client's queue. At the end of the round
// end_round() sends all queues, serves waiting clients and frees ended ones.
//
// Time comes from the clock given at construction, and is read once per delivery, so a test can set it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kv/commands/command.hpp"
#include "kv/effects/effects.hpp"
#include "kv/heap.hpp"
#include "kv/migration/keys_under_way.hpp"
#include "kv/migration/migrations.hpp"
#include "kv/net/connection.hpp"
#include "kv/persistence/disk.hpp"
#include "kv/persistence/loading.hpp"
#include "kv/server/access_control.hpp"
#include "kv/server/blocking.hpp"
#include "kv/server/client.hpp"
#include "kv/server/client_budget.hpp"
#include "kv/server/client_pause.hpp"
#include "kv/server/clients.hpp"
#include "kv/server/cycles.hpp"
#include "kv/server/dialler.hpp"
#include "kv/server/eviction.hpp"
#include "kv/server/handshakes.hpp"
#include "kv/server/latency_events.hpp"
#include "kv/server/listeners.hpp"
#include "kv/server/log_line.hpp"
#include "kv/server/monitors.hpp"
#include "kv/server/notifications.hpp"
#include "kv/server/pubsub.hpp"
#include "kv/server/settings.hpp"
#include "kv/server/slowlog.hpp"
#include "kv/server/stats.hpp"
#include "kv/server/strangers.hpp"
#include "kv/server/tracking.hpp"
#include "kv/server/transports.hpp"
#include "kv/server/watches.hpp"
#include "kv/store/lazy_free.hpp"

namespace weir::kv::aof {
class AppendOnly;
}

namespace weir::kv {

class Scripts;
class Snapshots;

namespace repl {
class Replication;
}

namespace cluster {
class Gateway;
}

// What the surrounding program gives the server; see main.cpp.
struct Surroundings {
  std::function<std::int64_t()> clock_us;  // since 1970
  LogLine log;
  std::uint64_t seed = 0;
  std::string executable;
  std::string config_file;
  std::string library_path;    // LD_LIBRARY_PATH, which may hold RDMA libraries
  std::function<void()> stop;  // SHUTDOWN
  // Asks the system for descriptors for so many clients; returns how many it can serve. Empty: any number.
  std::function<std::int64_t(std::int64_t clients)> make_way_for_clients;
  Disk disk;
};

class Server {
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

  // Runs one request. Afterwards the reply is in the client's queue, or the client is blocked. False: the
  // client is paused, and the request must be offered again later.
  bool execute(Client& client, Arguments arguments);
  // Likewise, after a gateway has decided that it is the request's turn.
  bool execute_here(Client& client, Arguments arguments);
  // Runs a command that has passed all checks: for EXEC and for blocked clients.
  void run(Client& client, const Command& command, Arguments arguments);

  void discard_transaction(Client& client);
  // For blocking commands that found nothing: parks the client. When the command is tried
  // again, leaves it parked.
  void wait_for(const Call& call, std::vector<std::string> keys, std::int64_t timeout_ms, NullForm null) {
    wait_for(call, call.arguments, std::move(keys), timeout_ms, null);
  }
  // Likewise, for a command that is tried again with other words.
  void wait_for(const Call& call, Arguments words, std::vector<std::string> keys, std::int64_t timeout_ms,
                NullForm null);
  std::size_t peak_memory() const { return std::max(peak_memory_, used_memory()); }
  // Keeps the data within maxmemory, unless something else decides what is evicted; returns false if
  // nothing more can be evicted.
  bool make_room();
  void reset_stats() { stats = Stats(); }
  // Recomputes everything that depends on the settings.
  void settings_changed();
  // See ClientPause.
  void pause(std::int64_t until_ms, Paused what);
  void end_pause();
  bool paused() const { return pause_.any(); }

  // The client has output to send at the end of the round.
  void will_flush(Client& client) {
    if (client.dirty) return;
    client.dirty = true;
    dirty_.push_back(&client);
  }
  void end_round();
  // Call before replies leave: writes the commands' effects to the log. If that is required and failed,
  // closes the clients whose replies wait.
  void keep_effects();
  // The client was served; it continues with its next request at the end of the round.
  void will_resume(Client& client);
  // Ends a blocked command with an error, which counts as an error of that command.
  void fail_blocked(Client& client, std::string_view error);
  // Tries a blocked command again, for `key`. Returns false if it must still wait;
  // then there was no reply.
  bool retry_blocked(Client& client, const BlockedOn& on, std::string_view key);
  // Closes the client, and returns true, if more output waits for it than
  // client-output-buffer-limit ever allows.
  bool limit_output(Client& client);
  void forget(Client& client);  // it ends: removes it from everything; freed at the end of the round

  void refresh_time() {
    now_us = surroundings.clock_us();
    now_ms = now_us / 1000;
    if (now_ms / use_tick_ms != last_tick_) move_use_clock();
  }
  std::uint64_t random() { return random_(); }
  void log(LogLevel level, std::string_view text) const;
  // Arms the timer so that expired keys, blocked clients, idle clients, handshakes and
  // strangers are handled in time.
  void arm_timer();
  // Called by the timer: does whatever is due.
  void tick();

  // The resolution of a key's time of last use.
  static constexpr std::int64_t use_tick_ms = 100;

  asio::io_context& io;
  Settings settings;
  Surroundings surroundings;
  std::int64_t now_us = 0;
  std::int64_t now_ms = 0;
  std::int64_t started_ms = 0;
  std::size_t memory_at_start = used_memory();
  BlockPool blocks;
  Stats stats;
  RecentRates rates;
  UseClock use_clock;
  LazyFree lazy_free;
  std::vector<std::unique_ptr<Keyspace>> databases;
  Clients clients;
  PubSub pubsub{*this};
  Notifications notifications{pubsub};
  Tracking tracking{*this};
  AccessControl access{*this};
  Monitors monitors{*this};
  Watches watches;
  SlowLog slowlog;
  LatencyEvents latency_events;
  CycleRate cycle_rate;
  Blocking blocking{*this};
  KeysUnderWay keys_under_way;
  Effects effects{watches, blocking, tracking, keys_under_way};
  const std::shared_ptr<aof::AppendOnly> append_only;  // the server's alone
  const std::unique_ptr<Scripts> scripts;
  Client* serving = nullptr;  // the client whose command runs
  // The running command may change what it looks up; a snapshot must see that first.
  bool changes_data = false;
  bool expires_in_time = true;  // false, for tests: keys expire only when accessed
  const std::unique_ptr<Snapshots> snapshots;
  const std::unique_ptr<migration::Migrations> migrations;
  std::unique_ptr<repl::Replication> replication;  // made last; never null after that
  std::unique_ptr<cluster::Gateway> gateway;       // null: this server keeps the data itself
  std::optional<LoadProgress> loading;             // a snapshot is being read
  Loaded loaded;
  bool script_suspended = false;  // it exceeded its time: other clients get BUSY, and no data changes
  std::string run_id;
  ClientBudget client_budget;
  Strangers strangers{settings, [this](Client& late, const std::string& why) { close_because(late, why); }};
  Transports transports;
  Dialler dialler{settings, transports};
  Listeners listeners;

 private:
  LogLine log_line() const {
    return [this](LogLevel level, std::string_view text) { log(level, text); };
  }
  bool refuse(Client& client, const Command* command, Arguments arguments);
  // The server did nothing else meanwhile: an event if that reached latency-monitor-threshold.
  void note_latency(std::string_view kind, std::uint64_t cycles);
  void note_slow(Client& client, const Command& command, Arguments arguments, std::uint64_t cycles);
  void reject(Client& client, const Command* command, std::string_view error);
  std::string unknown_command(Arguments arguments) const;
  bool held_back(const Client& client, const Command& command) const;
  void close_because(Client& client, const std::string& why);
  const OutputLimit& output_limit_of(const Client& client) const;
  void close_over_limit(Client& client);
  void close_largest_clients();
  void limit_unread_output(Client& client);
  void close_slow_readers();
  bool protects_from(const Connection& connection) const;
  void close_idle();
  void move_use_clock();
  void expire_due();
  void free_in_turns();
  void count_error(const Client& client) { ++stats.by_error[client.reply.last_code]; }

  std::int64_t last_tick_ = -1;
  std::size_t peak_memory_ = 0;  // sampled as the use clock moves
  std::mt19937_64 random_;
  Handshakes handshakes_{settings,
                         [this](std::uint64_t id) {
                           const auto it = clients.find(id);
                           return it == clients.end() ? nullptr : &it->second->connection();
                         },
                         [this](std::uint64_t id, const std::string& why) {
                           if (const auto it = clients.find(id); it != clients.end())
                             close_because(*it->second, why);
                         }};
  Eviction eviction_{databases, use_clock, lazy_free, settings, [this] { return random(); }};
  ClientPause pause_;
  std::vector<Client*> dirty_;
  std::vector<std::uint64_t> resumed_;
  std::vector<std::unique_ptr<Client>> ended_;
  asio::steady_timer timer_;
  asio::steady_timer free_timer_;
  std::int64_t timer_due_ms_ = 0;          // 0: not armed
  bool expiry_is_behind_ = false;          // more keys are due than one step removes
  bool frees_in_turns_ = false;            // its timer is running
  std::int64_t unread_output_due_ms_ = 0;  // when the next client will exceed its soft limit too long
  std::uint64_t next_client_id_ = 1;
  bool still_waits_ = false;
  // The errors of the current command's client that are already counted.
  std::uint64_t counted_errors_ = 0;
  std::uint64_t slow_cycles_ = 0;  // slower commands are checked for the slow log
};

}  // namespace weir::kv
