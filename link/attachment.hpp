// A process's attachment: SameHostLink over a slot, a progress thread and one connection per neighbour.
//
// Invariants:
//  1. At most one established connection a neighbour process; table_ holds it, by slot.
//  2. Connections that cross: the one dialed by the lower slot stays. The lower refuses the other's while
//     its own dial runs; the higher gives its own up when the lower's hello arrives.
//  3. A hello from a process we still count as connected is refused as a duplicate; its sender tries again
//     shortly, when the end of the old connection has been noticed. From another incarnation it ends the old
//     one at once.
//
// Threading: the progress thread owns half_open_ and dials_. mutex_ guards what others look at too. No
// callback runs under mutex_. Lock order: mutex_, then the locks of ProgressThread and Connection.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "link/abstract_socket.hpp"
#include "link/connection.hpp"
#include "link/fork_guard.hpp"
#include "link/loopback.hpp"
#include "link/progress_thread.hpp"
#include "link/same_host.hpp"
#include "link/slot_directory.hpp"

namespace weir::link {

class Attachment final : public SameHostLink, private Connection::Owner, private ForkAware {
 public:
  static Result<std::unique_ptr<SameHostLink>> make(Options options);
  ~Attachment() override;

  Slot slot() const override { return slot_; }
  const std::string& directory() const override { return directory_.path(); }
  int number_descriptor() const override { return number_.get(); }
  std::vector<Slot> occupied() const override { return directory_.named(); }
  bool is_free(Slot slot) const override { return hold_name(name_of_slot(slot)).has_value(); }
  Result<NeighbourPtr> connect(Slot slot, std::chrono::milliseconds limit) override;
  void connect_async(Slot slot, std::chrono::milliseconds limit,
                     std::function<void(Result<NeighbourPtr>)> done) override;
  NeighbourPtr connected(Slot slot) const override;
  void on_message(std::uint16_t kind, MessageHandler handler) override;
  void on_gone(GoneHandler handler) override;
  void on_restored(RestoredHandler handler) override;
  Result<void> watch(int fd, FdHandler on_readable) override;
  void unwatch(int fd) override;
  void heed(int fd, bool readable) override;
  TimerId at(Clock::time_point due, std::function<void()> run) override {
    return progress_->at(due, std::move(run));
  }
  bool cancel(TimerId timer) override { return progress_->cancel(timer); }
  void post(std::function<void()> run) override { progress_->post(std::move(run)); }
  bool on_progress_thread() const override { return progress_->is_current(); }
  void withdraw() override;

 private:
  // One thread in connect(), or one connect_async().
  struct Waiter {
    std::optional<Result<NeighbourPtr>> result;      // guarded by mutex_
    std::function<void(Result<NeighbourPtr>)> done;  // empty for a thread
  };
  // Our attempts to reach a slot, while anybody waits for it.
  struct Dial {
    Clock::time_point give_up;
    std::chrono::milliseconds backoff{1};
    Connection::Ptr connection;  // null between attempts
    TimerId next_attempt = 0;
    TimerId deadline = 0;
    std::vector<std::shared_ptr<Waiter>> waiters;
  };
  bool hindered() const;  // we gave up the rights, or the root directory, with which others can be reached
  std::unexpected<Error> hindered_from(Slot slot) const;

  Attachment(SlotDirectory::Claim claim, std::shared_ptr<ProgressThread> progress, Options options);
  Result<void> begin();

  // Our name in the directory (restore.cpp).
  void look_at_directory();
  bool restore();

  // Neighbours that connect to us (accept.cpp).
  void accept_some();
  void pause_accepting();
  void admit(UniqueFd socket);
  void greet_caller(const Connection::Ptr& caller, Connection::Identity identity);

  // Those we go to (dial.cpp).
  void start_dial(Slot slot, std::shared_ptr<Waiter> waiter, Clock::time_point give_up);
  void attempt_dial(Slot slot);
  void retry_dial(Slot slot);
  void finish_dial(Slot slot, const Result<NeighbourPtr>& result);

  void hello_arrived(const Connection::Ptr&, Connection::Identity) override;
  void refused(const Connection::Ptr&, Refusal) override;
  void message_arrived(const Connection::Ptr&, Message&&) override;
  void ended(const Connection::Ptr&) override;
  void establish(const Connection::Ptr& connection, Connection::Identity identity);
  Connection::Ptr established(Slot slot) const;
  void remember(const Connection::Ptr& connection);
  void forget(const Connection::Ptr& connection);
  bool deliver(const NeighbourPtr& from, Message&& message);

  void lock_for_fork() override;
  void unlock_after_fork() override;
  void abandon_in_child() override;

  std::atomic<bool> withdrawn_{false};
  SlotDirectory directory_;
  const Slot slot_;
  // The user who owns the directory and runs our neighbours. A daemon may give up that user's rights later;
  // the kernel still tells its peers the user who made its listening socket.
  const uid_t user_;
  UniqueFd listener_;
  UniqueFd number_;  // SlotDirectory::Claim::number
  std::shared_ptr<ProgressThread> progress_;
  Greeting greeting_;
  const std::chrono::milliseconds look_interval_;
  std::uint64_t incarnation_ = 0;
  std::shared_ptr<Loopback> self_;
  ProgressThread::Key listener_key_ = 0;

  // The progress thread's own.
  // Came to us and said no hello yet; the timer ends their time.
  std::map<Connection::Ptr, TimerId> half_open_;
  std::map<Slot, Dial> dials_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable dialed_;
  std::unordered_map<Slot, Connection::Ptr> table_;
  std::set<Connection::Ptr> connections_;  // every one with an open socket, for a forked child to close
  std::array<MessageHandler, kind::end> handlers_;  // each written once and then only called
  std::vector<std::shared_ptr<const GoneHandler>> gone_handlers_;
  std::vector<RestoredHandler> restored_handlers_;
  std::unordered_map<int, ProgressThread::Key> watched_;

  std::optional<ForkRegistration> fork_registration_;
};

}  // namespace weir::link
