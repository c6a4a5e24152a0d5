// Plain sockets with few system calls: all of an io_context's sit in one level-triggered epoll set, whose
// descriptor is the one thing that Asio waits on. A socket that is ready costs its recv and its send.
//
// While it looks itself Asio does not watch the set: a segment that arrives would make two sets ready, one
// within the other.
//
// Sends and receives are made in rows: some of the sockets that are ready are received from, then what came
// is handed on, then what was answered is sent. A call into TCP runs through more of the kernel's code than
// the nearest cache holds and leaves ours cold, so that what follows it costs several times what it does
// otherwise; the next call of the same kind finds the kernel's warm.
//
// After traffic it goes on looking for a while before it sleeps, as rdma's engine does and by the same policy
// (waiting/poll_policy.hpp): a reply that comes within `idle_spin` then costs no sleep and no wake-up. Where
// others want the core it sleeps at once.
//
// Ownership: a service of the io_context. Sockets keep run() from returning while they are added. Threading:
// the io_context's one thread.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "rpc/transport/reserved_block.hpp"
#include "waiting/poll_policy.hpp"

namespace weir::rpc {

class Poller final : public asio::execution_context::service {
 public:
  using key_type = Poller;
  static asio::execution_context::id id;
  static Poller& of(asio::io_context& io) { return asio::use_service<Poller>(io); }

  class Watcher : public std::enable_shared_from_this<Watcher> {
   public:
    // The socket can be read. Return true if few bytes at a time are expected: they are received together
    // with those of other sockets, and received() is told what recv() into `place` returned and, if that is
    // -1, errno. Return false to be called through ready(), which reads, into scratch().
    virtual bool expects_little() { return false; }
    virtual void received(std::span<const std::byte> /*place*/, ssize_t /*got*/, int /*error*/) {}
    virtual void ready(std::uint32_t events) = 0;
    // Once behind those, when the others that are ready were asked, too, or those so far have taken a while.
    virtual void round_ended() {}
    // The socket did not take these bytes of those that send_soon() took.
    virtual void unsent(std::span<const std::byte>) {}

    virtual ~Watcher() = default;

   private:
    friend class Poller;
    int fd_ = -1;
    bool watched_ = false;
    bool staged_ = false;  // send_soon() took something that was not sent yet
  };

  explicit Poller(asio::io_context& io);

  // Returns false with errno set if the system refuses.
  bool add(int fd, Watcher& watcher, std::uint32_t events);
  void change(int fd, Watcher& watcher, std::uint32_t events);
  // Call before the descriptor is closed; what send_soon() took is sent first. The watcher may be freed at
  // once.
  void remove(int fd, Watcher& watcher);
  // Returns true if the bytes were taken; they are sent together with those of other watchers whose rounds
  // end now. Returns false if there are no others, the bytes are too many, or bytes of this watcher were
  // taken before: send_now() those, then send these.
  bool send_soon(Watcher& watcher, std::span<const std::byte> bytes);
  void send_now(const Watcher& watcher) {
    if (watcher.staged_) send_staged();
  }

  asio::io_context& io() { return io_; }
  // How long an answer may wait for those of others; for tests.
  void hold_answers(std::chrono::microseconds most) { most_held_ = most; }
  // Receive buffer lent to the code that handles the current event.
  static constexpr std::size_t scratch_bytes = 256 << 10;
  std::span<std::byte> scratch() { return {scratch_.get(), scratch_bytes}; }
  // The most received for a socket that expects small messages.
  static constexpr std::size_t little = 8 << 10;

 private:
  static constexpr std::chrono::microseconds idle_spin{50};
  static constexpr std::size_t longest_row = 16;
  // A few lines further apart, because places at a distance of whole KiB compete for the same cache lines.
  static constexpr std::size_t place_stride = little + 192;
  static constexpr std::size_t most_staged = 64 << 10;
  // A ready socket, until its round has ended.
  struct Asked {
    std::shared_ptr<Watcher> watcher;
    std::uint32_t events;
    std::span<std::byte> place;  // where it is received, if it expects little
    ssize_t got = -1;            // until it is received
    int error = EAGAIN;
  };
  struct Staged {
    Watcher* watcher;
    std::span<const std::byte> bytes;
    std::size_t sent = 0;
  };
  void shutdown() override;
  bool let_asio_watch(bool on);
  void sleep();
  void go_on();
  void rounds();
  bool round();
  void ask(std::span<const epoll_event> ready);
  void receive();
  void deliver();
  void end_rounds();
  void forget_asked();
  void send_staged();

  asio::io_context& io_;
  int set_;
  asio::posix::stream_descriptor watched_set_;  // set_, or closed while Asio does not watch it
  std::array<epoll_event, 128> events_;
  std::unique_ptr<std::byte[]> scratch_, places_;
  std::vector<Watcher*> removed_;  // in this round: their events are stale
  std::vector<Asked> asked_;
  std::chrono::microseconds most_held_{20};  // how long the first ready socket waits for the rest
  std::size_t delivered_ = 0, ended_ = 0;    // of these: got their bytes; were told of the round's end
  bool several_end_ = false;                 // several rounds end now, one after another
  std::unique_ptr<std::byte[]> staging_;
  std::size_t staging_used_ = 0;
  std::vector<Staged> staged_;
  std::size_t watched_ = 0;
  bool in_round_ = false;
  bool waiting_ = false;    // Asio waits for the set, or the next round is posted
  ReservedBlock for_wait_;  // of either: an exception for want of memory must not end the rounds
  waiting::PollPolicy policy_{idle_spin};
};

}  // namespace weir::rpc
