// The neighbour a process is to itself: the same interface with no socket. Messages pass through the progress
// thread, so handlers see them exactly as they see another process's.
//
// Threading: any thread; call() not from the progress thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "link/pending_calls.hpp"
#include "link/progress_thread.hpp"
#include "link/same_host.hpp"

namespace weir::link {

class Loopback final : public Neighbour, public std::enable_shared_from_this<Loopback> {
 public:
  static constexpr std::size_t max_in_flight = 1024;
  // False: nobody handles this kind.
  using Deliver = std::function<bool(const NeighbourPtr&, Message&&)>;

  struct Identity {
    Slot slot;
    std::uint64_t incarnation;
    Greeting greeting;
  };
  Loopback(Identity identity, std::shared_ptr<ProgressThread> progress, Deliver deliver);

  Slot slot() const override { return identity_.slot; }
  pid_t pid() const override { return pid_; }
  std::uint64_t incarnation() const override { return identity_.incarnation; }
  const Greeting& greeting() const override { return identity_.greeting; }
  void close_greeting_fds() override {}  // there is one of it
  bool alive() const override { return alive_.load(std::memory_order_acquire); }
  Result<void> send(std::uint16_t kind, std::span<const std::byte> body, std::span<const int> fds) override;
  Result<Message> call(std::uint16_t kind, std::span<const std::byte> body, std::chrono::milliseconds limit,
                       std::span<const int> fds) override;
  Result<void> reply(const Message& request, std::span<const std::byte> body,
                     std::span<const int> fds) override;

  void close();  // after which nothing is delivered
  void abandon_after_fork() { alive_.store(false, std::memory_order_release); }

 private:
  Result<Message> make(std::uint16_t kind, std::uint64_t request, std::span<const std::byte> body,
                       std::span<const int> fds) const;
  Result<void> post(Message message);

  const Identity identity_;
  const pid_t pid_;
  const std::shared_ptr<ProgressThread> progress_;
  const Deliver deliver_;
  std::atomic<bool> alive_ = true;
  std::atomic<std::size_t> in_flight_ = 0;
  PendingCalls calls_;
};

}  // namespace weir::link
