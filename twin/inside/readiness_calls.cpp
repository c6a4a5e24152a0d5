// Calls that make a descriptor ready without a write to it. Asio wakes its epoll_wait() by EPOLL_CTL_MOD of a
// descriptor that is always readable; a pipe's reader sees the end when dup2() replaces the last writer.
#include "twin/inside/readiness_calls.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>

#include "twin/inside/baton.hpp"
#include "twin/inside/timers.hpp"

namespace weir::twin {
namespace {

// One for each descriptor of each set; what was closed stays until its number is put in again. Used by the
// thread that has the baton, and never destroyed.
struct Sets {
  std::map<std::pair<int, std::uint64_t>, int> descriptor_of;
  std::map<std::pair<int, int>, std::uint64_t> data_of;
};
Sets& sets() {
  static auto* const made = new Sets;
  return *made;
}

void note(int epoll, int operation, int descriptor, const epoll_event* event) {
  Sets& all = sets();
  if (const auto old = all.data_of.find({epoll, descriptor}); old != all.data_of.end()) {
    all.descriptor_of.erase({epoll, old->second});
    all.data_of.erase(old);
  }
  if (operation == EPOLL_CTL_DEL || event == nullptr) return;
  all.data_of[{epoll, descriptor}] = event->data.u64;
  all.descriptor_of[{epoll, event->data.u64}] = descriptor;
}

}  // namespace

int in_epoll(int epoll, std::uint64_t data) {
  const auto found = sets().descriptor_of.find({epoll, data});
  return found != sets().descriptor_of.end() ? found->second : -1;
}

std::vector<int> all_in_epoll(int epoll) {
  std::vector<int> members;
  const auto& all = sets().data_of;
  for (auto at = all.lower_bound({epoll, 0}); at != all.end() && at->first.first == epoll; ++at)
    members.push_back(at->first.second);
  return members;
}

}  // namespace weir::twin

using namespace weir::twin;

namespace {

template <class Result>
Result counted(Result result) {
  if (result >= 0 && controlled()) wrote();
  return result;
}

// What `descriptor` stood for is closed.
bool replaced(int descriptor) {
  if (descriptor >= 0 && descriptor == arena_descriptor()) return errno = EBADF, false;
  if (controlled()) timer_closed(descriptor);
  return true;
}

}  // namespace

extern "C" {

int epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) noexcept {
  const int result = WEIR_NEXT(epoll_ctl)(epoll, operation, descriptor, event);
  if (result == 0 && controlled()) note(epoll, operation, descriptor, event);
  return counted(result);
}
int dup2(int from, int to) noexcept {
  if (from != to && !replaced(to)) return -1;
  return counted(WEIR_NEXT(dup2)(from, to));
}
int dup3(int from, int to, int flags) noexcept {
  if (!replaced(to)) return -1;
  return counted(WEIR_NEXT(dup3)(from, to, flags));
}
int setsockopt(int descriptor, int level, int option, const void* value, socklen_t bytes) noexcept {
  const int result = WEIR_NEXT(setsockopt)(descriptor, level, option, value, bytes);
  return level == SOL_SOCKET && option == SO_RCVLOWAT ? counted(result) : result;
}
ssize_t splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags) {
  return counted(WEIR_NEXT(splice)(in, in_at, out, out_at, bytes, flags));
}
ssize_t tee(int in, int out, size_t bytes, unsigned flags) {
  return counted(WEIR_NEXT(tee)(in, out, bytes, flags));
}
ssize_t vmsplice(int descriptor, const iovec* pieces, size_t count, unsigned flags) {
  return counted(WEIR_NEXT(vmsplice)(descriptor, pieces, count, flags));
}
}
