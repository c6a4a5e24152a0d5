// Threads, and what they wait for in memory: mutexes, conditions, read-write locks, semaphores, futexes. A
// thread that would sleep in the kernel gives the baton back instead, and whoever unlocks wakes it.
//
// The C library's objects stay in use (their fields show owners and counts); only sleeping is ours. No lock
// is contended while its holder runs, because a thread loses the baton only in our calls.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdarg>
#include <cstring>
#include <map>

#include "twin/inside/clocks.hpp"
#include "twin/inside/random_calls.hpp"

namespace weir::twin {
namespace {

std::uint64_t key_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

// Versioned: the plain name may be of the C library's first version.
template <class Function>
Function versioned(const char* name, const char* version, Function) {
  return reinterpret_cast<Function>(::dlvsym(RTLD_NEXT, name, version));
}
#define WEIR_NEXT_VERSION(name, version)                         \
  ([] {                                                          \
    static const auto next = versioned(#name, version, &::name); \
    return next;                                                 \
  }())

// 0, or ETIMEDOUT.
int sleep_at(const void* at, Ticks deadline, const char* what) {
  if (deadline <= now()) return ETIMEDOUT;
  wait_for({.kind = Wait::address, .deadline = deadline, .key = key_of(at), .what = what});
  return self().ready_at == no_time && now() >= deadline ? ETIMEDOUT : 0;
}

int lock_until(pthread_mutex_t* mutex, Ticks deadline) {
  for (;;) {
    const int error = WEIR_NEXT(pthread_mutex_trylock)(mutex);
    if (error != EBUSY) return error;
    if (sleep_at(mutex, deadline, "pthread_mutex_lock") == ETIMEDOUT) return ETIMEDOUT;
  }
}

int unlock(pthread_mutex_t* mutex) {
  const int error = WEIR_NEXT(pthread_mutex_unlock)(mutex);
  wake_address(key_of(mutex), 1);
  return error;
}

int wait_on_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, Ticks deadline) {
  // Nothing runs between unlock and sleep, so no signal is missed.
  const int unlocked = unlock(mutex);
  if (unlocked != 0) return unlocked;
  const int error = sleep_at(condition, deadline, "pthread_cond_wait");
  (void)lock_until(mutex, no_time);
  return error;
}

struct Start {
  void* (*function)(void*);
  void* argument;
  ThreadRecord* record;
};

// Runs at the end of a thread however it ends.
struct AtThreadEnd {
  bool armed = false;
  ~AtThreadEnd() {
    if (armed && controlled()) end_thread();
  }
};
thread_local AtThreadEnd at_thread_end;

void* begin_thread(void* given) {
  const Start start = *static_cast<Start*>(given);
  become(*start.record);
  delete static_cast<Start*>(
      given);  // not before: two threads in the allocator at once are two runs that differ
  at_thread_end.armed = true;
  return start.function(start.argument);
}

// Only the thread that has the baton uses it.
std::map<pthread_t, ThreadRecord*>& records() {
  static auto* const made = new std::map<pthread_t, ThreadRecord*>;
  return *made;
}

bool has_ended(pthread_t thread) {
  const auto found = records().find(thread);
  if (found == records().end()) return true;
  const auto state = static_cast<link::fabric::ThreadState>(found->second->state.load());
  return state == link::fabric::ThreadState::ended || state == link::fabric::ThreadState::free;
}

int join_until(pthread_t thread, void** result, Ticks deadline) {
  while (!has_ended(thread))
    if (sleep_at(records()[thread], deadline, "pthread_join") == ETIMEDOUT) return ETIMEDOUT;
  records().erase(thread);
  return WEIR_NEXT(pthread_join)(thread, result);
}

// The C library's barrier has no part that asks without waiting.
struct Barrier {
  unsigned count = 0, arrived = 0, round = 0;
};
std::map<pthread_barrier_t*, Barrier>& barriers() {
  static auto* const made = new std::map<pthread_barrier_t*, Barrier>;
  return *made;
}

long futex(std::uint32_t* word, int operation, std::uint32_t value, const timespec* limit) {
  const int command = operation & FUTEX_CMD_MASK;
  if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET)
    return wake_address(key_of(word), static_cast<int>(std::min<std::uint32_t>(value, INT_MAX)));
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return errno = EAGAIN, -1;
  Ticks deadline = no_time;
  if (limit != nullptr) {
    const clockid_t clock = (operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    deadline = command == FUTEX_WAIT_BITSET ? deadline_of(clock, *limit) : now() + ticks_of(*limit);
  }
  if (sleep_at(word, deadline, "futex") == ETIMEDOUT) return errno = ETIMEDOUT, -1;
  return 0;
}

bool ours(int operation) {
  const int command = operation & FUTEX_CMD_MASK;
  return command == FUTEX_WAIT || command == FUTEX_WAKE || command == FUTEX_WAIT_BITSET ||
         command == FUTEX_WAKE_BITSET;
}

}  // namespace
}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_create)(thread, attributes, function, argument);
  ThreadRecord* const record = new_thread(process());
  if (record == nullptr) return EAGAIN;
  auto* const start = new Start{function, argument, record};
  const int error = WEIR_NEXT(pthread_create)(thread, attributes, begin_thread, start);
  if (error == 0) {
    records()[*thread] = record;
    worked();
    return 0;
  }
  record->state.store(static_cast<std::uint32_t>(weir::link::fabric::ThreadState::free));
  delete start;
  return error;
}

