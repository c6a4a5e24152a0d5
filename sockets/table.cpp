#include "sockets/table.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <functional>
#include <iterator>
#include <string_view>

#include "link/memory/file_size_limit.hpp"
#include "sockets/calls/held_signals.hpp"
#include "sockets/calls/system_calls.hpp"

namespace weir::sockets {
namespace {

constexpr std::uint32_t most_probes = 64;
constexpr long longest_wait_ns = 50'000'000;

bool lock_byte(int file, std::uint32_t at, short type, int command, struct flock& lock) {
  lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = 1;
  return system_calls().fcntl(file, command, &lock) == 0;
}

// Held for a few instructions. If the holder was stopped meanwhile, nobody waits longer
// than `longest_wait_ns`.
class TableLock {
 public:
  explicit TableLock(pthread_mutex_t& mutex) : mutex_(mutex) {
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += longest_wait_ns;
    if (until.tv_nsec >= 1'000'000'000) {
      until.tv_nsec -= 1'000'000'000;
      ++until.tv_sec;
    }
    const int result = ::pthread_mutex_clocklock(&mutex_, CLOCK_MONOTONIC, &until);
    // A killed process can leave an entry that is in use but has two absent sides. Such an
    // entry is reclaimed in time.
    if (result == EOWNERDEAD) ::pthread_mutex_consistent(&mutex_);
    held_ = result == 0 || result == EOWNERDEAD;
  }
  ~TableLock() {
    if (held_) ::pthread_mutex_unlock(&mutex_);
  }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  const Section section_;  // a handler that needs the lock would wait for its own thread
  pthread_mutex_t& mutex_;
  bool held_ = false;
};

std::size_t hash(const Key& key) {
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(&key), offsetof(Key, network_namespace) + sizeof key.network_namespace});
}

void clear(Side& side) {
  side.stage.store(static_cast<std::uint32_t>(Stage::absent));
  for (auto* word : {&side.process, &side.generation, &side.pid, &side.service, &side.receives, &side.why_not,
                     &side.cpu, &side.mirror, &side.done, &side.far_port})
    word->store(0);
  side.offer = {};
  side.sent = side.received = {};
  side.program = {};
  for (auto* word : {&side.by_ring, &side.by_tcp, &side.sender.produced, &side.sender.changes,
                     &side.sender.ring_from, &side.sender.tcp_from, &side.receiver.consumed,
                     &side.receiver.changes_seen, &side.receiver.wants_tcp})
    word->store(0);
  for (auto& watcher : side.watchers) watcher.store(0);
}

void prepare(Layout& layout) {
  pthread_mutexattr_t shared;
  ::pthread_mutexattr_init(&shared);
  ::pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&layout.lock, &shared);
  ::pthread_mutexattr_destroy(&shared);
  layout.magic.store(Layout::the_magic);
}

constinit std::array<std::atomic<int>, 4096> aside{};  // descriptors + 1
constinit std::atomic<int> least_aside{INT_MAX}, most_aside{-1};

}  // namespace

int out_of_the_way(int fd) {
  if (fd < 0) return fd;
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  const auto from = static_cast<int>(std::min<rlim_t>(most.rlim_cur - most.rlim_cur / 8, 1 << 19));
  const int moved = system_calls().fcntl(fd, F_DUPFD_CLOEXEC, from);
  system_calls().close(fd);
  if (moved >= 0) {
    most_aside.store(std::max(most_aside.load(), moved));
    least_aside.store(std::min(least_aside.load(), moved));
    for (auto& place : aside) {
      int none = 0;
      if (place.compare_exchange_strong(none, moved + 1)) break;
    }
  }
  return moved;
}

bool is_out_of_the_way(int fd) {
  return fd >= least_aside.load(std::memory_order_relaxed) &&
         fd <= most_aside.load(std::memory_order_relaxed) &&
         std::ranges::any_of(aside, [&](const std::atomic<int>& place) { return place.load() == fd + 1; });
}

int next_out_of_the_way(unsigned first, unsigned last) {
  int lowest = -1;
  for (const auto& place : aside) {
    const int fd = place.load() - 1;
    if (fd < 0 || static_cast<unsigned>(fd) < first || static_cast<unsigned>(fd) > last) continue;
    if (lowest < 0 || fd < lowest) lowest = fd;
  }
  return lowest;
}

