// Packets from and to processes of other users of this host, whose segments and memory nobody else may enter:
// by unix sockets named in the network namespace.
//
// Each process listens under its slot's name. To send, it connects to the other process's name and greets it;
// two processes that talk have one connection each way, so what fills one disturbs no third process. The
// kernel identifies the process at the other end. An incoming process is believed only once the slot that it
// claims has been found to belong to that very process. A process is then identified by a number that is
// never reused: when it has ended, the next process in its slot has another number, and gets nothing meant
// for the first.
//
// A run of packets is one message. A run that meets a full socket is lost. Programs of our own user are not
// reached here: they meet in their directory (slot_directory.hpp).
//
// Budgets: max_strangers connections that have not greeted (a further one replaces the oldest of
// the user that has the most);
// max_processes_of_user incoming processes for each user; max_lookups.
//
// Threading: send(), process_in(), find() and listen() from any thread. receive() from any thread, one at a
// time: it returns at once when another is in it. All callbacks run inside receive(), with no lock held.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/abstract_socket.hpp"
#include "link/fork_guard.hpp"
#include "link/same_host.hpp"
#include "link/unique_fd.hpp"
#include "link/users/carried_run.hpp"

namespace weir::link {

class UserPort final : private ForkAware {
 public:
  using Process = std::uint64_t;  // 0: nobody
  struct Arrival {
    CarriedRun run;
    Process from = 0;
    Slot slot = 0;  // the process's
  };
  using Handler = std::function<void(std::span<const Arrival>)>;
  using Found = std::function<void(Process)>;

  static constexpr std::size_t max_strangers = 64, max_processes_of_user = 128, max_lookups = 256;

  struct Options {
    int slot_socket = -1;  // SameHostLink::number_descriptor(); outlives this
    Slot slot = 0;
    uid_t user = 0;                          // ours, whose processes are not reached here
    std::function<void(Process)> gone = {};  // once for each process that has ended, behind its last packet
  };
  static Result<std::unique_ptr<UserPort>> open(Options options);
  ~UserPort();
  UserPort(const UserPort&) = delete;
  UserPort& operator=(const UserPort&) = delete;

  Slot slot() const { return options_.slot; }
  // Readable when receive() has something to do.
  int descriptor() const { return epoll_.get(); }
  // What has come, in this thread; bounded, so that others have their turn.
  void receive(const Handler& handler);

  // The process of another user in that slot; connects to it if not yet connected. Does not wait.
  Process process_in(Slot slot);
  // The same, but only among processes already connected to.
  Process known_in(Slot slot);
  // 0, or an errno: EAGAIN where the socket is full, ENOTCONN where that process has ended.
  int send(Process to, const CarriedRun& run);
  // Whether a living process that we sent to has not yet called back. It believes us only once it has found
  // us in our slot: if we end before, it drops what we sent.
  bool waits_to_be_believed();

  // Offers a service that processes of other users find by that name; the first process to take the name has
  // it. False: another process has it. Each listen needs its own leave.
  bool listen(const std::string& service);
  void leave(const std::string& service);
  // The other user whose process listens with that name, if one does.
  std::optional<uid_t> other_user_with(const std::string& service) const;
  // Which process of another user has that service: `found` is called once, if true is returned.
  bool find(const std::string& service, Found found);

 private:
  using Key = std::uint64_t;  // of a socket in epoll_; never reused. A process's number is its socket's key
  struct Outgoing {
    Process number;
    Slot slot;
    UniqueFd socket;
    Identity who;
    std::atomic<bool> sent_to = false, has_called_back = false;
  };
  using OutgoingPtr = std::shared_ptr<Outgoing>;
  struct Incoming {
    UniqueFd socket;
    Identity who;
    Process from = 0;  // 0: has not greeted
    Slot slot = 0;
  };
  struct Lookup {
    UniqueFd socket;
    Identity who;
    Found found;
  };
  struct Service {
    UniqueFd socket;
    Key key;
    unsigned holders;
  };
  static constexpr Key slot_key = 0;

  explicit UserPort(Options options);
  Result<void> begin();
  bool add(int socket, std::uint32_t events, Key key);
  OutgoingPtr outgoing_in(Slot slot);
  OutgoingPtr outgoing(Process number);
  bool is_of_another_user(const Identity& who) const { return who.user != options_.user; }

  // Under receiving_.
  UniqueFd accept_from(int listener, Identity& who);
  void accept_all();
  void make_room_for_stranger();
  void answer_lookups_of(Key service);
  void finish_lookup(Key key);
  void read(Key key, const Handler& handler);
  bool take(Incoming& from, std::size_t messages);
  bool believe(Incoming& caller, std::span<const std::byte> greeting);
  void close_incoming(Key key);
  void end(Process number, const Handler& handler);
  struct Batch;

  // The maps are whole in a child then; their mutex is held for moments only.
  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  void abandon_in_child() override;

  const Options options_;
  UniqueFd epoll_;
  UniqueFd spare_;  // given up for a moment where no descriptor is left, to turn a caller away
  std::mutex receiving_;
  std::unique_ptr<Batch> batch_;   // under receiving_
  std::vector<Arrival> arrivals_;  // under receiving_

  // Guards everything below. receive() reads without it the maps that only receive() changes.
  std::mutex mutex_;
  Key next_key_ = slot_key + 1;
  std::atomic<std::size_t> known_ = 0;  // of by_number_
  std::map<Slot, OutgoingPtr> by_slot_;
  std::map<Process, OutgoingPtr> by_number_;
  std::map<Key, Incoming> incoming_;  // changed by receive() alone
  std::map<Key, Lookup> lookups_;
  std::map<std::string, Service> services_;

  ForkRegistration fork_registration_{*this};
};

}  // namespace weir::link
