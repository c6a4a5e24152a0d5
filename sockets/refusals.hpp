// Addresses on other hosts that refused RDMA, and when they may be asked again: `first` after the first
// refusal, doubled with each further one up to `longest`. Holds `most` addresses; one more replaces the
// address whose time is over first. Pure; used by the service thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "sockets/far_address.hpp"

namespace weir::sockets {

class Refusals {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::size_t most = 1024;
  static constexpr std::chrono::seconds first{60}, longest{3600};

  bool stand(const FarAddress& address, TimePoint now) const {
    const auto found = known_.find(address);
    return found != known_.end() && now < found->second.until;
  }

  void refused(const FarAddress& address, TimePoint now) {
    if (!known_.contains(address) && known_.size() == most)
      known_.erase(std::ranges::min_element(known_, {}, [](const auto& one) { return one.second.until; }));
    Refusal& it = known_[address];
    it.span = it.span == it.span.zero() ? first : std::min(2 * it.span, longest);
    it.until = now + it.span;
  }

  void accepted(const FarAddress& address) { known_.erase(address); }
  std::size_t size() const { return known_.size(); }

 private:
  struct Refusal {
    TimePoint until{};
    std::chrono::seconds span{0};
  };
  std::map<FarAddress, Refusal> known_;
};

}  // namespace weir::sockets
