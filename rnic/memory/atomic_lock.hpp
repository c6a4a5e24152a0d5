// The only kind of lock that processes share: it makes atomics on one word atomic with each other.
//
// The words are in the target's memory, the locks in the target's segment, one for each group of addresses.
// The executor of an atomic holds its word's lock from reading the old value to writing the new one. A holder
// may be killed there, so the mutex is robust: the kernel marks it when its holder ends, and the next taker
// goes on. Nothing needs repair: before the single write of the new value nothing has happened, after it
// everything has.
//
// Nobody sleeps on it. A taker that finds it held for a bounded time gets `held` and retries later: the
// holder is alive, or the kernel would have freed the lock, and is stopped or has no processor.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "rnic/memory/spin_lock.hpp"

namespace weir::rnic {

class AtomicLock {
 public:
  // Called by the segment's owner, before any other process sees it.
  void make() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }

  enum class Taken : std::uint8_t {
    yes,
    held,   // by another holder, all the time
    broken  // a neighbour wrote nonsense there
  };
  Taken take() {
    for (int tries = 0; tries < pauses + yields; ++tries) {
      const int error = pthread_mutex_trylock(&mutex_);
      if (error == 0) return Taken::yes;
      if (error == EOWNERDEAD) return pthread_mutex_consistent(&mutex_) == 0 ? Taken::yes : Taken::broken;
      if (error != EBUSY) return Taken::broken;
      if (tries < pauses)
        cpu_relax();
      else
        sched_yield();
    }
    return Taken::held;
  }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  static constexpr int pauses = 100, yields = 200;
  alignas(64) pthread_mutex_t mutex_;
};

inline constexpr std::size_t atomic_lock_count = 32;

// Chosen by the place in the page, so that a page mapped at two addresses has one lock for each of its words.
constexpr std::size_t atomic_lock_of(std::uint64_t addr) { return addr / 8 % atomic_lock_count; }

}  // namespace weir::rnic
