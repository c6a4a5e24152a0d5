// The connection manager's messages to other hosts, and to other users of this host: datagrams to queue pair
// 1. The same-host link carries the messages to other processes of our user.
//
// For a datagram of another user, the sending process is known. Each such process is a host of its own here,
// so none can speak for another, and its end is handled like a neighbour's.
//
// Datagrams are lost. A message that asks for an answer (REQ, REP, DREQ, SIDR_REQ) is repeated, at first soon
// and then more slowly, until an answer to it arrives, until its identifier says something else, or until it
// was repeated often enough; how long the connection waits is the agent's business. An MRA promises a later
// answer, which may be lost like any other: after an MRA the request is repeated slowly. A request that
// arrives again after its final answer (REJ, SIDR_REP) gets that answer again, whether or not its identifier
// still exists.
//
// The source address of a request is easily forged. An address that has not yet answered anything of ours
// gets `packets_for_one` packets for each that came from there, so that nobody can make us send much to a
// third party; what is to be repeated waits until the requester repeats its request.
//
// Threading: every function from any thread. The receiver is called on the link's thread. Nothing here waits.
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hash/siphash.hpp"
#include "link/same_host.hpp"
#include "verbs/cm/cm_message.hpp"
#include "verbs/cm/packet_messages.hpp"
#include "verbs/cm/port_space.hpp"
#include "verbs/nic/management_port.hpp"

namespace weir::cm {

// An address of another host, as reached from one of ours: to the agent a neighbour like those on this host,
// except that its end is not reported. Or a process of another user, whose end is reported.
class RemoteHost final : public link::Neighbour {
 public:
  explicit RemoteHost(const Addressing& addressing) : addressing_(addressing) {}
  const Addressing& addressing() const { return addressing_; }

  link::Slot slot() const override { return 0; }
  pid_t pid() const override { return 0; }
  std::uint64_t incarnation() const override { return 0; }
  const link::Greeting& greeting() const override { return greeting_; }
  void close_greeting_fds() override {}
  bool alive() const override { return alive_.load(std::memory_order_acquire); }
  bool hears_questions = false;  // PeerWatch's
  // Whether it was shown that what we send there gets there: it was our choice to begin with, or it has named
  // a number that only our answer told it.
  bool is_proved() const { return proved_.load(std::memory_order_relaxed); }
  void prove() { proved_.store(true, std::memory_order_relaxed); }
  void ended() { alive_.store(false, std::memory_order_release); }
  link::Result<void> send(std::uint16_t, std::span<const std::byte>, std::span<const int>) override;
  link::Result<link::Message> call(std::uint16_t, std::span<const std::byte>, std::chrono::milliseconds,
                                   std::span<const int>) override;
  link::Result<void> reply(const link::Message&, std::span<const std::byte>, std::span<const int>) override;

 private:
  friend class PacketCarrier;
  const Addressing addressing_;
  const link::Greeting greeting_;
  std::atomic<bool> alive_ = true;
  std::atomic<bool> proved_ = false;
  int credit_ = 0;  // packets that may go there unproved; under the carrier's lock
};

class PacketCarrier {
 public:
  using Receiver = std::function<void(const link::NeighbourPtr& from, CmMessage message)>;

  // The process of this host that a message is for, because the port is shared. 0: no process, or this one.
  using Owner = std::function<link::Slot(const CmMessage& message)>;

  // Called when a host that is a process of another user has ended.
  using Gone = std::function<void(const link::NeighbourPtr& who)>;

  // All outlive it; it lives as long as the link's thread may call it.
  PacketCarrier(link::SameHostLink& link, verbs::ManagementPort& port, Receiver receiver, Owner owner,
                Gone gone);

