// The C library's own functions, which the preloaded library's functions hide.
#pragma once

#include <dlfcn.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace weir::sockets {

// Looked up once; each member has the name of the function that it calls.
struct SystemCalls {
  template <class Call>
  static void find(Call*& call, const char* name) {
    call = reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
  }
  SystemCalls() {
    find(close, "close");
    find(dup3, "dup3");
    find(read, "read");
    find(write, "write");
    find(recvmsg, "recvmsg");
    find(sendmsg, "sendmsg");
    find(ppoll, "ppoll");
    find(fcntl, "fcntl");
    find(ioctl, "ioctl");
    find(connect, "connect");
    find(setsockopt, "setsockopt");
    find(epoll_ctl, "epoll_ctl");
    find(epoll_pwait, "epoll_pwait");
  }
  int (*close)(int);
  int (*dup3)(int, int, int);
  ssize_t (*read)(int, void*, size_t);
  ssize_t (*write)(int, const void*, size_t);
  ssize_t (*recvmsg)(int, msghdr*, int);
  ssize_t (*sendmsg)(int, const msghdr*, int);
  int (*ppoll)(pollfd*, nfds_t, const timespec*, const sigset_t*);
  int (*fcntl)(int, int, ...);
  int (*ioctl)(int, unsigned long, ...);
  int (*connect)(int, const sockaddr*, socklen_t);
  int (*setsockopt)(int, int, int, const void*, socklen_t);
  int (*epoll_ctl)(int, int, int, epoll_event*);
  int (*epoll_pwait)(int, epoll_event*, int, int, const sigset_t*);
};

inline const SystemCalls& system_calls() {
  static const SystemCalls& calls = *new SystemCalls;  // outlives every destructor
  return calls;
}

}  // namespace weir::sockets
