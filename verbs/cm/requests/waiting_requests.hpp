// Requests from other hosts that wait for a listener that is about to be there.
//
// Of a full queue the oldest request of the source that has the most is refused, for one of a source that has
// fewer (waiting/shares.hpp): a host that asks for a port where nobody listens holds up no other host's.
//
// Under the agent's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "link/same_host.hpp"
#include "verbs/cm/cm_message.hpp"
#include "verbs/cm/requests/request_queue.hpp"
#include "waiting/shares.hpp"

namespace weir::cm {

struct WaitingRequest {
  link::NeighbourPtr from;
  CmMessage message;
};

class WaitingRequests {
 public:
  static constexpr std::size_t max_waiting = 64;

  // `number` 0: there is no room for it. `leaves`: what is to be refused in its place.
  struct Entered {
    std::uint64_t number = 0;
    std::optional<WaitingRequest> leaves = std::nullopt;
  };
  Entered enter(const RequestSource& source, WaitingRequest request) {
    Entered entered;
    if (waiting_.size() >= max_waiting) {
      const auto* const place = waiting_.taken_by(source);
      if (place == nullptr) return entered;
      entered.leaves = waiting_.leave(place->first);
    }
    entered.number = waiting_.enter(source, std::move(request));
    return entered;
  }
  // nullptr: it has left.
  const WaitingRequest* find(std::uint64_t number) const { return waiting_.find(number); }
  std::optional<WaitingRequest> leave(std::uint64_t number) { return waiting_.leave(number); }

 private:
  waiting::Shares<RequestSource, WaitingRequest> waiting_;
};

}  // namespace weir::cm
