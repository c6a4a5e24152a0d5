// Servers that fail calls far more often than the others of their pool get none for a while (gRPC's A50).
// Pure: time is passed in.
//
// Pings and connections show whether a server is there. This looks at what becomes of calls: a server with a
// broken disk answers pings, and fails every call at once, which draws even more calls to it where the least
// loaded is preferred.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "rpc/error.hpp"

namespace weir::rpc {

struct OutlierOptions {
  std::chrono::milliseconds interval{10'000};       // between two looks at what the calls of each came to
  std::chrono::milliseconds base_ejection{30'000};  // times the number of its ejections in a row
  std::chrono::milliseconds max_ejection{300'000};
  std::uint32_t min_calls = 50;  // of a server in the interval, to judge it
  // Not one more is ejected while this share of the servers is; so at least one may always be.
  double max_ejected = 0.1;
  // Ejected where its share of failed calls is at least this. Above 1: never.
  double failures = 0.85;
  // Ejected where its share of calls that went well is so many standard deviations below the mean of the
  // servers, if at least `min_servers` can be judged. 0: never.
  double deviations = 1.9;
  std::uint32_t min_servers = 5;
};

// Whether a call that ended so counts against its server. What the caller did, and what a function answered
// (Errc::failed), does not: a caller with wrong arguments would have every server ejected.
bool counts_against_server(Errc code);

// What became of the calls of one server, and whether it is ejected for it.
struct ServerRecord {
  using Clock = std::chrono::steady_clock;

  std::uint32_t well = 0, failed = 0;  // since the last look
  std::uint32_t ejections = 0;         // in a row; one less after each interval without
  std::optional<Clock::time_point> ejected_at = {};

  bool ejected() const { return ejected_at.has_value(); }
};

// Looks at all records, ejects, brings back, and begins a new interval. Returns how many it ejected.
std::uint32_t judge(const std::vector<ServerRecord*>& records, const OutlierOptions& options,
                    ServerRecord::Clock::time_point now);

}  // namespace weir::rpc