  bool leads_to(const Endpoint& destination) { return port_.leads_to(destination.ip); }
  static bool may_be_asked_from_elsewhere(const Endpoint& listening_at);
  // 0, or an errno; says on standard error, once, what is in the way.
  int open();
  // The same object for the same addresses, as long as it is held.
  link::NeighbourPtr host(const Endpoint& local, const Endpoint& remote, std::uint64_t process = 0);
  // Requests of other hosts for that listener come to this process at once. Each needs its own leaves().
  void listens(const Binding& listener) { port_.listens(number_of(listener)); }
  void leaves(const Binding& listener) { port_.listens_no_more(number_of(listener)); }
  // Lets other users of this host find a listener by its address and port. False: another process has them.
  bool serve(const Binding& listener) { return port_.serve(service_of(listener)); }
  // The other user whose program listens there, if one does.
  std::optional<unsigned> other_user_at(const Binding& listener) {
    return port_.other_user_serving(service_of(listener));
  }
  void stop_serving(const Binding& listener) { port_.stop_serving(service_of(listener)); }
  // Their process that listens there, on that address or else on all; 0: none does. False: none, and `found`
  // does not run.
  bool find_server(std::uint16_t port_space, const Endpoint& destination,
                   const std::function<void(std::uint64_t)>& found);
  // packets_for_one, but for what has come from an address not proved yet: then it is repeated when its
  // request comes again.
  static constexpr int packets_for_one = 2;
  void send(RemoteHost& to, const CmMessage& message);
  // Sends it once, by a socket that hears if no program has the port there; nullptr: it was not sent.
  std::unique_ptr<link::PortProbe> ask(const RemoteHost& to, const CmMessage& message);
  std::size_t hosts_known() const {
    const std::scoped_lock hold(mutex_);
    return hosts_.size();
  }
  void count_dropped(rnic::Dropped why) { port_.count_dropped(why); }
  // The process ends, and nothing will be repeated: what ends connections and is not answered yet is said a
  // few times more at once.
  void finish();

 private:
  using MadBytes = std::array<std::byte, wire::mad_bytes>;
  struct Repeated {
    MadBytes mad;
    Addressing addressing;
    MessageType type;
    std::uint32_t request_id = 0;  // of the request that it answers
    bool limited = false;          // its address is not proved
    int sent = 1;
    bool promised = false;  // an MRA has come
    bool waits = false;     // for its request to be repeated
  };
  using Mads = std::map<std::uint32_t, Repeated>;  // by our number for the connection
  struct Asker {
    IpBytes ours{}, theirs{};
    std::uint64_t process = 0;
    std::uint32_t request_id = 0;  // its number for what it asked
    bool lookup = false;
    auto operator<=>(const Asker&) const = default;
  };
  struct FinalAnswer {
    MadBytes mad;
    link::Clock::time_point until;
  };

  // mutex_ held in these.
  std::shared_ptr<RemoteHost> host(const Addressing& addressing);
  std::shared_ptr<RemoteHost> known_host(const Addressing& addressing) const;
  static bool spend(RemoteHost& to);
  void forget(std::uint32_t local_id);
  std::optional<Repeated> resume(const CmMessage& request, const Addressing& came);
  bool answered(const CmMessage& by, const Addressing& came);

  static std::string service_of(const Binding& listener);
  static std::uint32_t number_of(const Binding& listener) {
    return static_cast<std::uint32_t>(wire::rdma_service_id(listener.port_space, listener.endpoint.port));
  }
  void arrived(const verbs::ManagementRoute& came, std::span<const std::byte> bytes);
  void process_gone(std::uint64_t process);
  void transmit(const Addressing& to, std::span<const std::byte> mad);
  void take(const Addressing& came, std::span<const std::byte> bytes, bool passed_on);
  void pass_on(link::Slot slot, const Addressing& came, std::span<const std::byte> bytes,
               const CmMessage& message);
  void answer_for_ended(const Addressing& came, const CmMessage& message);
  void remember_answer(const CmMessage& message, const Addressing& to, const MadBytes& mad);
  bool answer_again(const CmMessage& request, const Addressing& came);
  void repeat_later(std::uint32_t local_id, std::uint64_t transaction, std::chrono::milliseconds after);
  void repeat(std::uint32_t local_id, std::uint64_t transaction);
  std::uint64_t next_transaction();
  std::uint64_t draw_transaction();  // mutex_ held

  link::SameHostLink& link_;
  verbs::ManagementPort& port_;
  const Receiver receiver_;
  const Owner owner_;
  const Gone gone_;
  const std::uint64_t guid_;

  mutable std::mutex mutex_;
  std::map<std::tuple<IpBytes, IpBytes, std::uint64_t>, std::weak_ptr<RemoteHost>> hosts_;
  std::size_t sweep_at_ = 64;  // hosts: then those that are gone are forgotten
  Mads repeated_;
  std::map<Asker, std::uint32_t> limited_;  // of what is repeated, by the request that it answers: our number
  std::map<std::uint32_t, std::uint64_t> transactions_;  // of what is repeated, by our number
  std::map<Asker, FinalAnswer> final_;
  std::deque<Asker> final_order_;       // the oldest first
  const hash::SipKey transaction_key_;  // strangers cannot guess the next one
  std::uint64_t transactions_drawn_ = 0;
};

}  // namespace weir::cm
