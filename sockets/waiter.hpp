// One that sleeps until a connection changes: an epoll set, a thread in poll() or read(), the service thread.
//
// Its socket's descriptor becomes readable when somebody rings while it sleeps, so it goes into the program's
// own epoll set or beside the descriptors of a poll(). Whoever changes something stores it, sets the bit here
// and looks at `sleeping`; the waiter says that it sleeps and then looks once more: one of them sees the
// other.
//
// Threading: ring() from any thread of any process; the rest as the owner says.
#pragma once

#include <cstdint>
#include <memory>

#include "sockets/table.hpp"

namespace weir::sockets {

class Waiter {
 public:
  static std::unique_ptr<Waiter> make(Table& table);  // null: no bell or no descriptor is left
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  int fd() const { return fd_; }
  std::uint32_t watcher(std::uint32_t bit) const { return (bell_ + 1) << 16 | bit; }
  // Before a sleep. The caller then looks at what it waits for once more.
  void will_sleep() { bell().sleeping.store(1); }
  void awake() { bell().sleeping.store(0); }
  void drain();  // the datagram that woke us; more than one, which is rare, wake once more for nothing

  bool anything() const { return table_.bell(bell_).summary.load() != 0; }
  // Calls `visit` with each bit that was set, and clears it.
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
  Waiter(Table& table, std::uint32_t bell, int fd) : table_(table), bell_(bell), fd_(fd) {}
  Bell& bell() { return table_.bell(bell_); }

  Table& table_;
  const std::uint32_t bell_;
  const int fd_;
};

// Wakes one watcher, as Side::watchers has it. Both: true if it slept.
bool ring(Table& table, std::uint32_t watcher);
// Wakes all that watch an end.
bool ring_all(Table& table, const Side& side);
// Makes `watcher` one of those that are woken for this end. False: there are too many.
bool watch(Side& side, std::uint32_t watcher);
void unwatch(Side& side, std::uint32_t watcher);

}  // namespace weir::sockets