int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  if (controlled() && ::pthread_equal(thread, ::pthread_self()) != 0 && std::strncmp(name, "weir-", 5) == 0)
    self().helper = 1;
  return WEIR_NEXT(pthread_setname_np)(thread, name);
}

int pthread_join(pthread_t thread, void** result) {
  if (!controlled()) return WEIR_NEXT(pthread_join)(thread, result);
  return join_until(thread, result, no_time);
}

int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_tryjoin_np)(thread, result);
  return has_ended(thread) ? join_until(thread, result, no_time) : EBUSY;
}
int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* limit) {
  if (!controlled()) return WEIR_NEXT(pthread_timedjoin_np)(thread, result, limit);
  return join_until(thread, result, deadline_of(CLOCK_REALTIME, *limit));
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_mutex_lock)(mutex);
  return lock_until(mutex, no_time);
}
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* limit) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_mutex_timedlock)(mutex, limit);
  return lock_until(mutex, deadline_of(CLOCK_REALTIME, *limit));
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* limit) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_mutex_clocklock)(mutex, clock, limit);
  return lock_until(mutex, deadline_of(clock, *limit));
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_mutex_unlock)(mutex);
  return unlock(mutex);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!controlled()) return WEIR_NEXT_VERSION(pthread_cond_wait, "GLIBC_2.3.2")(condition, mutex);
  return wait_on_condition(condition, mutex, no_time);
}
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* limit) {
  if (!controlled()) return WEIR_NEXT_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")(condition, mutex, limit);
  // The clock of its attributes is in bit 1 of the C library's flags.
  const bool monotonic = (condition->__data.__wrefs & 2) != 0;
  return wait_on_condition(condition, mutex,
                           deadline_of(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, *limit));
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* limit) {
  if (!controlled()) return WEIR_NEXT(pthread_cond_clockwait)(condition, mutex, clock, limit);
  return wait_on_condition(condition, mutex, deadline_of(clock, *limit));
}
int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (!controlled()) return WEIR_NEXT_VERSION(pthread_cond_signal, "GLIBC_2.3.2")(condition);
  wake_address(key_of(condition), 1);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (!controlled()) return WEIR_NEXT_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")(condition);
  wake_address(key_of(condition), INT_MAX);
  return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_rwlock_rdlock)(lock);
  int error;
  while ((error = ::pthread_rwlock_tryrdlock(lock)) == EBUSY)
    (void)sleep_at(lock, no_time, "pthread_rwlock_rdlock");
  return error;
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_rwlock_wrlock)(lock);
  int error;
  while ((error = ::pthread_rwlock_trywrlock(lock)) == EBUSY)
    (void)sleep_at(lock, no_time, "pthread_rwlock_wrlock");
  return error;
}
int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  const int error = WEIR_NEXT(pthread_rwlock_unlock)(lock);
  if (controlled()) wake_address(key_of(lock), INT_MAX);
  return error;
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_rwlock_timedrdlock)(lock, limit);
  int error;
  while ((error = ::pthread_rwlock_tryrdlock(lock)) == EBUSY)
    if (sleep_at(lock, deadline_of(CLOCK_REALTIME, *limit), "pthread_rwlock_rdlock") == ETIMEDOUT)
      return ETIMEDOUT;
  return error;
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  if (!controlled()) return WEIR_NEXT(pthread_rwlock_timedwrlock)(lock, limit);
  int error;
  while ((error = ::pthread_rwlock_trywrlock(lock)) == EBUSY)
    if (sleep_at(lock, deadline_of(CLOCK_REALTIME, *limit), "pthread_rwlock_wrlock") == ETIMEDOUT)
      return ETIMEDOUT;
  return error;
}

