// What one client asked of a server that has no room for it now: requests, as they came, until it is their
// turn.
//
// Frames of a stream whose request waits wait with it, behind it. Credentials keep their place among the
// requests, which they are for. Everything else is for calls that run, and never waits. A request that is
// cancelled before its turn is dropped, and never runs. The time that it waits counts against the time that
// its caller does; who comes too late for that caller is taken out as such, whether its cancellation was
// heard or not.
//
// Invariant: no two requests of the same number wait. Memory: grows with what waits; its user bounds that
// (bytes()). Threading: the connection's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "hash/keyed.hpp"
#include "rpc/wire/frame.hpp"

namespace weir::rpc {

class HeldRequests {
 public:
  // A frame, in memory of its own.
  struct Held {
    explicit Held(Frame& from);
    Frame frame() { return {header, std::as_const(body).span(), std::move(attachment)}; }
    std::size_t bytes() const { return sizeof *this + body.size() + attachment.size(); }

    FrameHeader header;
    Buffer body;  // no larger than it must be: small requests wait in great numbers
    Buffer attachment;
  };
  using TimePoint = std::chrono::steady_clock::time_point;
  // With what came for it since.
  struct Waiting {
    Held request;
    TimePoint since;
    std::vector<Held> followers;
    bool late = false;  // nobody waits for it any more
  };

  bool empty() const { return waiting_.empty(); }
  bool contains(std::uint64_t id) const { return by_id_.contains(id); }
  // With what it takes to keep them.
  std::size_t bytes() const { return bytes_; }

  // At the end: a request whose number does not wait yet, or credentials.
  void hold(Frame& frame, TimePoint now);
  // Behind the request of its number, which waits.
  void follow(Frame& frame);
  // False: no request of that number waits.
  bool drop(std::uint64_t id);
  // The first, of which there is one; its header says how long its caller still waits.
  Waiting take(TimePoint now);
  void clear();

 private:
  using List = std::list<Waiting>;
  void forget(const Waiting& gone);

  List waiting_;
  std::unordered_map<std::uint64_t, List::iterator, hash::Keyed> by_id_;  // of requests
  std::size_t bytes_ = 0;
};

}  // namespace weir::rpc
