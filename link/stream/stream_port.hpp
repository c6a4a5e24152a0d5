// The streams of this process: packets to and from other hosts over TCP, where UDP does not pass.
//
// A stream joins two processes, and either may have dialled it, so it is enough that one of them can be
// reached. It is dialled to a host's port, where any process of its user may accept; a process that a
// greeting is not for hands the connection over to the one that it names. A run of packets is sent whole or
// not at all, and may be lost while there is no stream or its queue is full; nothing here repeats it.
//
// What is trusted: the packets of a stream come from the address that its greeting names. That is the
// address at the other end of the connection, or, where a router has changed that, any address, if both ends
// prove that they have the key.
//
// Budgets: max_incoming streams that others dialled, of which the address with the most loses one for a
// newcomer (waiting/shares.hpp), those that nothing was ever sent to first; `patience` from the first byte to
// the proof; max_outgoing that we dialled. A target that refused is dialled again after a pause that doubles.
//
// Threading: send(), leads(), dial() and adopt() from any thread. receive() from any thread, one at a time:
// it returns at once when another is in it. All callbacks run inside receive(), with no lock held.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "link/fork_guard.hpp"
#include "link/same_host.hpp"
#include "link/stream/stream_frame.hpp"
#include "link/stream/stream_socket.hpp"
#include "link/unique_fd.hpp"
#include "waiting/shares.hpp"

namespace weir::link {

class StreamPort final : private ForkAware {
 public:
  // As packets name them; the interface is that of a link-local address.
  struct Ends {
    IpAddress own{}, peer{};
    std::uint32_t interface = 0;
  };
  struct Arrival {
    StreamedRun run;
    Ends ends;
  };
  using Handler = std::function<void(std::span<const Arrival>)>;

  static constexpr std::size_t max_incoming = 256, max_outgoing = 1024;
  static constexpr std::chrono::milliseconds patience{1000};  // from the first byte to the proof

  struct Options {
    std::uint16_t port = 0;  // where we listen, and where others do
    Slot slot = 0;
    const hash::SipKey* key = nullptr;  // outlives this
    std::chrono::milliseconds patience = StreamPort::patience;
    // The process of this host that listens for a service; 0: ours, or none that is known.
    std::function<Slot(std::uint32_t service)> owner = {};
    // A connection, with its greeting, for another process of this host; see adopt().
    std::function<void(Slot to, UniqueFd connection, std::span<const std::byte> greeting)> hand_over = {};
    // Somebody greeted us, and is about to be challenged.
    std::function<void(const Ends& ends)> challenged = {};
    // The ends of a stream have met; `dialled` by us.
    std::function<void(const Ends& ends, Slot peer, bool dialled)> opened = {};
    // The peer asks whether packets come from it by UDP, and answers that.
    std::function<void(const Ends& ends, Slot peer)> asked = {};
    std::function<void(const Ends& ends, bool hears)> answered = {};
    // The last stream to there has ended, or one that was challenged.
    std::function<void(const IpAddress& own, const IpAddress& peer)> ended = {};
    // Text for the user, at each occasion.
    std::function<void(const std::string&)> explain = {};
    // Runs tidy() then.
    std::function<void(std::chrono::milliseconds)> tidy_later = {};
  };
  // The error is fit to print.
  static Result<std::unique_ptr<StreamPort>> open(Options options);
  ~StreamPort();
  StreamPort(const StreamPort&) = delete;
  StreamPort& operator=(const StreamPort&) = delete;

  // Readable when receive() has something to do.
  int descriptor() const { return epoll_.get(); }
  // What has come, in this thread; bounded, so that others have their turn.
  void receive(const Handler& handler);

