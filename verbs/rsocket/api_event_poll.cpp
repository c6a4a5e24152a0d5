// The C interface: repoll_create, repoll_ctl and repoll_wait.
#include "verbs/rsocket/api.hpp"
#include "verbs/rsocket/event_poll.hpp"

using namespace weir::rsocket;

extern "C" {

int repoll_create(int flags) {
  const weir::link::NotCancelled whole;
  const auto made = EventPoll::open(flags);
  if (!made) return as_c(made.error());
  insert((*made)->descriptor(), *made);
  return (*made)->descriptor();
}

int repoll_ctl(int epfd, int operation, int fd, epoll_event* event) {
  const weir::link::NotCancelled whole;
  const EventPollPtr poll = find_event_poll(epfd);
  if (!poll) return as_c(EBADF);
  return as_c(poll->control(operation, fd, event));
}

int repoll_wait(int epfd, epoll_event* events, int most, int timeout) {
  const EventPollPtr poll = find_event_poll(epfd);
  if (!poll) return as_c(EBADF);
  if (most <= 0) return as_c(EINVAL);
  if (events == nullptr) return as_c(EFAULT);
  return static_cast<int>(as_c(poll->wait({events, static_cast<std::size_t>(most)}, timeout)));
}

}  // extern "C"
