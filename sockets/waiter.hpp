// Something that sleeps until a connection changes: an epoll set, a thread in poll() or read(), the service.
//
// Its pipe becomes readable if somebody rings while it sleeps, so the descriptor goes into the program's
// own epoll set or beside the descriptors of a poll(). A set watches it for edges, so nothing need be read
// there until the pipe grows full. A thread that changes something stores the change,
// sets the bit here and reads `sleeping`. The waiter stores that it sleeps and then looks once more. So at
// least one of them sees the other's store.
//
// Threading: ring() from any thread of any process; the rest only in the owner's threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sockets/table.hpp"

namespace weir::sockets {

class Waiter {
 public:
  // Its bell and its pipe. nullopt: none is left. Allocates nothing.
  struct Parts {
    std::uint32_t bell;
    int fd;
  };
  static std::optional<Parts> open(Table& table);
  Waiter(Table& table, Parts parts) : table_(table), bell_(parts.bell), fd_(parts.fd) {}
  static std::unique_ptr<Waiter> make(Table& table);  // null: as open()
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  int fd() const { return fd_; }
  std::uint32_t watcher(std::uint32_t bit) const { return (bell_ + 1) << 16 | bit; }
  // Call before a sleep, then look once more at what you wait for.
  void will_sleep() {
    ++sleeps_;
    bell().sleeping.store(1);
  }
  void awake() { bell().sleeping.store(0); }
  void drain();          // a poll() found the pipe readable
  void woken_by_edge();  // an epoll set did

  bool anything() const { return table_.bell(bell_).summary.load() != 0; }
  // Calls `visit` for each bit that was set, and clears it.
  template <class Visit>
  void collect(Visit visit) {
    Bell& one = bell();
    if (one.summary.load() == 0) return;
    for (std::uint64_t words = one.summary.exchange(0); words != 0; words &= words - 1) {
      const auto word = static_cast<std::uint32_t>(__builtin_ctzll(words));
      for (std::uint64_t bits = one.words[word].exchange(0); bits != 0; bits &= bits - 1)
        visit(word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }
  }

 private:
  Bell& bell() { return table_.bell(bell_); }

  Table& table_;
  const std::uint32_t bell_;
  const int fd_;
  std::uint32_t sleeps_ = 0;  // since the latest drain; the owner has a mutex, or is one thread
};

// In a child of fork(): another thread of the parent may have held the mutex.
void wakers_forget_parent();
// Wakes one watcher, encoded as in Side::watchers. Both functions return true if it slept.
bool ring(Table& table, std::uint32_t watcher);
// Wakes all watchers of an end.
bool ring_all(Table& table, const Side& side);
// Adds `watcher` to those that are woken for this end. False: there are too many.
bool watch(Side& side, std::uint32_t watcher);
void unwatch(Side& side, std::uint32_t watcher);

}  // namespace weir::sockets
