// Waits for many plain sockets with few system calls.
//
// All sockets are in one level-triggered epoll set of our own, and Asio waits only on that set's descriptor.
// So a ready socket costs its recv and its send and nothing else. (An Asio wait would add, for each request,
// an epoll_ctl or a recv that finds nothing.) A round handles every ready socket, then calls `after_round`
// once; there the server sends all replies of the round.
//
// Threading: the io_context's one thread. A removed watcher must stay allocated until the end of its
// round; `after_round` may free it.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <span>

namespace weir::kv {

class SocketPoller {
 public:
  class Watcher {
   public:
    virtual void ready(std::uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  SocketPoller(asio::io_context& io, std::function<void()> after_round);

  void add(int fd, Watcher& watcher, std::uint32_t events);
  void change(int fd, Watcher& watcher, std::uint32_t events);
  void remove(int fd);

  asio::io_context& io() { return io_; }
  // A receive buffer for the code that handles the current event.
  std::span<char> scratch() { return scratch_; }

 private:
  void wait();
  void rounds();
  int round();

  asio::io_context& io_;
  asio::posix::stream_descriptor epoll_;
  std::function<void()> after_round_;
  std::array<epoll_event, 256> events_;
  std::array<char, 64 * 1024> scratch_;
};

}  // namespace weir::kv
