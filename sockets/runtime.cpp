#include "sockets/runtime.hpp"

#include <pthread.h>

#include <array>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "link/default_directory.hpp"
#include "sockets/connections.hpp"
#include "sockets/device.hpp"
#include "sockets/service.hpp"

namespace weir::sockets {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const word = std::getenv(name);
  if (word == nullptr || *word == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(word, &end, 10);
  return *end == '\0' ? value : otherwise;
}

// As the program was started.
struct Variable {
  const char* name;
  std::string value;
};
std::vector<Variable>& variables() {
  static auto& made = *new std::vector<Variable>;
  return made;
}
void note_environment() {
  for (const char* name :
       {"WEIR_RUNTIME_DIR", "WEIR_DEVICES", "WEIR_GIDS", "WEIR_MTU", "WEIR_NO_PROCESS_VM", "WEIR_WIRE"})
    if (const char* const value = std::getenv(name)) variables().push_back({name, value});
}

Settings read_settings() {
  note_environment();
  Settings it;
  const char* const mode = std::getenv("WEIR_SOCKETS");
  it.off = mode != nullptr && std::string_view(mode) == "off";
  it.trace = mode != nullptr && std::string_view(mode) == "trace";
  it.report = mode != nullptr && std::string_view(mode) == "report";
  if (auto rules = read_rules(std::getenv("WEIR_SOCKETS_RULES"))) {
    it.rules = *std::move(rules);
  } else {  // the program is not ours to end; nothing changes that somebody meant to leave out
    std::fprintf(stderr, "weir sockets: WEIR_SOCKETS_RULES: %s: no connection changes\n",
                 rules.error().c_str());
    it.off = true;
  }
  it.after_calls = static_cast<std::uint32_t>(number("WEIR_SOCKETS_AFTER", it.after_calls));
  it.change_every = number("WEIR_SOCKETS_CHANGE_EVERY", 0);
  const auto ring = number("WEIR_SOCKETS_RING", it.ring_bytes);
  if (std::has_single_bit(ring) && ring >= 4096 && ring <= 1 << 24)
    it.ring_bytes = static_cast<std::uint32_t>(ring);
  it.spin =
      std::chrono::microseconds(number("WEIR_SOCKETS_SPIN", static_cast<std::uint64_t>(it.spin.count())));
  const char* const sleepers = std::getenv("WEIR_SOCKETS_SLEEPERS");
  it.wakes_by_ring = sleepers != nullptr && std::string_view(sleepers) == "ring";
  it.directory = link::default_runtime_directory(std::getenv("WEIR_RUNTIME_DIR")) + "/lasting-sockets";
  return it;
}

// What a child of fork() makes anew.
struct Shared {
  SectionMutex mutex;
  bool tried_table = false, tried_device = false;
  std::unique_ptr<Table> table;
  Device* device = nullptr;
};
Shared& shared() {
  static Shared& made = *new Shared;
  return made;
}
constinit std::atomic<Table*> the_table{nullptr};
constinit std::atomic<std::uint32_t> generation{0};

struct ThreadWaiter {
  std::unique_ptr<Waiter> waiter;
  std::uint32_t made_in = ~0u;
  bool lent = false;
  ~ThreadWaiter() {
    if (made_in != generation.load()) (void)waiter.release();
  }
};

thread_local ThreadWaiter thread_waiter;

void in_child() {
  generation.fetch_add(1);
  Shared& all = shared();
  // The parent's table stays mapped: connections of the parent are still answered for there.
  (void)all.table.release();
  new (&all) Shared;
  the_table.store(nullptr);
  service_forgets_parent();
  Connections::after_fork_in_child();
}

}  // namespace

const Settings& settings() {
  static const Settings& made = *new Settings(read_settings());
  return made;
}

void keep_environment() {
  for (const Variable& one : variables())
    if (std::getenv(one.name) == nullptr) ::setenv(one.name, one.value.c_str(), 1);
}

Table* table() {
  if (Table* const known = the_table.load(std::memory_order_acquire)) return known;
  Shared& all = shared();
  const std::scoped_lock lock(all.mutex);
  if (!all.tried_table) {
    all.tried_table = true;
    std::string why;
    all.table = Table::open(settings().directory, why);
    if (!all.table) trace("no connection changes carriers: %s", why.c_str());
    the_table.store(all.table.get(), std::memory_order_release);
  }
  return all.table.get();
}

Pace& pace_to(std::uint32_t process) {
  static constinit std::array<Pace, max_processes> paces{};
  return paces[process % max_processes];
}

void leave_table() {
  if (Table* const known = the_table.load()) known->leave();
}

Device* device() {
  Shared& all = shared();
  const std::scoped_lock lock(all.mutex);
  if (!all.tried_device) {
    all.tried_device = true;
    std::string why;
    all.device = Device::open(settings().ring_bytes, why);
    if (all.device == nullptr) trace("no connection changes carriers: %s", why.c_str());
  }
  return all.device;
}

LentWaiter::LentWaiter() {
  if (table() == nullptr) return;
  const Section section;
  ThreadWaiter& mine = thread_waiter;
  if (mine.made_in != generation.load()) {
    (void)mine.waiter.release();
    mine.made_in = generation.load();
    mine.lent = false;
  }
  if (mine.lent) {
    own_ = Waiter::make(*table());
    waiter_ = own_.get();
    return;
  }
  if (!mine.waiter) mine.waiter = Waiter::make(*table());
  waiter_ = mine.waiter.get();
  mine.lent = waiter_ != nullptr;
}

LentWaiter::~LentWaiter() {
  const Section section;
  if (own_ == nullptr && waiter_ != nullptr) thread_waiter.lent = false;
  own_.reset();
}

void watch_forks() {
  static const bool once =
      ::pthread_atfork(Connections::before_fork, Connections::after_fork_in_parent, in_child) == 0;
  (void)once;
}

void trace(const char* format, ...) {
  if (!settings().trace) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "weir sockets: %s[%d]: %.*s\n", program_invocation_short_name, ::getpid(), length,
               line);
}

}  // namespace weir::sockets
