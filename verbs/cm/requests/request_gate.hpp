// How many requests from addresses that have proved nothing may be under way, and what becomes of the others.
//
// A request's source address is easily forged, and each request that is believed costs an identifier, an
// event, and mostly a queue pair. A few are taken at once. Beyond these the first copy of a request leaves no
// more than its hash in a table of fixed size: one that comes a second time shows that its sender goes on
// asking, as honest ones do, and is taken. Beyond `max_half_open` none is.
//
// Not thread-safe. Time is passed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "hash/siphash.hpp"
#include "link/same_host.hpp"
#include "verbs/cm/cm_message.hpp"

namespace weir::cm {

class RequestGate {
 public:
  static constexpr int free_half_open = 64, max_half_open = 256;
  // A copy that comes sooner than the soonest repeat is a duplicate of the network's, or its sender does not
  // wait; a later one than this is forgotten.
  static constexpr std::chrono::milliseconds soonest_repeat{10}, latest_repeat{10'000};

  explicit RequestGate(hash::SipKey key) : key_(key) {}

  // A request that is not under way yet. False: it is to be dropped without an answer.
  bool admits(const CmMessage& request, link::Clock::time_point now);
  void opened() { ++half_open_; }
  void closed() { --half_open_; }
  bool crowded() const { return half_open_ >= free_half_open; }

  // What nobody here knows is answered, so that a peer whose program has ended hears so; of unproved
  // addresses that many a second, as each answer costs more than all the rest of a forged message.
  static constexpr int answers_per_second = 1'000, answers_at_once = 100;
  bool may_answer_for_nobody(link::Clock::time_point now);

 private:
  struct Copy {
    std::uint32_t mark = 0;  // of its hash
    std::uint32_t at_ms = 0;
  };
  static constexpr std::size_t places = 16'384;

  std::uint64_t hash_of(const CmMessage& request) const;

  const hash::SipKey key_;
  int half_open_ = 0;
  link::Clock::time_point answers_paid_until_{};
  std::vector<Copy> first_copies_;  // made when it is first needed
};

}  // namespace weir::cm