void close_aside(int fd) {
  for (auto& place : aside) {
    int it = fd + 1;
    if (place.compare_exchange_strong(it, 0)) break;
  }
  system_calls().close(fd);
}

// Opens the table's file and locks it: the last process removes the file under that lock. -1 with errno.
static int open_locked(const std::string& directory) {
  constexpr int tries = 8;
  for (int i = 0; i < tries; ++i) {
    ::mkdir(directory.c_str(), 0700);
    const int file = out_of_the_way(
        ::open(Layout::table_path(directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file < 0 && errno == ENOENT) continue;
    if (file < 0) return file;
    struct stat info{};
    if (::flock(file, LOCK_EX) == 0 && ::fstat(file, &info) == 0 && info.st_nlink > 0) return file;
    close_aside(file);
  }
  errno = EAGAIN;
  return -1;
}

std::string why_not_private(const std::string& directory) {
  struct stat info{};
  if (::lstat(directory.c_str(), &info) != 0) return directory + ": " + std::strerror(errno);
  if (!S_ISDIR(info.st_mode)) return directory + " is not a folder";
  if (info.st_uid != ::geteuid()) return directory + " belongs to user " + std::to_string(info.st_uid);
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return directory + " is open to other users; chmod 700 " + directory;
  return {};
}

std::unique_ptr<Table> Table::open(const std::string& directory, std::string& why) {
  // Two levels, because this user's runtime folder may be missing as well.
  const auto slash = directory.rfind('/');
  if (slash != std::string::npos && slash > 0) ::mkdir(directory.substr(0, slash).c_str(), 0700);
  ::mkdir(directory.c_str(), 0700);
  why = why_not_private(directory);
  if (!why.empty()) return nullptr;
  const int file = open_locked(directory);
  if (file < 0) {
    why = directory + "/table-4: " + std::strerror(errno);
    return nullptr;
  }
  void* at = MAP_FAILED;
  {
    struct stat info{};
    if (::fstat(file, &info) == 0 &&
        (info.st_size >= static_cast<off_t>(sizeof(Layout)) ||
         (link::file_may_have(sizeof(Layout)) && ::ftruncate(file, static_cast<off_t>(sizeof(Layout))) == 0)))
      at = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED && static_cast<Layout*>(at)->magic.load() == 0) prepare(*static_cast<Layout*>(at));
  }
  if (at == MAP_FAILED || static_cast<Layout*>(at)->magic.load() != Layout::the_magic) {
    why = directory + "/table-4 cannot be mapped, or is of another version";
    ::flock(file, LOCK_UN);
    if (at != MAP_FAILED) ::munmap(at, sizeof(Layout));
    close_aside(file);
    return nullptr;
  }
  std::unique_ptr<Table> table(new Table(directory, file, static_cast<Layout*>(at)));
  const bool entered = table->enter();
  ::flock(file, LOCK_UN);
  if (!entered) {
    why = "more than " + std::to_string(max_processes) + " programs use " + directory;
    return nullptr;
  }
  return table;
}

Table::~Table() {
  ::munmap(layout_, sizeof(Layout));
  close_aside(file_);
}

bool Table::enter() {
  struct flock lock{};
  for (std::uint32_t at = 0; at < max_processes; ++at) {
    if (!lock_byte(file_, at, F_WRLCK, F_OFD_SETLK, lock)) continue;
    process_ = at;
    layout_->put_back[at].store(0);
    layout_->generations[at].fetch_add(1);
    return true;
  }
  return false;
}

bool Table::alive(std::uint32_t process) const {
  if (process == process_) return true;
  struct flock lock{};
  if (process >= max_processes) return false;
  return !lock_byte(file_, process, F_WRLCK, F_OFD_GETLK, lock) || lock.l_type != F_UNLCK;
}

bool Table::alive(const Side& end) const {
  const auto process = end.process.load();
  return alive(process) &&
         (end.mirror.load() != 0 || layout_->generations[process].load() == end.generation.load());
}

bool Table::over(const Side& side) const {
  const auto stage = static_cast<Stage>(side.stage.load());
  return stage == Stage::absent || stage == Stage::gone || !alive(side);
}

std::optional<Table::Place> Table::claim(const Key& key, bool lower) {
  const TableLock lock(layout_->lock);
  if (!lock) return std::nullopt;
  const std::size_t first = hash(key);
  const unsigned side = lower ? 0 : 1;
  Entry* free = nullptr;
  Entry* found = nullptr;
  for (std::uint32_t i = 0; i < most_probes && found == nullptr; ++i) {
    Entry& entry = layout_->entries[(first + i) % max_entries];
    if (entry.used.load() != 0 && entry.key == key)
      found = &entry;
    else if (free == nullptr && (entry.used.load() == 0 || (over(entry.sides[0]) && over(entry.sides[1]))))
      free = &entry;
  }
  if (found != nullptr && static_cast<Stage>(found->sides[side].stage.load()) != Stage::absent) {
    // It is from an earlier connection with the same addresses; nothing left of it is our peer.
    if (!over(found->sides[0]) || !over(found->sides[1])) return std::nullopt;
    for (Side& one : found->sides) clear(one);
  }
  Entry* const entry = found != nullptr ? found : free;
  if (entry == nullptr) return std::nullopt;
  if (found == nullptr) {
    for (Side& one : entry->sides) clear(one);
    entry->key = key;
    entry->used.store(1);
  }
  Side& mine = entry->sides[side];
  mine.process.store(process_);
  mine.generation.store(layout_->generations[process_].load());
  mine.pid.store(static_cast<std::uint32_t>(::getpid()));
  return Place{entry, side};
}

void Table::take_mirror(const Place& place) {
  Side& peer = place.peer();
  peer.process.store(process_);
  peer.mirror.store(1);
}

std::uint32_t Table::far_port_of(const Key& key, bool lower) {
  const TableLock lock(layout_->lock);
  if (!lock) return 0;
  const std::size_t first = hash(key);
  for (std::uint32_t i = 0; i < most_probes; ++i) {
    const Entry& entry = layout_->entries[(first + i) % max_entries];
    const Side& side = entry.sides[lower ? 0 : 1];
    if (entry.used.load() != 0 && entry.key == key && !over(side)) return side.far_port.load();
  }
  return 0;
}

void Table::release(const Place& place) {
  place.mine().stage.store(static_cast<std::uint32_t>(Stage::gone));
  const TableLock lock(layout_->lock);
  if (lock && over(place.peer())) place.entry->used.store(0);
}

void Table::leave() {
  for (std::uint32_t i = 0; i < max_bells; ++i)
    if (layout_->bells[i].owner.load() == process_ + 1) ::unlink(bell_path(i).text());
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) return;  // another process is just starting
  bool last = true;
  for (std::uint32_t i = 0; i < max_processes && last; ++i) last = i == process_ || !alive(i);
  if (last) {
    ::unlink(Layout::table_path(directory_).c_str());
    ::rmdir(directory_.c_str());
  }
  ::flock(file_, LOCK_UN);
}

