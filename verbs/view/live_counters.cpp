#include "verbs/view/live_counters.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "verbs/ibv/sysfs_counters.hpp"
#include "verbs/view/tree.hpp"

namespace weir::verbs {
namespace {

namespace fs = std::filesystem;

// "counters/port_xmit_data" of any path that ends so and is not only that.
std::string_view last_two(std::string_view path) {
  const std::size_t name = path.rfind('/');
  if (name == std::string_view::npos || name == 0) return {};
  const std::size_t group = path.rfind('/', name - 1);
  return group == std::string_view::npos ? std::string_view{} : path.substr(group + 1);
}

// Of the many files that programs open, those that are worth a closer look.
bool may_be_counter(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const SysfsCounter& counter : sysfs_counters())
    if (counter.path.ends_with(name) && counter.path[counter.path.size() - name.size() - 1] == '/')
      return true;
  return false;
}

struct Counted {
  const SysfsCounter* counter;
  std::string file;
};

// The program may be in a directory of the tree, or hold one open, and its parent may have made the tree: so
// the descriptor says what file it is.
std::optional<Counted> counter_behind(int fd) {
  std::array<char, PATH_MAX> at{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), at.data(), at.size());
  if (length <= 0 || static_cast<std::size_t>(length) == at.size()) return std::nullopt;
  std::string file(at.data(), static_cast<std::size_t>(length));
  const SysfsCounter* const counter = find_sysfs_counter(last_two(file));
  if (counter == nullptr || !is_in_a_view_tree(file)) return std::nullopt;
  return Counted{counter, std::move(file)};
}

using PortCall = decltype(::weir_monitor_port);

// The libibverbs.so.1 beside this library: with it `weir run` chose both.
PortCall* port_call() {
  static PortCall* const call = []() -> PortCall* {
    Dl_info self{};
    if (::dladdr(reinterpret_cast<const void*>(&opened_for_reading), &self) == 0) return nullptr;
    const fs::path library = fs::path(self.dli_fname).parent_path() / "libibverbs.so.1";
    void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    return loaded != nullptr ? reinterpret_cast<PortCall*>(::dlsym(loaded, "weir_monitor_port")) : nullptr;
  }();
  return call;
}

void bring_up_to_date(const Counted& counted) {
  CountersSeen port{};
  PortCall* const ask = port_call();
  if (ask == nullptr || ask(sizeof port, &port) != 0) return;
  const std::string text = std::to_string(counted.counter->of(port)) + '\n';
  const int fd = ::open(counted.file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  // Counters grow, so a shorter text comes only after a directory of counters was removed.
  if (::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    (void)!::ftruncate(fd, static_cast<off_t>(text.size()));
  ::close(fd);
}

// Asking opens files, which comes by here again.
thread_local bool asking = false;
class Asking {
 public:
  Asking() : before_(errno) { asking = true; }
  ~Asking() {
    asking = false;
    errno = before_;
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  int before_;
};

// The descriptors of counters that the program holds. A number may be another file's by now: what it was
// then tells.
struct Held {
  int fd = -1;
  dev_t device = 0;
  ino_t inode = 0;
};
std::atomic<bool> any_held{false};
std::mutex held_mutex;
std::array<Held, 256> held;  // more than there are counters; beyond it the oldest are forgotten
std::size_t held_next = 0;

void hold(int fd) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) return;
  const std::lock_guard lock(held_mutex);
  for (Held& one : held)
    if (one.fd == fd) one.fd = -1;
  held[held_next++ % held.size()] = {fd, about.st_dev, about.st_ino};
  any_held.store(true, std::memory_order_release);
}

bool is_held(int fd) {
  struct stat about{};
  const std::lock_guard lock(held_mutex);
  for (Held& one : held) {
    if (one.fd != fd) continue;
    if (::fstat(fd, &about) == 0 && about.st_dev == one.device && about.st_ino == one.inode) return true;
    one.fd = -1;
  }
  return false;
}

}  // namespace

void opened_for_reading(int fd, std::string_view path) {
  if (fd < 0 || asking || !may_be_counter(path)) return;
  const Asking scope;
  const auto counted = counter_behind(fd);
  if (!counted) return;
  bring_up_to_date(*counted);
  hold(fd);
}

void about_to_read(int fd, std::optional<off_t> offset) {
  // acquire: pairs with hold(); most programs hold none, and pay this look.
  if (!any_held.load(std::memory_order_acquire) || asking) return;
  const Asking scope;
  if (!is_held(fd) || (offset ? *offset : ::lseek(fd, 0, SEEK_CUR)) != 0) return;
  if (const auto counted = counter_behind(fd)) bring_up_to_date(*counted);
}

}  // namespace weir::verbs
