// Traffic that ends only when its connections do.
#include <array>
#include <chrono>
#include <string>

#include "tests/nccl/scenarios.hpp"

namespace weir::nccl::testing_support {
namespace {

using Clock = std::chrono::steady_clock;

// A round takes microseconds; a longer one had to wait for a core.
constexpr std::chrono::milliseconds no_turn{20};
constexpr std::size_t largest = 20000;
constexpr std::size_t depth = 4;

// Requests of one direction, oldest first.
struct Flight {
  std::array<void*, depth> requests{};
  std::uint64_t begun = 0, done = 0;

  bool full() const { return begun - done == depth; }
  void*& next() { return requests[begun % depth]; }
  void* oldest() const { return requests[done % depth]; }
};

}  // namespace

// Rank 1 may leave one direction idle: if `seed % 3` is 1 it never sends, if 2 it never receives. It would
// not notice the end of that connection either, so the other connection ends its traffic.
Ending traffic(Rank& rank, const Pair& pair, const std::function<void(std::uint64_t)>& round) {
  AnyNet& net = rank.net;
  const std::uint64_t lazy = rank.number == 1 ? rank.seed % 3 : 0;
  Buffer out(rank, pair.send, largest), in(rank, pair.receive, largest * depth);
  Flight sends, receives;
  Ending ending;
  Clock::time_point last_round = Clock::now();
  for (std::uint64_t rounds = 0; ending.of_send == Status::success || ending.of_receive == Status::success;) {
    if (ending.of_send == Status::success && lazy != 1) {
      if (!sends.full()) {
        const std::size_t bytes = (rank.seed + sends.begun * 977) % largest;
        ending.of_send = net.isend(pair.send, out.data(), bytes, 0, out.region(), &sends.next());
        if (sends.next() != nullptr) ++sends.begun;
      }
      int done = 0;
      if (ending.of_send == Status::success && sends.done < sends.begun)
        ending.of_send = net.test(sends.oldest(), &done, nullptr);
      sends.done += done != 0 ? 1 : 0;
    }
    if (ending.of_receive == Status::success && lazy != 2) {
      if (!receives.full()) {
        void* data = in.data() + receives.begun % depth * largest;
        void* region = in.region();
        std::size_t bytes = largest;
        int tag = 0;
        receives.next() = nullptr;
        ending.of_receive = net.irecv(pair.receive, 1, &data, &bytes, &tag, &region, &receives.next());
        if (receives.next() != nullptr) ++receives.begun;
      }
      std::array<int, 8> sizes{};
      int done = 0;
      if (ending.of_receive == Status::success && receives.done < receives.begun)
        ending.of_receive = net.test(receives.oldest(), &done, sizes.data());
      receives.done += done != 0 ? 1 : 0;
    }
    const Clock::time_point now = Clock::now();
    const auto note = [&](const char* which, Status status, Clock::time_point& at) {
      if (status == Status::success || at != Clock::time_point{}) return;
      at = now;
      if (rank.number == 1) rank.lines.say(which + std::to_string(now.time_since_epoch().count()));
    };
    note("send ", ending.of_send, ending.send_at);
    note("receive ", ending.of_receive, ending.receive_at);
    if (now - last_round > no_turn) ending.without_a_turn += now - last_round;
    last_round = now;
    round(++rounds);
  }
  return ending;
}

}  // namespace weir::nccl::testing_support
