// An rdma_event_channel: a queue of events and the descriptor that is readable while it is not empty.
//
// The descriptor is an eventfd of which each read takes one event (EFD_SEMAPHORE), so poll, epoll and
// O_NONBLOCK work on it as on the kernel's. Invariant: events queued = the eventfd's count + readers between
// their read and their take. An event that is withdrawn while a reader is there leaves a debt, and that
// reader reads again. A program can break it, by closing the number in a way that is not seen here, after
// which it is another descriptor's; a count without an event is then none.
//
// Bounded by what fills it: an identifier has a few events at most, a listener its backlog.
// A thread that waits for an event while another destroys the channel waits for ever, as in the kernel; so
// does one that comes a moment too late, which over a kernel finds a closed descriptor, or memory that was
// freed. Programs come too late: rping's event thread is on its way back to rdma_get_cm_event() while the
// main thread ends the program, whose exit status must not hang on which of the two is faster.
//
// Threading: any thread. Lock order: the agent's mutex, then this one.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::cm {

struct Id;

// Event types that newer headers have. Plain numbers: the system's enumeration cannot hold them.
inline constexpr int event_addrinfo_resolved = 16;
inline constexpr int event_user = 18;
inline constexpr int event_internal = 19;

struct Event : rdma_cm_event {
  Event() : rdma_cm_event{} {}
  int type() const;
  void set_type(int type);

  // The identifier whose acknowledgements are counted: the listener for a CONNECT_REQUEST, else the event's
  // own.
  Id* counted_on = nullptr;
  std::array<std::byte, 256> private_bytes{};

  // As in the kernel: always the message's whole field, with zeros after the peer's data.
  void set_private_data(std::span<const std::byte> data, std::size_t field_bytes, const void*& pointer,
                        std::uint8_t& length);
};
using EventPtr = std::unique_ptr<Event>;

class EventChannel : public rdma_event_channel {
 public:
  static EventChannel* open();  // nullptr and errno
  static EventChannel& of(rdma_event_channel* channel) { return *static_cast<EventChannel*>(channel); }
  // Closes it. The object of a recently destroyed channel stays, for threads that come too late.
  static void destroy(EventChannel& channel);

  void push(EventPtr event);
  // Blocks unless the descriptor is O_NONBLOCK. Null and errno (EAGAIN, EINTR). In a forked child ENODEV: its
  // parent's events do not come there, and the descriptor is both processes'. On a channel that was
  // destroyed: EBADF in the thread that did it and where the descriptor was O_NONBLOCK; does not return in
  // other threads.
  EventPtr take();
  bool readable() const;  // an event is queued
  // Removes and returns the queued events of one identifier, or, for a listener, those counted on it.
  std::vector<EventPtr> withdraw(const Id& id);
  // Removes and returns the CONNECT_REQUEST of that identifier. Null: it is not queued, or it is the only
  // event and `keep_last`.
  EventPtr withdraw_request(const rdma_cm_id& request, bool keep_last);

 private:
  explicit EventChannel(int descriptor);
  void take_back_one();  // mutex_ held
  bool has_waiters_left_behind();

  const pid_t maker_;
  link::UniqueFd owner_;
  std::mutex mutex_;
  std::deque<EventPtr> queue_;
  std::size_t debt_ = 0;
  std::optional<std::thread::id> destroyer_;  // of a channel that blocked
};

}  // namespace weir::cm
