// The same-host link: how the NICs of two processes of one user find and reach each other.
//
// A process attaches once (SameHostLink::attach). Attaching claims a *slot*, a small number that is unique on
// the host while the process lives and that the NIC encodes in its QPNs, so that a destination QPN names a
// process. A slot is a listening SOCK_SEQPACKET unix socket in a per-user directory; there is no daemon. What
// a killed process leaves there (a socket that does not answer) is removed by the next process that looks.
//
// Two processes that talk share one connection, whichever opened it. When it opens, each presents a greeting:
// its pid, a few file descriptors (the NIC passes its shared segments and its wake-up eventfd) and a few
// bytes. After that it carries small control messages, some with descriptors. Data never travels here: it
// goes through the shared segments. The end of the connection means that the process is gone (the kernel
// closes it on SIGKILL too).
//
// Threading: every function may be called from any thread unless it says otherwise. Message, gone and timer
// callbacks run on the link's one progress thread, one at a time, and must not block; in particular they must
// not call connect() or call(). No callback runs after the destructor has returned.
//
// fork: the attachment belongs to the process that made it. In a child every function fails or does nothing,
// the link's descriptors are closed there at once (a child must not keep its parent's connections open), and
// the destructor touches neither slot nor directory. A child that wants to talk attaches for itself. A
// neighbour counts as gone when its process is, even if a child of it still holds the connection's
// descriptors.
//
// Trust: peers are processes of the same user. The link still checks everything it parses: a malformed frame
// closes that connection and nothing else.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::link {

// A process of this host: 1 .. max_slots-1. 0 names no process.
using Slot = std::uint16_t;
inline constexpr Slot max_slots = 1024;

// A file of the directory whose name starts with this stays when the last process leaves.
inline constexpr const char* lasting_prefix = "lasting-";
// The one folder there that does not outlast them either, for what the layers above register. Others are of
// processes that need not be attached (verbs/view).
inline constexpr char registered_folder[] = "cm";

inline constexpr std::size_t max_message_bytes = 8192;  // body of one control message
inline constexpr std::size_t max_message_fds = 8;

struct Error {
  std::errc code;
  std::string what;  // names the cause and the next step, fit to show a user
};
template <class T>
using Result = std::expected<T, Error>;

using Clock = std::chrono::steady_clock;

// What each side shows the other when a connection opens.
struct Greeting {
  std::vector<std::byte> body;  // at most max_message_bytes
  std::vector<UniqueFd> fds;    // at most max_message_fds; duplicated for each peer
};

// A control message as it arrived. `kind` is the receiver's dispatch key; see MessageKind.
struct Message {
  std::uint16_t kind = 0;
  std::uint64_t request = 0;  // non-zero: the sender waits for a reply to it
  std::vector<std::byte> body;
  std::vector<UniqueFd> fds;  // none, although some were sent, when this process may open no more
};

// Kinds are allotted here so that the layers above cannot collide; what a kind means is its layer's business.
namespace kind {
inline constexpr std::uint16_t nic_first = 1;   // 1 .. 99: rnic/, verbs/ibv
inline constexpr std::uint16_t cm_first = 100;  // 100 .. 199: verbs/cm
inline constexpr std::uint16_t end = 200;
}  // namespace kind

// Another process of this host, while it lives. Held by shared_ptr; outlives its connection (alive() turns
// false).
class Neighbour {
 public:
  virtual ~Neighbour() = default;
  virtual Slot slot() const = 0;
  virtual pid_t pid() const = 0;  // in our pid namespace, as SO_PEERCRED tells; 0 if not visible
  virtual std::uint64_t incarnation() const = 0;  // random; differs when a slot is reused by a new process
  virtual const Greeting& greeting() const = 0;   // what it showed us
  // The greeting's descriptors are no longer needed: what they name is mapped. A server has many neighbours
  // and a limit of 1024 files. Must not run while another thread uses them.
  virtual void close_greeting_fds() = 0;
  virtual bool alive() const = 0;  // one acquire load; false for good once the connection ended

  // Queues a message; never blocks. Fails with errc::no_buffer_space when the bounded send queue is full,
  // errc::not_connected when the peer is gone.
  virtual Result<void> send(std::uint16_t kind, std::span<const std::byte> body,
                            std::span<const int> fds = {}) = 0;

