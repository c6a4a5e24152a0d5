#include "verbs/rsocket/table.hpp"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "verbs/rsocket/stream.hpp"

namespace weir::rsocket {
namespace {

// How long the end of a process waits for its peers to take what was sent, all of them together, as close()
// does for one; and for calls that are under way.
constexpr std::chrono::seconds longest_leave{5};
constexpr std::chrono::milliseconds longest_call{50};

// As with a killed process, nobody would tell the peers that this one ended well; close() does, for each.
// What follows at exit() ends the connections themselves, and such a message can overtake bytes that are
// still on their way: a peer that has it first reports a reset.
void leave_all() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds pause{1};
  auto left = all_sockets();
  const auto start = Clock::now();
  for (;;) {
    const auto waited = Clock::now() - start;
    std::erase_if(left, [&](const SocketPtr& socket) {
      auto* stream = dynamic_cast<Stream*>(socket.get());
      const auto now = stream != nullptr ? stream->leave() : Stream::Leaving::over;
      return now == Stream::Leaving::over || (now == Stream::Leaving::in_use && waited >= longest_call);
    });
    if (left.empty() || waited >= longest_leave) return;
    std::this_thread::sleep_for(pause);
  }
}

struct Table {
  std::mutex mutex;
  std::vector<SocketPtr> sockets;
  std::map<int, EventPollPtr> event_polls;
  std::set<int> inherited;
};

void before_fork();
void after_fork();
void in_child();

// Lives until exit, like the threads that use it.
Table& table() {
  static auto* the_table = [] {
    ::pthread_atfork(before_fork, after_fork, in_child);
    return new Table;
  }();
  return *the_table;
}

// A fork waits until no other thread is changing the table, so that the child finds it whole.
void before_fork() { table().mutex.lock(); }
void after_fork() { table().mutex.unlock(); }

// What a child finds in its copy is the parent's: it is left as it is, and never destroyed here.
void in_child() {
  Table& t = table();
  auto* parents = new Table;
  parents->sockets.swap(t.sockets);
  parents->event_polls.swap(t.event_polls);
  for (std::size_t number = 0; number < parents->sockets.size(); ++number) {
    if (parents->sockets[number]) t.inherited.insert(static_cast<int>(number));
  }
  for (const auto& [number, poll] : parents->event_polls) t.inherited.insert(number);
  t.mutex.unlock();
}

SocketPtr* slot(Table& t, int number) {
  const auto index = static_cast<std::size_t>(number);
  return number < 0 || index >= t.sockets.size() ? nullptr : &t.sockets[index];
}

}  // namespace

void insert(SocketPtr socket) {
  // What the socket uses has registered its own end by now, which therefore comes after this one.
  [[maybe_unused]] static const int registered = std::atexit(leave_all);
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  const int number = socket->descriptor();
  const auto index = static_cast<std::size_t>(number);
  if (index >= t.sockets.size()) t.sockets.resize(index + 1);
  t.sockets[index] = std::move(socket);
  t.inherited.erase(number);
}

SocketPtr find(int number) {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  const SocketPtr* at = slot(t, number);
  return at != nullptr ? *at : nullptr;
}

SocketPtr remove(int number) {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  SocketPtr* at = slot(t, number);
  return at != nullptr ? std::move(*at) : nullptr;
}

bool remove_inherited(int number) {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  return t.inherited.erase(number) > 0;
}

std::vector<SocketPtr> all_sockets() {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  std::vector<SocketPtr> all;
  for (const auto& socket : t.sockets) {
    if (socket) all.push_back(socket);
  }
  return all;
}

void insert(int number, EventPollPtr poll) {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  t.event_polls[number] = std::move(poll);
  t.inherited.erase(number);
}

EventPollPtr find_event_poll(int number) {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  const auto found = t.event_polls.find(number);
  return found != t.event_polls.end() ? found->second : nullptr;
}

EventPollPtr remove_event_poll(int number) {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  auto node = t.event_polls.extract(number);
  return node ? std::move(node.mapped()) : nullptr;
}

std::vector<EventPollPtr> all_event_polls() {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  std::vector<EventPollPtr> all;
  for (const auto& [number, poll] : t.event_polls) all.push_back(poll);
  return all;
}

}  // namespace weir::rsocket
