// The requester: executes a queue pair's send WQEs in order, in the thread that rang the doorbell.
//
// One WQE at a time: gather its local pieces (checking lkeys), have the responder's role act on the target,
// and turn the outcome into a completion; or park, if the target cannot answer yet (parking.cpp). RC to
// another host is different, because many requests are in flight at once: see between_hosts/packet_side.hpp.
// With `weir run --weak` each request's parts are done at chosen times (weak_execution.cpp). Everything runs
// under the send lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rnic/congestion/pacer.hpp"
#include "rnic/datagrams/datagram.hpp"
#include "rnic/datagrams/kept_addresses.hpp"
#include "rnic/queue_pair/receive_side.hpp"
#include "rnic/queue_pair/retry_pauses.hpp"
#include "rnic/queue_pair/send_side.hpp"
#include "rnic/same_host/responder.hpp"
#include "rnic/weak/requests.hpp"

namespace weir::rnic {

class UnreliablePackets;

class Requester {
 public:
  Requester(const QpCommon& qp, SendSide& sends, ReceiveSide& receives, PacketPolling& polling);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  void execute();
  // UC to another host, from RTS on; nullptr: posted messages are lost.
  void send_over(UnreliablePackets* packets) { unreliable_ = packets; }
  void set_over_packets(bool yes) { over_packets_ = yes; }

  // ---- the target
  void connect(HostPort::Wait);
  // The target is reached if it expects what we send. True: it answers from now on.
  bool agree();
  bool connected_to(const Peer& peer) const { return target_.peer.get() == &peer; }
  // The target is connected and would still answer.
  bool target_answers() const { return target_.connected() && target_.expects_us(); }
  // XRC: another process has the target open.
  bool target_has_opener() const { return target_.opener().has_value(); }
  void set_cpu(Cpu cpu) { target_.set_cpu(cpu); }

  // ---- waiting
  bool parked() const { return parked_ != Park::none; }
  // The next send WQE has begun, and is retried until it is over.
  bool under_way() const { return parked() && parked_ != Park::paced && parked_ != Park::chosen; }
  // A kick, a poll or a timer: retries the parked WQE.
  void resume();
  // The parked WQE will not be retried.
  void give_up();
  // The target's process is gone. True: the WQE parked on it failed.
  bool fail_parked();
  // Weak: completes what has begun, or all that is posted.
  enum class Until : bool { begun_is_complete, all_is_complete };
  void hurry(Until);

  void set_rate(RateLimit rate) { pacer_.set(rate); }
  // Two programs on one CPU that answer each other's WRITEs and wait by watching their memory make no call
  // that could yield the CPU, so each turn would cost the rest of a time slice. So we yield the CPU after the
  // WRITE: only if nothing else is outstanding, and once for each time the peer itself acted.
  bool gives_way();

  // Restores the initial state, except for the rate.
  void reset();

 private:
  enum class Park : std::uint8_t { none, rnr, no_response, late, contended, connecting, paced, chosen };

  void execute_posted();
  Outcome execute_one(SendWqe&);
  Outcome carry_out(SendWqe&, const Gather&);
  Outcome reach_target(const SendWqe&);
  Outcome execute_at_target(SendWqe&, const Gather&);
  // The same for weak execution, which may take a call more.
  Outcome carry_out_weakly(SendWqe&, const Gather&);
  Outcome reach_target_weakly(const SendWqe&);
  Outcome write_with_imm_weakly(SendWqe&, const Gather& part, std::uint64_t addr, std::uint64_t bytes);
  Outcome send_unreliable(const SendWqe&, const Gather&);
  enum class Next : bool { stop, go_on };
  Next act_on(Outcome, SendWqe&, QpState now_in);
  Next finish(SendWqe&, QpState now_in);
  Outcome select_srq(Qpn srqn);
  Outcome reach_keeper();
  void charge(const SendWqe&);
  void lose(SendWqe&);
  void fail(SendWqe&, WcStatus);
  bool reconnect_if_stale();
  bool refuses_length(const SendWqe&) const;
  void note_likely_next();

  // weak_execution.cpp
  enum class Taken : std::uint8_t { nothing, step, stopped };
  void execute_weakly();
  void admit_posted();
  bool retry_first();
  bool take_steps();
  Taken take_step(std::size_t index);
  void read_source(std::size_t index);
  std::optional<Outcome> execute_weak(std::size_t index);
  Outcome execute_whole(SendWqe&, weak::Request&);
  std::optional<Outcome> move_parts(SendWqe&, weak::Request&);
  Outcome move_part(SendWqe&, weak::Request&, const weak::Part&);
  void sample_again(std::size_t index);
  bool land(std::size_t index);
  void complete_first();
  bool complete_before(std::size_t index);
  void complete_executed();
  void complete_begun();
  bool give_way_to(std::size_t index, Outcome);
  void wait_by_choice();

  // parking.cpp. True: retry the WQE at once.
  bool receive_comes_soon();
  bool park(Park why);
  void begin_park(Park why, SendWqe&, std::uint64_t now_ns, std::optional<std::uint64_t> budget_ns);
  bool park_until_connected();
  bool must_wait_its_turn();
  std::optional<std::uint64_t> budget_ns(Park why) const;

  const QpCommon& qp_;
  SendSide& sends_;
  ReceiveSide& receives_;
  static constexpr std::uint64_t any_length = ~0ull;

  RemoteQueuePair target_;
  std::uint64_t longest_alike_ = any_length;  // what the target takes, where its path MTU is not ours
  DatagramSender datagrams_;
  UnreliablePackets* unreliable_ = nullptr;
  bool over_packets_ = false;
  Pacer pacer_;
  std::uint32_t answered_ = 0;  // the initiator's operation count when we last yielded the CPU to it

  Park parked_ = Park::none;
  RetryPauses pauses_;
  bool announced_ = false;     // the target was told that we are parked, and has not kicked us since
  HostPort::Ticket dial_ = 0;  // for the datagram that waits for its destination's process
  KeptAddresses addresses_;    // for datagrams that wait
  std::uint32_t rnr_spin_ = 16;
  std::unique_ptr<weak::Requests> weak_;  // nullptr: everything is done at once and in order
};

}  // namespace weir::rnic