  // The process to which a stream leads there, once its ends have met. Whether one leads to any there.
  std::optional<Slot> peer_at(const Ends& ends, const StreamTarget& target) const;
  bool leads(const Ends& ends, const StreamTarget& target) const { return peer_at(ends, target).has_value(); }
  bool leads_to_host(const IpAddress& peer) const;
  // Makes one, unless there is one or it was refused a moment ago. False: there will be none.
  bool dial(const Ends& ends, const StreamTarget& target);
  // Dials, if it must. False: there is no stream, and there will be none.
  bool send(const Ends& ends, const StreamTarget& target, std::span<const StreamedRun> runs);
  // To the other end of an open stream; may be lost.
  void ask(const Ends& ends, Slot peer) { say(ends, peer, encode_question()); }
  void answer(const Ends& ends, Slot peer, bool hears) { say(ends, peer, encode_answer(hears)); }
  // Another process accepted this for us.
  void adopt(UniqueFd connection, std::span<const std::byte> greeting);
  // Ends what has waited too long.
  void tidy();
  // The process ends: what waits leaves, as far as `limit` allows.
  void finish(std::chrono::milliseconds limit);

 private:
  using Key = std::uint64_t;  // in epoll_; never reused
  enum class State : std::uint8_t { accepted, challenged, dialling, greeted, open };
  struct Stream {
    Stream(UniqueFd fd, int epoll, Key number) : key(number), socket(std::move(fd), epoll, number) {}
    const Key key;
    StreamSocket socket;
    std::atomic<State> state = State::accepted;
    bool dialled = false;
    Ends ends;
    Slot peer_slot = 0;  // once open
    StreamGreeting greeting;
    StreamNonce challenge{};
    Clock::time_point deadline;
    IpAddress seen{};                    // the address at the other end of the connection
    std::uint64_t place = 0;             // among incoming_
    std::atomic<bool> answered = false;  // something was sent there
    std::vector<std::byte> begun;        // a frame of which not all has come; of receive() alone
  };
  using StreamPtr = std::shared_ptr<Stream>;
  using To = std::tuple<IpAddress, IpAddress, StreamTarget>;  // own, peer
  struct Refusal {
    Clock::time_point until;
    std::chrono::milliseconds pause;
  };
  static constexpr Key listener_key = 0;

  explicit StreamPort(Options options);
  Result<void> begin();

  void say(const Ends& ends, Slot peer, std::span<const std::byte> frame);
  static To to(const Ends& ends, const StreamTarget& target) { return {ends.own, ends.peer, target}; }
  // With mutex_ held:
  StreamPtr find(const To& target) const;
  StreamPtr begin_dial(const Ends& ends, const StreamTarget& target);
  StreamPtr add(UniqueFd socket);
  bool enter(const StreamPtr& incoming);
  void refused(const To& target);
  void forget(const StreamPtr& stream);
  bool any_to(const IpAddress& own, const IpAddress& peer) const;
  void tidy_soon();

  // In receive():
  void accept_all();
  void read(const StreamPtr& stream, const Handler& handler);
  bool take(const StreamPtr& stream, std::span<const std::byte>& arrived);
  bool meet(const StreamPtr& stream, const Frame& frame);
  bool talk(const Stream& stream, const Frame& frame);
  bool take_greeting(const StreamPtr& stream, const StreamGreeting& greeting,
                     std::span<const std::byte> body);
  bool believes(const Stream& stream, const StreamGreeting& greeting) const;
  bool challenge(const StreamPtr& stream, const StreamGreeting& greeting);
  bool take_challenge(const StreamPtr& stream, const StreamChallenge& challenge);
  void open_up(const StreamPtr& stream, Slot peer_slot);
  void connected(const StreamPtr& stream);
  void end(const StreamPtr& stream);

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  void abandon_in_child() override;

  const Options options_;
  UniqueFd epoll_, listener_, spare_;
  std::mutex receiving_;
  std::vector<std::byte> buffer_;  // under receiving_, as is the next
  std::vector<Arrival> arrivals_;

  mutable std::mutex mutex_;  // guards everything below
  Key next_key_ = listener_key + 1;
  std::map<Key, StreamPtr> streams_;
  std::map<To, StreamPtr> ways_;  // open or on their way, by slot and by service
  std::map<To, Refusal> refusals_;
  waiting::Shares<IpAddress, Key> incoming_;
  std::size_t outgoing_ = 0;
  bool tidies_ = false;

  ForkRegistration fork_registration_{*this};
};

}  // namespace weir::link
