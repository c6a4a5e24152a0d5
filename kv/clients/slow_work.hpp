// What took long or much: the commands of SLOWLOG and COMMANDLOG, and LATENCY's events.
//
// A command that is neither slow nor large costs three comparisons. Threading: the server's one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "kv/counting/latency_events.hpp"
#include "kv/counting/slowlog.hpp"
#include "kv/resp/request.hpp"

namespace weir::kv {

class Client;
struct Command;
struct ServerCommon;

// What one command took.
struct CommandCost {
  std::uint64_t cycles;
  std::size_t request_bytes, reply_bytes;
};
// How many bytes a request takes in the protocol.
std::size_t request_bytes(Arguments arguments);

class SlowWork {
 public:
  enum class Log : std::uint8_t { slow, large_request, large_reply };

  explicit SlowWork(const ServerCommon& server) : server_(server) {}

  // Call after each command.
  void look_at(const Client& client, const Command& command, Arguments arguments, const CommandCost& cost) {
    if (cost.cycles > slow_cycles_ || cost.request_bytes >= large_request_ ||
        cost.reply_bytes >= large_reply_)
      note_command(client, command, arguments, cost);
  }
  // The server did nothing else meanwhile: an event if that reached latency-monitor-threshold. `kind` is a
  // literal.
  void note(std::string_view kind, std::uint64_t cycles);
  void settings_changed() { slow_cycles_ = large_request_ = large_reply_ = 0; }

  SlowLog& log(Log which) { return logs_[static_cast<std::size_t>(which)]; }
  LatencyEvents events;

 private:
  static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

  void note_command(const Client& client, const Command& command, Arguments arguments,
                    const CommandCost& cost);

  const ServerCommon& server_;
  std::array<SlowLog, 3> logs_;
  // Costlier commands are checked against the exact limits.
  std::uint64_t slow_cycles_ = 0;
  std::size_t large_request_ = 0, large_reply_ = 0;
};

}  // namespace weir::kv
