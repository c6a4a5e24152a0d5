// The server: its databases, its clients, and how one request is executed.
//
// Everything runs on the thread of one io_context. A round: connections deliver bytes, clients cut them into
// requests, execute() runs each and its reply joins the client's queue; at the end of the round end_round()
// sends all queues, serves and frees what is left over.
//
// Time comes from the clock given at construction and is read once for each delivery, so a test can set it.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/node_hash_map.h>

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
#include "kv/net/dialling.hpp"
#include "kv/net/listener.hpp"
#include "kv/net/poller.hpp"
#include "kv/persistence/disk.hpp"
#include "kv/persistence/loading.hpp"
#include "kv/server/access_control.hpp"
#include "kv/server/blocking.hpp"
#include "kv/server/client.hpp"
#include "kv/server/cycles.hpp"
#include "kv/server/latency_events.hpp"
#include "kv/server/latency_histogram.hpp"
#include "kv/server/monitors.hpp"
#include "kv/server/notifications.hpp"
#include "kv/server/pubsub.hpp"
#include "kv/server/recent_rate.hpp"
#include "kv/server/settings.hpp"
#include "kv/server/slowlog.hpp"
#include "kv/server/strangers.hpp"
#include "kv/server/tracking.hpp"
#include "kv/server/watches.hpp"
#include "kv/store/lazy_free.hpp"
#include "waiting/idle_spin.hpp"

namespace weir::rdma {
class Engine;
}

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

// What CLIENT PAUSE holds back.
enum class Paused : std::uint8_t { nothing, writes, everything };

enum class LogLevel : int { debug, verbose, notice, warning };

struct Stats {
  std::uint64_t connections = 0, rejected = 0, commands = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t expired = 0, evicted = 0, hits = 0, misses = 0, error_replies = 0;
  struct Calls {
    std::uint64_t calls = 0, rejected = 0, failed = 0;
    std::uint64_t cycles = 0;
    LatencyHistogram latency;  // of calls that did not block, or of what served them once something came
  };
  absl::node_hash_map<const Command*, Calls> by_command;
  absl::btree_map<std::string, std::uint64_t> by_error;  // the code: "WRONGTYPE"
};

// What the outside gives the server; see main.cpp.
struct Surroundings {
  std::function<std::int64_t()> clock_us;  // since 1970
  std::function<void(LogLevel, std::string_view)> log;
  std::uint64_t seed = 0;
  std::string executable;
  std::string config_file;
  std::string library_path;    // LD_LIBRARY_PATH, where RDMA libraries may be
  std::function<void()> stop;  // SHUTDOWN
  // Asks the system for descriptors for so many clients; returns for how many there are. Empty: any number.
  std::function<std::int64_t(std::int64_t clients)> make_way_for_clients;
  Disk disk;
};

class Server {
 public:
  Server(asio::io_context& io, Settings initial, Surroundings given);
  ~Server();

  // Opens the listeners the settings ask for. The error is fit to show a user.
  std::expected<void, std::string> listen();
  // What it listens on: "tcp 127.0.0.1:6379".
  std::vector<std::string> listening() const;
  std::uint16_t port(std::string_view kind) const;  // the really bound one, 0 if it does not listen so
  // The same by the setting that asked for it: "tls-port".
  std::uint16_t bound_port(std::string_view setting) const;
  // Whether it says where some listener listens: its port, or the addresses.
  bool listeners_hang_on(std::string_view setting) const;
  // Reopens the listeners that depend on a setting that changed. The old listeners are gone on failure, too:
  // the caller sets the setting back and calls this again.
  std::expected<void, std::string> listen_again(std::string_view changed);
  // Rereads the certificates, for clients that connect from now on; keeps the old ones on failure.
  std::expected<void, std::string> load_tls_again();
  // Ends every client and listener; run() of the io_context returns when nothing is left.
  void shut_down();

  // What a connection to another server is made with; null: without TLS. Read each time: files are renewed.
  Opened<std::shared_ptr<TlsSettings>> tls_to_dial() const;
  // Begins a connection to another server, in the way that the settings say. The error: the TLS files, or
  // RDMA, cannot be used.
  Opened<std::unique_ptr<Dialling>> dial(const std::string& host, std::uint16_t port, Dialled dialled);
  // The same to a node of a cluster: over TCP, with TLS if tls-cluster says so.
  Opened<std::unique_ptr<Dialling>> dial_cluster(const std::string& host, std::uint16_t port,
                                                 Dialled dialled);

