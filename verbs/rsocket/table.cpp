#include "verbs/rsocket/table.hpp"

#include <unistd.h>

#include <cstdlib>
#include <set>

#include "verbs/rsocket/stream.hpp"

namespace weir::rsocket {
namespace {

// As with a killed process nobody would tell the peers that this one ended well; close() does, for each.
void leave_all() {
  for (const auto& socket : all_sockets()) {
    if (auto* stream = dynamic_cast<Stream*>(socket.get())) stream->leave();
  }
}

struct Table {
  std::mutex mutex;
  std::vector<SocketPtr> sockets;
  std::set<int> inherited;
  pid_t owner = 0;
};

// Lives until exit, like the threads that use it.
Table& table() {
  static auto* the_table = new Table;
  return *the_table;
}

// mutex held. What a child finds in its copy is the parent's: it is left as it is, and never destroyed here.
void check_owner(Table& t) {
  if (t.owner == ::getpid()) return;
  if (t.owner == 0) {
    std::atexit(leave_all);
  } else {
    auto* parents = new std::vector<SocketPtr>(std::move(t.sockets));
    t.sockets.clear();
    for (std::size_t number = 0; number < parents->size(); ++number) {
      if ((*parents)[number]) t.inherited.insert(static_cast<int>(number));
    }
  }
  t.owner = ::getpid();
}

SocketPtr* slot(Table& t, int number) {
  check_owner(t);
  const auto index = static_cast<std::size_t>(number);
  return number < 0 || index >= t.sockets.size() ? nullptr : &t.sockets[index];
}

}  // namespace

void insert(SocketPtr socket) {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  check_owner(t);
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
  check_owner(t);
  return t.inherited.erase(number) > 0;
}

std::vector<SocketPtr> all_sockets() {
  Table& t = table();
  const std::scoped_lock hold(t.mutex);
  check_owner(t);
  std::vector<SocketPtr> all;
  for (const auto& socket : t.sockets) {
    if (socket) all.push_back(socket);
  }
  return all;
}

}  // namespace weir::rsocket
