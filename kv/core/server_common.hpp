// What all parts of the server go by: settings, time, the data, the clients, and what was counted.
//
// A part (PubSub, Blocking, Snapshots, ...) gets this, not the server that owns it, so it can be included and
// read without the server. Time comes from the clocks given at construction, and is read once per delivery,
// so a test can set it. Threading: the server's one thread.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kv/core/client_budget.hpp"
#include "kv/core/clients.hpp"
#include "kv/core/gateway.hpp"
#include "kv/core/history.hpp"
#include "kv/core/load_progress.hpp"
#include "kv/core/strangers.hpp"
#include "kv/core/surroundings.hpp"
#include "kv/counting/cycles.hpp"
#include "kv/counting/stats.hpp"
#include "kv/resp/reply_queue.hpp"
#include "kv/settings/settings.hpp"
#include "kv/store/keyspace.hpp"
#include "kv/store/lazy_free.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {

struct ServerCommon {
  // `close_late` closes a client that has not given the password in time.
  ServerCommon(asio::io_context& context, Settings initial, Surroundings given, Strangers::Close close_late);
  ServerCommon(const ServerCommon&) = delete;
  ServerCommon& operator=(const ServerCommon&) = delete;

  void refresh_time() {
    now_us = surroundings.clock_us();
    now_ms = now_us / 1000;
    steady_ms = surroundings.steady_us() / 1000;
    if (steady_ms / use_tick_ms != last_tick) move_use_clock();
  }
  std::uint64_t random() { return random_bits(); }
  // An id of a server or of a history: 40 hexadecimal digits.
  std::string random_id();
  void log(LogLevel level, std::string_view text) const;

  // The resolution of a key's time of last use.
  static constexpr std::int64_t use_tick_ms = 100;

  asio::io_context& io;
  Settings settings;
  Surroundings surroundings;
  std::int64_t now_us = 0;  // time of the day
  std::int64_t now_ms = 0;
  std::int64_t steady_ms = 0;   // see Surroundings: for everything that lasts or is waited for
  std::int64_t started_ms = 0;  // of both clocks
  HeapMarks heap_marks;         // sampled as the use clock moves
  BlockPool blocks;
  Stats stats;
  RecentRates rates;
  CycleRate cycle_rate;
  UseClock use_clock;
  LazyFree lazy_free;
  std::vector<std::unique_ptr<Keyspace>> databases;
  Strangers strangers;
  ClientBudget client_budget;
  Clients clients;
  Round round;
  std::unique_ptr<cluster::Gateway> gateway;  // null: this server keeps the data itself
  Client* serving = nullptr;                  // the client whose command runs
  // The running command may change what it looks up; a snapshot must see that first.
  bool changes_data = false;
  bool script_suspended = false;        // it exceeded its time: other clients get BUSY, and no data changes
  std::optional<LoadProgress> loading;  // a snapshot is being read
  Loaded loaded;
  std::mt19937_64 random_bits;
  std::string run_id;
  repl::History history;
  std::int64_t last_tick = -1;

 private:
  void move_use_clock();
};

}  // namespace weir::kv