  // A connection came in, through whichever listener.
  void accept(std::unique_ptr<Connection> connection);

  // Runs one request; the reply is in the client's queue afterwards (or it is blocked).
  // False: the client is paused and the request must be offered again later.
  bool execute(Client& client, Arguments arguments);
  // The same after a gateway has decided that it is the request's turn.
  bool execute_here(Client& client, Arguments arguments);
  // Runs a command that has passed all checks: for EXEC and for blocked clients.
  void run(Client& client, const Command& command, Arguments arguments);

  void discard_transaction(Client& client);
  // For blocking commands that found nothing: parks the client (or, when it is tried again, leaves it
  // parked).
  void wait_for(const Call& call, std::vector<std::string> keys, std::int64_t timeout_ms, NullForm null) {
    wait_for(call, call.arguments, std::move(keys), timeout_ms, null);
  }
  // The same for a command that is tried again with other words.
  void wait_for(const Call& call, Arguments words, std::vector<std::string> keys, std::int64_t timeout_ms,
                NullForm null);
  std::size_t peak_memory() const { return std::max(peak_memory_, used_memory()); }
  // Evicts until the data fits maxmemory, or evicts a part of what has to go; returns false if nothing more
  // can be evicted.
  bool make_room();
  void reset_stats();
  // Recomputes everything derived from the settings.
  void settings_changed();
  // A pause in force is neither shortened nor relaxed by another one. A pause that has already expired may
  // still tighten the mode, and has no other effect.
  void pause(std::int64_t until_ms, Paused what);
  void end_pause();
  bool paused() const { return paused_ != Paused::nothing; }

  // The client has something to send at the end of the round.
  void will_flush(Client& client) {
    if (client.dirty) return;
    client.dirty = true;
    dirty_.push_back(&client);
  }
  void end_round();
  // Call before replies leave: puts what was done into the log. If that was required and failed, clients
  // whose replies wait are closed without them.
  void keep_effects();
  // The same for sockets, which the loop looks at a little longer now.
  void end_socket_round();
  // The client was served and continues with its next request at the end of the round.
  void will_resume(Client& client);
  // Ends the wait of a blocked command with an error; it counts as one of that command.
  void fail_blocked(Client& client, std::string_view error);
  // Tries a blocked command again, for `key`; returns false if it still has to wait, and nothing was
  // answered.
  bool retry_blocked(Client& client, const BlockedOn& on, std::string_view key);
  // Ends the client if more output waits for it than client-output-buffer-limit ever allows; returns true if
  // it did.
  bool limit_output(Client& client);
  void forget(Client& client);  // it ends: leave no trace of it; freed at the end of the round

  void refresh_time() {
    now_us = surroundings.clock_us();
    now_ms = now_us / 1000;
    if (now_ms / use_tick_ms != last_tick_) move_use_clock();
  }
  std::uint64_t random() { return random_(); }
  void log(LogLevel level, std::string_view text) const;
  // Arms the timer so that expired keys, blocked clients, idle clients, handshakes and strangers are handled
  // in time.
  void arm_timer();
  // Does what is due by the clock; the timer calls it.
  void tick();

  // How fine the time of a key's last use is.
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
  RecentRate command_rate, input_rate, output_rate;
  UseClock use_clock;
  LazyFree lazy_free;
  std::vector<std::unique_ptr<Keyspace>> databases;
  absl::btree_map<std::uint64_t, std::unique_ptr<Client>> clients;
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
  Effects effects{watches, blocking, tracking};
  const std::shared_ptr<aof::AppendOnly> append_only;  // the server's alone
  const std::unique_ptr<Scripts> scripts;
  Client* serving = nullptr;  // whose command runs
  // A command runs that may change what it looks up: a snapshot wants to see that first.
  bool changes_data = false;
  bool expires_in_time = true;  // false, for tests: keys whose time has come go when somebody looks
  const std::unique_ptr<Snapshots> snapshots;
  std::unique_ptr<repl::Replication> replication;  // made last, and never null then
  std::unique_ptr<cluster::Gateway> gateway;       // null: this server keeps the data itself
  std::optional<LoadProgress> loading;             // a snapshot is being read
  Loaded loaded;
  bool script_suspended = false;  // it took too long: others are answered BUSY, and no data changes
  std::string run_id;
  Strangers strangers;
  std::string rdma_provider;  // what was taken; empty: no RDMA

