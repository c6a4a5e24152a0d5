// The responder of a reliable connection, extended (XRC) or not, over packets (IBA 9.7): executes requests in
// the order of their PSNs on a Target, each once, and answers. Pure: packets are passed in, and the caller
// asks for packets.
//
// A request whose PSN is the expected one is executed; one behind it is a duplicate: acknowledged, or
// replayed if it is a READ or an atomic that is remembered; one ahead of it is answered by one sequence NAK a
// gap. Answers wait in the order of their requests until next_packet(); one acknowledgement stands for all
// requests up to its PSN, so that whoever receives a batch of packets before it asks for answers sends one.
//
// What no peer sends now is dropped without an answer and counted, so that a stranger who tries out PSNs
// learns nothing: it is further from the expected PSN than a peer's window and READs reach, or is not the
// packet that was executed at its PSN.
//
// Not thread-safe. Holds max_dest_rd_atomic remembered READs and atomics, and as many replays.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "rnic/packet/executed_requests.hpp"
#include "rnic/packet/outgoing.hpp"
#include "rnic/packet/packet_counts.hpp"
#include "rnic/packet/target.hpp"

namespace weir::rnic::packet {

struct ResponderAttributes {
  wire::Service service = wire::Service::rc;  // or xrc
  std::uint32_t destination = 0;              // QPN to answer to
  std::uint16_t pkey = 0xffff;
  std::uint32_t path_mtu = 1024;
  Psn first_psn;                   // expected first
  std::uint8_t min_rnr_timer = 0;  // the code of the RNR NAK
  std::uint8_t max_dest_rd_atomic = 1;
};

class Responder {
 public:
  // `target` outlives it.
  Responder(Target& target, const ResponderAttributes&);

  // modify: min_rnr_timer, max_dest_rd_atomic may change while it runs.
  void set(const ResponderAttributes&);

  // A request. Answers to our own requests (Responder::is_answer) are the requester's. The caller has checked
  // ICRC, addresses, P_Key and destination QPN.
  void receive(const wire::Packet&);
  // ACK, NAK, atomic acknowledge or a packet of a READ response. Ask until there is none, when the batch of
  // received packets is worked off.
  bool next_packet(Outgoing&);
  bool has_packet() const;
  // The next is an ACK or a NAK: there are no responses in front of it.
  bool acknowledges_next() const { return responses_.empty() && (negative_ || ack_owed_); }
  // next_packet() gives the last acknowledgement again, unless data or a NAK was the last answer.
  void acknowledge_again();
  // Memory of a READ response that next_packet() gave cannot be read: it was not sent. NAK 3.
  void unreadable(const Outgoing&);

  static bool is_answer(const wire::Packet&);

  Psn expected() const { return expected_; }
  std::uint32_t msn() const { return msn_; }
  // It refused a request: it repeats that NAK, and takes nothing any more.
  bool failed() const { return fatal_.has_value(); }
  const ResponderCounts& counts() const { return counts_; }

 private:
  enum class Kind : std::uint8_t { none, send, write };
  // The message whose packets are coming.
  struct Message {
    Kind kind = Kind::none;
    Psn first;                             // its first packet
    std::uint64_t offset = 0, length = 0;  // length: a WRITE's
    std::uint32_t srqn = 0;                // XRC: the same in each of its packets
  };
  // A READ or atomic that may be asked for again, and a response on its way.
  struct Remembered {
    wire::Operation operation;
    Psn first;
    std::uint32_t packets;
    std::uint64_t addr;
    std::uint32_t rkey;
    std::uint32_t length;
    std::uint64_t original;
    std::uint32_t srqn;
  };
  struct Response {
    Remembered of;
    std::uint32_t sent = 0;  // packets
    bool replay = false;
  };

  Verdict execute(const wire::Packet&, wire::Operation);
  Verdict take_message(const wire::Packet&, wire::Operation);
  Verdict begin(const wire::Packet&, Kind, bool only);
  Verdict take_read(const wire::Packet&);
  Verdict take_atomic(const wire::Packet&, wire::Operation);
  void remember(const Remembered&);
  void duplicate(const wire::Packet&, wire::Operation);
  Verdict refused();
  bool is_outside(Psn) const;
  bool in_sequence(const wire::Packet&, wire::Operation) const;
  bool next_response(Outgoing&);
  void header(Outgoing&, wire::Packet&, wire::Operation, Psn, std::size_t payload) const;

  Target& target_;
  ResponderAttributes attributes_;
  ResponderCounts counts_;
  Psn expected_;
  std::uint32_t msn_ = 0;
  Message message_;
  std::uint32_t takes_ = 1;  // PSNs of the request that is being executed
  ExecutedRequests executed_;
  std::deque<Remembered> remembered_;
  std::deque<Response> responses_;
  bool ack_owed_ = false;
  bool ack_was_last_ = false;             // of the answers
  bool silent_ = false;                   // the gap was answered: nothing more until the expected PSN comes
  std::optional<std::uint8_t> negative_;  // a NAK's syndrome, of PSN expected_
  struct Fatal {
    Psn psn;
    std::uint8_t syndrome;
  };
  std::optional<Fatal> fatal_;
};

}  // namespace weir::rnic::packet
