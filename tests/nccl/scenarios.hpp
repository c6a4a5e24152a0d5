// What the two processes of a driver test do. Each scenario is one function that both run, as rank 0 and as
// rank 1; they exchange lines with each other, as NCCL's ranks do through its bootstrap.
//
// Calls are made in the order of NCCL's network transport. Anything unexpected throws std::runtime_error.
#pragma once

#include <chrono>
#include <string>

#include "tests/nccl/rank.hpp"

namespace weir::nccl::testing_support {

void run_scenario(const std::string& name, Rank& rank);

// Sends and receives in both directions until both connections have failed. `round` is called after each
// message.
struct Ending {
  Status of_send = Status::success, of_receive = Status::success;
  // When each failure was noticed, on the clock that all processes share.
  std::chrono::steady_clock::time_point send_at, receive_at;
  std::chrono::steady_clock::duration without_a_turn{};  // time in which others had the cores
};
Ending traffic(Rank& rank, const Pair& pair, const std::function<void(std::uint64_t)>& round);

}  // namespace weir::nccl::testing_support
