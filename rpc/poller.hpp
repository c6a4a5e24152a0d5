// Readiness of plain sockets with few system calls: all of an io_context's sit in one level-triggered epoll
// set, whose descriptor is the one thing that Asio waits on.
//
// After traffic it goes on looking for a while before it sleeps, as rdma's engine does and by the same policy
// (rdma/poll_policy.hpp): a reply that comes within `idle_spin` then costs no sleep and no wake-up. Where
// others want the core it sleeps at once.
//
// Ownership: a service of the io_context. Sockets keep run() from returning while they are added. Threading:
// the io_context's one thread.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <memory>
#include <span>
#include <vector>

#include "rdma/poll_policy.hpp"
#include "rpc/reserved_block.hpp"

namespace weir::rpc {

class Poller final : public asio::execution_context::service {
 public:
  using key_type = Poller;
  static asio::execution_context::id id;
  static Poller& of(asio::io_context& io) { return asio::use_service<Poller>(io); }

  class Watcher : public std::enable_shared_from_this<Watcher> {
   public:
    virtual void ready(std::uint32_t events) = 0;
    // Once behind it, when the others that are ready were asked, too, or those so far have taken a while.
    // What is written only now finds the kernel's code for it in the caches.
    virtual void round_ended() {}

    virtual ~Watcher() = default;

   private:
    friend class Poller;
    bool watched_ = false;
  };

  explicit Poller(asio::io_context& io);

  // False with errno set if the system refuses.
  bool add(int fd, Watcher& watcher, std::uint32_t events);
  void change(int fd, Watcher& watcher, std::uint32_t events);
  // Before the descriptor is closed. The watcher may be freed at once.
  void remove(int fd, Watcher& watcher);

  asio::io_context& io() { return io_; }
  // Receive buffer lent to whoever handles an event now.
  std::span<std::byte> scratch() { return {scratch_.get(), scratch_bytes}; }

 private:
  static constexpr std::size_t scratch_bytes = 256 << 10;
  static constexpr std::chrono::microseconds idle_spin{50};
  // What the first that is ready waits for the rest.
  static constexpr std::chrono::microseconds most_held{20};
  void shutdown() override;
  void sleep();
  void go_on();
  void rounds();
  bool round();
  void tell_asked();

  asio::io_context& io_;
  asio::posix::stream_descriptor epoll_;
  std::array<epoll_event, 128> events_;
  std::unique_ptr<std::byte[]> scratch_;
  std::vector<Watcher*> removed_;                // in this round: their events are stale
  std::vector<std::shared_ptr<Watcher>> asked_;  // since the last that were told that their round ended
  std::size_t told_ = 0;                         // of these
  std::size_t watched_ = 0;
  bool in_round_ = false;
  bool waiting_ = false;    // Asio waits for the set, or the next round is posted
  ReservedBlock for_wait_;  // of either: an exception for want of memory must not end the rounds
  rdma::PollPolicy policy_{idle_spin};
};

}  // namespace weir::rpc
