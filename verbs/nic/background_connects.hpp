// Connections to neighbours that are being made in the background, for senders of datagrams, which do not
// wait (rnic::HostPort::reach).
//
// One attempt per slot at a time, whoever asked. A process that did not answer in time (it is stopped) is
// left alone for as long again: what is sent to it meanwhile is lost at once, as to a host that is down.
//
// Threading: all functions from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "link/same_host.hpp"
#include "rnic/peer.hpp"

namespace weir::verbs {

class BackgroundConnects {
 public:
  using Ticket = rnic::HostPort::Ticket;
  // Both run on the progress thread: `on_connected` before the attempt counts as over, `on_ended` after.
  using Connected = std::function<void(const link::NeighbourPtr&)>;
  BackgroundConnects(link::SameHostLink& link, std::chrono::milliseconds limit, Connected on_connected,
                     std::function<void()> on_ended)
      : link_(link), limit_(limit), on_connected_(std::move(on_connected)), on_ended_(std::move(on_ended)) {}

  // The attempt at that slot, begun if there is none; 0: none is made.
  Ticket begin(link::Slot slot);
  bool under_way(link::Slot slot, Ticket ticket) const;
  bool silent(link::Slot slot) const;  // it did not answer in time, and is left alone for now
  // Whether any attempt at any slot with this ticket, or an earlier one, is.
  bool any_under_way(Ticket up_to) const;
  // Returns once all attempts have come to an end and `on_ended` has returned, or after `limit`. Not from the
  // progress thread, which would wait for itself.
  void finish(std::chrono::milliseconds limit);

 private:
  void ended(link::Slot slot, const link::Result<link::NeighbourPtr>& result);

  link::SameHostLink& link_;
  const std::chrono::milliseconds limit_;
  const Connected on_connected_;
  const std::function<void()> on_ended_;
  mutable std::mutex mutex_;
  std::condition_variable all_ended_;
  std::map<link::Slot, Ticket> under_way_;
  std::size_t unfinished_ = 0;  // attempts whose on_ended_ has not returned yet
  std::map<link::Slot, link::Clock::time_point> silent_until_;
  Ticket last_ = 0;
};

}  // namespace weir::verbs
