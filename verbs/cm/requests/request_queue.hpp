// The requests of one listener that its application has not taken yet, and which of them makes room.
//
// The backlog bounds them. A quarter of it is kept for processes of this host: as long as one of them may
// ask, no number of other hosts turns it away. Within its part, a full queue gives up the oldest request of
// the source that has the most, for one of a source that has fewer (waiting/shares.hpp). A request that has
// ended has left, whether or not its event is still queued.
//
// Under the agent's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "verbs/cm/endpoint.hpp"
#include "waiting/shares.hpp"

namespace weir::cm {

struct Id;

// What is counted as one: a process of this host by its number, or an address of another (the /64 network of
// an IPv6 address).
struct RequestSource {
  bool remote = false;
  IpBytes address{};
  std::uint64_t process = 0;
  auto operator<=>(const RequestSource&) const = default;
};

class RequestQueue {
 public:
  struct Place {
    bool remote = false;
    std::uint64_t number = 0;
  };

  void set_backlog(int backlog) { backlog_ = backlog; }

  // Which request of the queue is to leave for a newcomer from there; `admitted` false: the newcomer is.
  struct Room {
    bool admitted = false;
    Id* leaves = nullptr;
  };
  Room room_for(const RequestSource& source) const {
    if (static_cast<int>(of_this_host_.size() + of_others_.size()) < limit(source.remote)) return {true};
    const auto* place = shares(source.remote).taken_by(source);
    return place == nullptr ? Room{} : Room{true, place->second};
  }
  Place enter(const RequestSource& source, Id& request) {
    return {source.remote, (source.remote ? of_others_ : of_this_host_).enter(source, &request)};
  }
  void leave(const Place& place) { (place.remote ? of_others_ : of_this_host_).leave(place.number); }

 private:
  using Requests = waiting::Shares<RequestSource, Id*>;
  const Requests& shares(bool remote) const { return remote ? of_others_ : of_this_host_; }
  int limit(bool remote) const { return remote ? std::max(1, backlog_ * 3 / 4) : backlog_; }

  int backlog_ = 1;
  Requests of_this_host_, of_others_;
};

}  // namespace weir::cm
