// Requests of one client for which the server has no room now, kept as they came until it is their turn.
//
// Frames of a stream whose request waits are kept behind that request. Credentials keep their place among the
// requests, which they apply to. All other frames are for running calls, and never wait. A request that is
// cancelled before its turn is dropped, and never runs. Waiting counts against the time that the caller
// allows; a request whose turn comes too late for its caller is marked as late, whether its cancellation was
// received or not.
//
// Invariant: no two requests of the same number wait. Memory: grows with what waits; the user of this class
// bounds that (bytes()). Threading: the connection's thread.
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
    bool late = false;  // its caller no longer waits
  };

  bool empty() const { return waiting_.empty(); }
  bool contains(std::uint64_t id) const { return by_id_.contains(id); }
  // With what it takes to keep them.
  std::size_t bytes() const { return bytes_; }

  // Appends a request whose number does not wait yet, or credentials.
  void hold(Frame& frame, TimePoint now);
  // Appends a frame to the waiting request of the same number.
  void follow(Frame& frame);
  // Returns false if no request of that number waits.
  bool drop(std::uint64_t id);
  // Takes the first one, of which there must be one; its header says how long its caller still waits.
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
