// The servers of a pool, and which of them a call goes to.
//
// A call prefers servers that are well (known_server.hpp), not ejected (outliers.hpp), and that it did not
// try yet; where none is, those whose wait is over. What failed is tried again beside the calls, not by one
// of them.
//
// Ownership: each server is shared, see there. Threading: the io_context's thread. Time is passed in.
#pragma once

#include <span>

#include "rpc/pool/known_server.hpp"

namespace weir::rpc {

class KnownServers {
 public:
  using Tried = std::vector<KnownServerPtr>;

  explicit KnownServers(Balancing how) : how_(how), balancer_(how) {}

  const std::vector<KnownServerPtr>& all() const { return all_; }
  // Sets the current servers; calls under way to servers that are no longer listed may finish.
  void list(std::span<const std::string> addresses);
  void forget_unlisted();

  // Null if there is no server.
  KnownServerPtr choose(std::uint64_t key, const Tried& tried, Clock::time_point now);
  // Of those that a call need not wait for; null: none. A key waits for its own server, so that it is at no
  // other meanwhile.
  KnownServerPtr choose_connected(std::uint64_t key, const Tried& tried);
  bool untried_left(const Tried& tried, Clock::time_point now) const;
  // Judges the servers by their calls; returns how many were ejected.
  std::uint32_t judge_outliers(const OutlierOptions& options, Clock::time_point now);
  // Servers that failed, whose wait is over, and that have no connection on which they could answer.
  std::vector<KnownServerPtr> to_try_again(Clock::time_point now) const;

 private:
  bool is_preferred(const KnownServer& known, Clock::time_point now) const;
  template <class Usable>
  KnownServerPtr choose_of(std::uint64_t key, Usable usable);

  const Balancing how_;
  Balancer balancer_;
  std::vector<KnownServerPtr> all_;
};

}  // namespace weir::rpc
