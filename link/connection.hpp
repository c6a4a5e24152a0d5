// One connection to another process: the Neighbour the layers above hold, and the socket beneath it.
//
//   fresh --hello arrived and accepted--> established --EOF, bad frame, process gone--> ended
//   fresh --refused, EOF, anything but a hello----------------------------------------> ended
//
// The owner decides what a hello means (who may connect, which of two crossing connections stays).
//
// Threading: the Neighbour functions from any thread; everything else, and every call to the owner, on the
// progress thread. mutex_ orders senders with each other and with the closing of the socket.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "link/frame.hpp"
#include "link/pending_calls.hpp"
#include "link/progress_thread.hpp"
#include "link/same_host.hpp"
#include "link/send_queue.hpp"

namespace weir::link {

class Connection final : public Neighbour, public std::enable_shared_from_this<Connection> {
 public:
  using Ptr = std::shared_ptr<Connection>;
  struct Identity {
    Slot slot = 0;
    std::uint64_t incarnation = 0;
    Greeting greeting;
  };
  class Owner {
   public:
    virtual void hello_arrived(const Ptr&, Identity) = 0;  // the owner establishes or refuses
    virtual void refused(const Ptr&, Refusal) = 0;
    virtual void message_arrived(const Ptr&, Message&&) = 0;
    virtual void ended(const Ptr&) = 0;  // once, after the last message

   protected:
    ~Owner() = default;
  };

  // `dialed`: the slot we meant to reach; 0 on a connection that came to us.
  static Result<Ptr> open(UniqueFd socket, Slot dialed, std::shared_ptr<ProgressThread> progress,
                          Owner& owner);

  Slot slot() const override { return identity_.slot; }
  pid_t pid() const override { return pid_; }
  std::uint64_t incarnation() const override { return identity_.incarnation; }
  const Greeting& greeting() const override { return identity_.greeting; }
  void close_greeting_fds() override { identity_.greeting.fds.clear(); }
  bool alive() const override { return alive_.load(std::memory_order_acquire); }
  Result<void> send(std::uint16_t kind, std::span<const std::byte> body, std::span<const int> fds) override;
  Result<Message> call(std::uint16_t kind, std::span<const std::byte> body, std::chrono::milliseconds limit,
                       std::span<const int> fds) override;
  Result<void> reply(const Message& request, std::span<const std::byte> body,
                     std::span<const int> fds) override;

  Slot dialed() const { return dialed_; }
  bool established() const { return state_ == State::established; }
  uid_t uid() const { return uid_; }
  bool process_ended() const;  // although a child of it may hold the socket
  Result<void> send_hello(Slot own_slot, std::uint64_t own_incarnation, const Greeting& own_greeting);
  void establish(Identity identity);
  void refuse(Refusal why);  // says so and ends, without telling the owner
  void refuse_request(const Message& request);
  void drain_and_end();  // delivers what has arrived, then ends
  void end();            // tells the owner

  // Ends with no word to the owner and none from then on. Any thread, once the progress thread has stopped.
  void close_quietly();
  // In a forked child, while no other thread exists.
  void abandon_after_fork();

 private:
  enum class State { fresh, established, ended };

  Connection(UniqueFd socket, Slot dialed, std::shared_ptr<ProgressThread> progress, Owner& owner);
  Result<void> transmit(FrameType type, std::uint16_t kind, std::uint64_t request,
                        std::span<const std::byte> body, std::span<const int> fds);
  void ready(std::uint32_t events);
  void flush();
  bool receive_some();  // false: nothing more is there now
  void take(Frame frame);
  void watch_process();

  const Slot dialed_;
  const std::shared_ptr<ProgressThread> progress_;
  Owner& owner_;
  pid_t pid_ = 0;
  uid_t uid_ = 0;
  Identity identity_;  // written once, before anybody else sees this object
  State state_ = State::fresh;
  ProgressThread::Key socket_key_ = 0;
  ProgressThread::Key process_key_ = 0;
  UniqueFd process_;  // a pidfd: the pid may be another process's by now

  // Set on establish, cleared on end; a reader that sees true may use the greeting, written before it was
  // set.
  std::atomic<bool> alive_ = false;
  PendingCalls calls_;

  std::mutex mutex_;  // guards the two below
  UniqueFd socket_;
  SendQueue queue_;
};

}  // namespace weir::link