  // Sends and waits for the reply. errc::timed_out, errc::not_connected. Not from the progress thread.
  virtual Result<Message> call(std::uint16_t kind, std::span<const std::byte> body,
                               std::chrono::milliseconds limit, std::span<const int> fds = {}) = 0;

  // Answers a message whose `request` is non-zero.
  virtual Result<void> reply(const Message& request, std::span<const std::byte> body,
                             std::span<const int> fds = {}) = 0;
};
using NeighbourPtr = std::shared_ptr<Neighbour>;

using MessageHandler = std::function<void(const NeighbourPtr&, Message&&)>;
using GoneHandler = std::function<void(const NeighbourPtr&)>;
using FdHandler = std::function<void()>;
using RestoredHandler = std::function<void()>;

// One attachment of this process to the host.
class SameHostLink {
 public:
  struct Options {
    // Created 0700 if missing; so is the directory above the folder of a network namespace. What is above
    // that must exist.
    std::string directory = {};
    Greeting greeting = {};
    // Installed before the slot becomes visible, so that every early message finds its handler. A request of
    // a kind without a handler fails at its sender with errc::function_not_supported.
    std::vector<std::pair<std::uint16_t, MessageHandler>> messages = {};
    std::vector<GoneHandler> gone = {};
    // How often to look whether somebody has removed the directory, which is then made anew.
    std::chrono::milliseconds look_interval{5000};
  };
  // The folder of this network namespace (link/network_namespace.hpp) in $WEIR_RUNTIME_DIR, or in
  // /dev/shm/weir-<uid>: chosen by the caller at the edge, passed in as Options::directory.
  static std::string default_directory(const char* override_dir);

  static Result<std::unique_ptr<SameHostLink>> attach(Options);
  // Closes every connection, removes the slot and, if last, the directory but for lasting files.
  virtual ~SameHostLink() = default;

  virtual Slot slot() const = 0;
  virtual const std::string& directory() const = 0;
  // The socket that holds our slot's number in the network namespace (link/abstract_socket.hpp); ours. -1:
  // the kernel has no such names.
  virtual int number_descriptor() const = 0;
  // The slots that have a name there, our own included: everybody who attached before this call. A killed
  // process's name may still be among them.
  virtual std::vector<Slot> occupied() const = 0;
  // No process of this network namespace is in that slot, whatever its runtime directory.
  virtual bool is_free(Slot) const = 0;

  // The neighbour in that slot: connects if there is no connection yet (also to oneself, own slot included).
  // Blocks at most `limit`. errc::no_such_device_or_address: nobody lives there. Not from the progress
  // thread.
  virtual Result<NeighbourPtr> connect(Slot, std::chrono::milliseconds limit) = 0;
  // The same without blocking, from any thread; `done` runs once on the progress thread (never, if the link
  // is destroyed first). When others wait for the same slot with more patience, it may run later than
  // `limit`.
  virtual void connect_async(Slot, std::chrono::milliseconds limit,
                             std::function<void(Result<NeighbourPtr>)> done) = 0;
  // The neighbour in that slot if a connection exists already. Never blocks.
  virtual NeighbourPtr connected(Slot) const = 0;

  // Called after the directory was removed and made anew, to write there again what was registered.
  virtual void on_restored(RestoredHandler) = 0;

  // Handlers are installed before they can be needed, one for each kind; replacing one is an error (assert).
  virtual void on_message(std::uint16_t kind, MessageHandler) = 0;
  virtual void on_gone(GoneHandler) = 0;  // any number; each sees each end once

  // The progress thread also waits on these.
  // Level-triggered; also runs on hang-up. The fd stays the caller's, must be unwatched before it is closed,
  // and can be watched once at a time.
  virtual Result<void> watch(int fd, FdHandler on_readable) = 0;
  virtual void unwatch(int fd) = 0;  // after it returns the handler will not run again
  // Whether that watched fd's handler runs when there is something to read; it may still run once after
  // `false`.
  virtual void heed(int fd, bool readable) = 0;
  using TimerId = std::uint64_t;
  virtual TimerId at(Clock::time_point, std::function<void()>) = 0;
  virtual bool cancel(TimerId) = 0;              // false: it ran, runs or never was
  virtual void post(std::function<void()>) = 0;  // run on the progress thread, in order
  virtual bool on_progress_thread() const = 0;

  // Takes the slot out of the directory (and the directory, if we were the last), while connections stay up.
  // For a process that exits and cannot destroy the link because its other threads may still use it.
  virtual void withdraw() = 0;
};

}  // namespace weir::link