BellPath::BellPath(const std::string& prefix, std::uint32_t bell, std::uint32_t generation) {
  constexpr std::size_t numbers = 24;
  if (prefix.size() + numbers > text_.size()) return;
  std::memcpy(text_.data(), prefix.data(), prefix.size());
  char* const last = std::end(text_) - 1;  // which stays 0
  char* const dash = std::to_chars(text_.data() + prefix.size(), last, bell).ptr;
  *dash = '-';
  std::to_chars(dash + 1, last, generation);
}

std::optional<std::uint32_t> Table::claim_bell() {
  const TableLock lock(layout_->lock);
  if (!lock) return std::nullopt;
  for (std::uint32_t i = 0; i < max_bells; ++i) {
    Bell& one = layout_->bells[i];
    const auto owner = one.owner.load();
    if (owner != 0 && alive(owner - 1)) continue;
    one.sleeping.store(0);
    one.summary.store(0);
    for (auto& word : one.words) word.store(0);
    if (owner != 0) ::unlink(bell_path(i).text());  // a killed process may have left it
    one.generation.fetch_add(1);
    one.owner.store(process_ + 1);
    return i;
  }
  return std::nullopt;
}

void Table::release_bell(std::uint32_t index) { bell(index).owner.store(0); }

}  // namespace weir::sockets