 private:
  struct Entrance {
    std::string setting;  // whose change reopens it
    std::unique_ptr<Listener> listener;
  };
  using Entrances = std::vector<Entrance>;

  bool paused_for(const Client& client, const Command& command) const;
  bool refuse(Client& client, const Command* command, Arguments arguments);
  // The server did nothing else meanwhile: an event, where that is as long as latency-monitor-threshold.
  void note_latency(std::string_view kind, std::uint64_t cycles);
  void note_slow(Client& client, const Command& command, Arguments arguments, std::uint64_t cycles);
  Stats::Calls& calls_of(const Command& command);
  void reject(Client& client, const Command* command, std::string_view error);
  std::string unknown_command(Arguments arguments) const;
  using ListenOn = std::function<OpenedListener(const std::string& address, std::uint16_t port)>;

  std::expected<void, std::string> open(std::string_view setting, Entrances& into);
  std::expected<void, std::string> open_each(std::string_view setting, std::string_view bind,
                                             std::int64_t port, const ListenOn& listen_on, Entrances& into);
  std::expected<void, std::string> start_rdma();
  bool rdma_polls() const;
  std::expected<void, std::string> start_tls();
  bool protects_from(const Connection& connection) const;
  const OutputLimit& output_limit_of(const Client& client) const;
  void close_over_limit(Client& client);
  void limit_unread_output(Client& client);
  void close_slow_readers();
  void close_idle();
  Client* first_not_established(std::deque<std::uint64_t>& row);
  std::int64_t handshake_limit_ms(const std::deque<std::uint64_t>& row) const;
  std::int64_t next_handshake_deadline_ms();
  void close_unfinished_handshakes();
  std::int64_t next_stranger_deadline_ms() const;
  void close_late_strangers();
  void make_room_among_strangers();
  bool evict_one(EvictionPolicy policy);

  void move_use_clock();
  void expire_due();
  void free_in_turns();
  void count_error(const Client& client) { ++stats.by_error[client.reply.last_code]; }

  std::int64_t last_tick_ = -1;
  std::size_t peak_memory_ = 0;  // seen as the use clock moved
  std::mt19937_64 random_;
  waiting::IdleSpin idle_spin_;
  SocketPoller poller_;
  Entrances entrances_;
  std::shared_ptr<TlsSettings> tls_;
  rdma::Engine* rdma_engine_ = nullptr;  // the io_context's
  // Of the listeners for TLS together.
  std::shared_ptr<transport::HandshakePlaces> handshakes_ = std::make_shared<transport::HandshakePlaces>();
  // Clients that were not established when they came, in that order. One that is by now, or is gone, leaves
  // when it has become the first. Those in hurried_ came while half of the places for handshakes were taken.
  std::deque<std::uint64_t> handshaking_, hurried_;
  std::vector<Client*> dirty_;
  std::vector<std::uint64_t> resumed_;
  std::vector<std::unique_ptr<Client>> ended_;
  asio::steady_timer timer_;
  asio::steady_timer free_timer_;
  std::int64_t timer_due_ms_ = 0;          // 0: not armed
  bool expiry_is_behind_ = false;          // more keys are due than were removed at once
  bool frees_in_turns_ = false;            // the timer for it runs
  bool room_is_being_made_ = false;        // more keys have to go than were evicted at once
  std::int64_t unread_output_due_ms_ = 0;  // when the next client will have been over its soft limit too long
  std::uint64_t next_client_id_ = 1;
  const Command* counted_ = nullptr;  // whose statistics counted_calls_ are
  Stats::Calls* counted_calls_ = nullptr;
  bool still_waits_ = false;
  // Of the client whose command runs: its errors that are in the statistics.
  std::uint64_t counted_errors_ = 0;
  std::uint64_t slow_cycles_ = 0;  // commands that took more are looked at for the slow log
  Paused paused_ = Paused::nothing;
  std::int64_t paused_until_ms_ = 0;
};

}  // namespace weir::kv