int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                         unsigned count) noexcept {
  const int error = WEIR_NEXT(pthread_barrier_init)(barrier, attributes, count);
  if (error == 0 && controlled()) barriers()[barrier] = {.count = count};
  return error;
}
int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  if (controlled()) barriers().erase(barrier);
  return WEIR_NEXT(pthread_barrier_destroy)(barrier);
}
int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  const bool ours = controlled() && barriers().contains(barrier);
  if (!ours) return WEIR_NEXT(pthread_barrier_wait)(barrier);
  Barrier& here = barriers()[barrier];
  const unsigned round = here.round;
  if (++here.arrived == here.count) {
    here.arrived = 0;
    ++here.round;
    wake_address(key_of(barrier), INT_MAX);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  while (here.round == round) (void)sleep_at(barrier, no_time, "pthread_barrier_wait");
  return 0;
}

int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* limit) {
  if (!controlled()) return WEIR_NEXT(sem_clockwait)(semaphore, clock, limit);
  while (::sem_trywait(semaphore) != 0) {
    if (errno != EAGAIN) return -1;
    if (sleep_at(semaphore, deadline_of(clock, *limit), "sem_clockwait") == ETIMEDOUT)
      return errno = ETIMEDOUT, -1;
  }
  return 0;
}
int sem_wait(sem_t* semaphore) {
  if (!controlled()) return WEIR_NEXT_VERSION(sem_wait, "GLIBC_2.34")(semaphore);
  while (::sem_trywait(semaphore) != 0) {
    if (errno != EAGAIN) return -1;
    (void)sleep_at(semaphore, no_time, "sem_wait");
  }
  return 0;
}
int sem_timedwait(sem_t* semaphore, const timespec* limit) {
  if (!controlled()) return WEIR_NEXT_VERSION(sem_timedwait, "GLIBC_2.34")(semaphore, limit);
  while (::sem_trywait(semaphore) != 0) {
    if (errno != EAGAIN) return -1;
    if (sleep_at(semaphore, deadline_of(CLOCK_REALTIME, *limit), "sem_timedwait") == ETIMEDOUT)
      return errno = ETIMEDOUT, -1;
  }
  return 0;
}
int sem_post(sem_t* semaphore) noexcept {
  const int result = WEIR_NEXT_VERSION(sem_post, "GLIBC_2.34")(semaphore);
  if (controlled()) wake_address(key_of(semaphore), 1);
  return result;
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (controlled()) {
    if (number == SYS_futex && ours(static_cast<int>(a[1])))
      return futex(reinterpret_cast<std::uint32_t*>(a[0]), static_cast<int>(a[1]),
                   static_cast<std::uint32_t>(a[2]), reinterpret_cast<const timespec*>(a[3]));
    if (number == SYS_getrandom)
      return static_cast<long>(draw(reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1])));
    if (number == SYS_clock_gettime)
      return ::clock_gettime(static_cast<clockid_t>(a[0]), reinterpret_cast<timespec*>(a[1]));
  }
  return WEIR_NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
}
