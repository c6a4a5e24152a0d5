// By which carrier packets go between two addresses, where both UDP and a stream may.
//
// A path begins with UDP. What makes it doubtful is silence: a message of the connection manager that is sent
// again while nothing at all has come from there since the first, or a requester whose probes go unanswered
// (rnic/packet/requester.hpp). Silence alone moves nothing, because a peer is also silent while it is
// stopped, waits for a processor, or its program takes its time. So a stream is dialled, and by it each end
// asks the other whether it hears it by UDP, behind a packet by UDP that must come first: the path moves if
// one of them does not. A path whose peer sends by a stream moves as well: the peer has found UDP wanting. It
// moves back when its last stream has ended, and only then.
//
// Budget: max_paths; beyond that those with UDP are forgotten, which then begin again.
//
// Threading: all functions from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "link/same_host.hpp"
#include "rnic/types.hpp"

namespace weir::verbs {

class CarrierChoice {
 public:
  using Path = std::pair<rnic::Gid, rnic::Gid>;  // our address, theirs
  static constexpr std::size_t max_paths = 1024;
  // A first repetition comes after 40 ms (verbs/cm/packet_carrier.cpp).
  static constexpr std::chrono::milliseconds silence{30}, doubt_pause{50};

  bool goes_by_stream(const Path& path) const;
  bool any_by_stream() const { return moved_.load(std::memory_order_relaxed) != 0; }

  // A message of the connection manager goes there by UDP. True: those before it went unanswered.
  bool asks(const Path& path, link::Clock::time_point now);
  // Whether heard() is of interest: of some path that goes by UDP.
  bool waits() const { return heeded_.load(std::memory_order_relaxed) != 0; }
  // Something has come from there by UDP.
  void heard(const Path& path);

  // A stream joins the path's ends: it may be asked about.
  void joined(const Path& path);
  // Now the other end is to be asked. False: the path has moved, or was asked about a moment ago.
  bool doubt(const Path& path, link::Clock::time_point now);
  // Whether something has come since.
  bool hears(const Path& path) const;
  // The peer asks: whether something has come since it asked the last time, or the stream is there.
  bool answers(const Path& path);

  // False: it had moved already.
  bool move(const Path& path);
  void move_back(const Path& path);

 private:
  struct State {
    bool by_stream = false, has_stream = false;
    bool heard = false, heard_for_peer = false;  // since our last doubt, and since its last question
    bool asked = false;
    link::Clock::time_point since{};  // the first message that nothing has followed
    link::Clock::time_point doubted{};
  };
  void count();
  State* find(const Path& path);

  mutable std::mutex mutex_;
  std::map<Path, State> paths_;
  std::atomic<std::size_t> moved_ = 0, heeded_ = 0;
};

}  // namespace weir::verbs
