#include "sockets/waiter.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "sockets/calls/held_signals.hpp"
#include "sockets/calls/system_calls.hpp"

namespace weir::sockets {
namespace {

// A pipe has room for at least one page of bytes, and each sleep takes one.
constexpr std::uint32_t sleeps_a_drain = 1024;

// The pipes of sleepers that were woken: each is opened at the first ring and stays open. A bell keeps its
// number here when it gets a new owner, whose pipe takes the number's place, so a thread that is just writing
// wakes the new owner in vain instead of writing into another file. Each pipe is also open for reading: a
// write to one whose owner has gone raises no signal. One descriptor is kept in reserve for when the program
// has none left. Allocates nothing: a program may send from a signal handler that interrupted malloc().
struct Opened {
  std::uint32_t generation = 0;
  int fd = -1;
};
struct Pipes {
  std::atomic<const Table*> of{nullptr};  // a forked child, or another user, has another table
  std::array<std::atomic<Opened>, max_bells> opened{};
  SectionMutex mutex;
  int reserve = -1;
};
constinit Pipes pipes{};

int open_pipe(const BellPath& path) {
  return out_of_the_way(::open(path.text(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

int open_reserve() { return out_of_the_way(::open("/", O_PATH | O_CLOEXEC)); }

// If the pipe is full, its owner is awake already.
void write_byte(int fd) {
  const char byte = 0;
  (void)!system_calls().write(fd, &byte, 1);
}

void open_and_write(Pipes& all, const Table& table, std::uint32_t bell, std::uint32_t generation) {
  const std::scoped_lock lock(all.mutex);
  if (all.of.load() != &table) {
    for (auto& one : all.opened) one.store({});
    all.of.store(&table);
  }
  if (all.reserve < 0) all.reserve = open_reserve();
  const BellPath path = table.bell_path(bell, generation);
  int fd = open_pipe(path);
  const bool short_of = fd < 0 && (errno == EMFILE || errno == ENFILE) && all.reserve >= 0;
  if (short_of) {
    close_aside(std::exchange(all.reserve, -1));
    fd = open_pipe(path);
  }
  if (fd >= 0) write_byte(fd);  // else its owner has gone
  const Opened known = all.opened[bell].load();
  if (fd >= 0 && known.fd >= 0) {
    system_calls().dup3(fd, known.fd, O_CLOEXEC);
    all.opened[bell].store({generation, known.fd});
    close_aside(fd);
  } else if (fd >= 0 && short_of) {
    close_aside(fd);
  } else if (fd >= 0) {
    all.opened[bell].store({generation, fd});
  }
  if (short_of) all.reserve = open_reserve();
}

void wake(Table& table, std::uint32_t bell) {
  const int before = errno;
  Pipes& all = pipes;
  const std::uint32_t generation = table.bell(bell).generation.load();
  const Opened known = all.opened[bell].load(std::memory_order_relaxed);
  if (all.of.load() != &table || known.fd < 0 || known.generation != generation)
    open_and_write(all, table, bell, generation);
  else
    write_byte(known.fd);
  errno = before;
}

}  // namespace

void wakers_forget_parent() { new (&pipes) Pipes; }

std::optional<Waiter::Parts> Waiter::open(Table& table) {
  const auto bell = table.claim_bell();
  if (!bell) return std::nullopt;
  const BellPath path = table.bell_path(*bell);
  // Open for writing, too, or it would be at its end whenever no other process has it open.
  const int fd = ::mkfifo(path.text(), 0600) == 0
                     ? out_of_the_way(::open(path.text(), O_RDWR | O_NONBLOCK | O_CLOEXEC))
                     : -1;
  if (fd >= 0) return Parts{*bell, fd};
  ::unlink(path.text());
  table.release_bell(*bell);
  return std::nullopt;
}

std::unique_ptr<Waiter> Waiter::make(Table& table) {
  const auto parts = open(table);
  return parts ? std::make_unique<Waiter>(table, *parts) : nullptr;
}

Waiter::~Waiter() {
  ::unlink(table_.bell_path(bell_).text());
  close_aside(fd_);
  table_.release_bell(bell_);
}

void Waiter::drain() {
  const int before = errno;
  std::array<char, 4096> bytes;
  (void)!system_calls().read(fd_, bytes.data(), bytes.size());
  sleeps_ = 0;
  errno = before;
}

void Waiter::woken_by_edge() {
  if (sleeps_ >= sleeps_a_drain) drain();
}

bool ring(Table& table, std::uint32_t watcher) {
  if (watcher == 0) return false;
  const std::uint32_t index = (watcher >> 16) - 1, bit = watcher & 0xffff;
  if (index >= max_bells || bit >= most_members) return false;
  Bell& bell = table.bell(index);
  const std::uint64_t mask = std::uint64_t{1} << (bit % 64), word_mask = std::uint64_t{1} << (bit / 64);
  if ((bell.words[bit / 64].load() & mask) == 0) bell.words[bit / 64].fetch_or(mask);
  if ((bell.summary.load() & word_mask) == 0) bell.summary.fetch_or(word_mask);
  if (bell.sleeping.load() == 0 || bell.sleeping.exchange(0) == 0) return false;
  wake(table, index);
  return true;
}

bool ring_all(Table& table, const Side& side) {
  bool slept = false;
  for (const auto& watcher : side.watchers) slept |= ring(table, watcher.load());
  return slept;
}

bool watch(Side& side, std::uint32_t watcher) {
  for (const auto& place : side.watchers)
    if (place.load() == watcher) return true;
  for (auto& place : side.watchers) {
    std::uint32_t none = 0;
    if (place.compare_exchange_strong(none, watcher)) return true;
  }
  return false;
}

void unwatch(Side& side, std::uint32_t watcher) {
  for (auto& place : side.watchers) {
    std::uint32_t it = watcher;
    if (place.compare_exchange_strong(it, 0)) return;
  }
}

}  // namespace weir::sockets
