// What took long: SLOWLOG's commands and LATENCY's events.
//
// A command that is not slow costs one comparison of cycles. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "kv/resp/request.hpp"
#include "kv/server/latency_events.hpp"
#include "kv/server/slowlog.hpp"

namespace weir::kv {

class Client;
struct Command;
struct ServerCommon;

class SlowWork {
 public:
  explicit SlowWork(const ServerCommon& server) : server_(server) {}

  // Call after each command, which took so many cycles.
  void look_at(const Client& client, const Command& command, Arguments arguments, std::uint64_t cycles) {
    if (cycles > slow_cycles_) note_command(client, command, arguments, cycles);
  }
  // The server did nothing else meanwhile: an event if that reached latency-monitor-threshold. `kind` is a
  // literal.
  void note(std::string_view kind, std::uint64_t cycles);
  void settings_changed() { slow_cycles_ = 0; }

  SlowLog log;
  LatencyEvents events;

 private:
  void note_command(const Client& client, const Command& command, Arguments arguments, std::uint64_t cycles);

  const ServerCommon& server_;
  std::uint64_t slow_cycles_ = 0;  // slower commands are checked against the exact limits
};

}  // namespace weir::kv
