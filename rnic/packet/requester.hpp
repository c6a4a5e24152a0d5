// The requester of a reliable connection, extended (XRC) or not, over packets (IBA 9.7): turns the WQEs of a
// send queue into packets and answers into completions. Pure: time is passed in, and the caller asks for
// packets.
//
//   una <= next <= beyond     PSNs: oldest not answered, next to be sent, behind the newest ever sent
//
// A retransmitted packet is gathered again from the program's memory, which belongs to the NIC until the
// completion; no copy of a packet is kept. next < beyond: packets are being retransmitted.
//
// A packet asks for an acknowledgement (AckReq) if somebody waits for one: the program, for the completion of
// a signalled message, or the window. One acknowledgement stands for all requests before it (IBA 9.7.5.1.2),
// and one that travels alone costs as much as the request.
//
// Losses are found in four ways, from fast to slow: a sequence NAK; an answer behind one that did not come
// (implied NAK); a *probe*, the oldest packet once more after two round trips of silence, or after 10 ms of
// it if nothing was asked, which every responder answers; and the timeout of the specification, which alone
// counts against retry_cnt.
//
// Not thread-safe: every call under the queue pair's send lock. Costs: O(1) a packet.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "rnic/congestion/pacer.hpp"
#include "rnic/memory/gather.hpp"
#include "rnic/packet/outgoing.hpp"
#include "rnic/packet/packet_counts.hpp"
#include "rnic/packet/send_source.hpp"
#include "rnic/packet/window.hpp"

namespace weir::rnic::packet {

struct RequesterAttributes {
  wire::Service service = wire::Service::rc;  // or xrc
  std::uint32_t destination = 0;              // QPN
  std::uint16_t pkey = 0xffff;
  std::uint32_t path_mtu = 1024;  // bytes
  Psn first_psn;
  std::uint8_t timeout = 14;  // 4.096 us * 2^timeout; 0: never
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;  // 7: for ever
  std::uint8_t max_rd_atomic = 1;
  RateLimit rate = {};
};

class Requester {
 public:
  // `source` and `window` outlive it.
  Requester(SendSource& source, Window& window, const RequesterAttributes&);
  ~Requester();
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // modify: timeout, retry_cnt, rnr_retry, max_rd_atomic and rate may change while it runs.
  void set(const RequesterAttributes&);

  // The next packet to be sent now. false: none; waits_for_window() says whether the window is why.
  bool next_packet(std::uint64_t now_ns, Outgoing&);
  // There are packets, but the window is closed, or others wait for it and this one has had its turn: call
  // begin_turn() once it stands first in line and the window is open, then ask for packets. Nobody else in
  // line: asking again when an acknowledgement has come is enough.
  bool waits_for_window() const { return waits_for_window_; }
  void begin_turn();
  // The memory of a packet from next_packet() cannot be read: the packet was not sent. Its WQE fails, after
  // all before it.
  void unreadable(const Outgoing&, WcStatus = WcStatus::loc_prot_err);

  // An answer: acknowledge, atomic_acknowledge, read_response_*. Any other is ignored. The caller has
  // checked its ICRC, addresses, P_Key and destination QPN. Ask for packets afterwards.
  void receive(std::uint64_t now_ns, const wire::Packet&);

  // Asks at once for the acknowledgement of what is on its way: somebody waits until all of it has arrived.
  void ask() { probe_.wanted = probe_.wanted || (una_ < next_ && !is_asked()); }

  // No answer will come any more: outstanding WQEs fail at once.
  void peer_gone() {
    if (!idle() && !failed_) fail(WcStatus::retry_exc_err);
  }

  // It is in error for another reason: whoever owns the queue flushes it.
  void give_up();

  // When on_time() must be called; nullopt: not at all in the present state. Changes with every other call.
  std::optional<std::uint64_t> deadline_ns() const;
  // May be called at any time. Ask for packets afterwards.
  void on_time(std::uint64_t now_ns);

  // WQEs before this count have been begun, in part at least.
  std::uint32_t begun() const { return begun_; }
  // WQEs before this count are complete.
  std::uint32_t completed() const { return completed_; }
  bool idle() const { return begun_ == completed_; }
  // A WQE completed in error: nothing is sent or taken any more.
  bool failed() const { return failed_; }
  Psn next_psn() const { return next_; }
  const RequesterCounts& counts() const { return counts_; }
  std::uint64_t round_trip_ns() const { return smoothed_rtt_ns_; }
  // Several probes in a row went unanswered, or a timeout: the peer is gone or stopped, or nothing passes
  // there.
  bool is_unanswered() const { return !failed_ && (probes_ >= unanswered_probes || retries_ != 0); }

 private:
  static constexpr std::uint32_t unanswered_probes = 3;
  // How the answer to a WQE looks.
  enum class Answer : std::uint8_t { acknowledgement, data, atomic, none };
  // A WQE that has begun and is not complete.
  struct Outstanding {
    Psn first;
    std::uint32_t packets;  // PSNs that it takes; 0: none (a local operation, one that failed at once)
    std::uint64_t bytes;
    Answer answer;
    WcStatus status;  // other than success: nothing of it is sent any more, and it fails in its turn
  };
  // Which packets asked for an answer.
  struct Asked {
    Psn beyond;                       // behind the newest of them
    std::uint32_t packets_since = 0;  // that did not
    bool awaited = false;             // a signalled message ended in one of these

    void sent(bool asks, Psn behind) {
      packets_since = asks ? 0 : packets_since + 1;
      awaited = awaited && !asks;
      if (asks && behind > beyond) beyond = behind;
    }
  };
  struct Probe {
    bool wanted = false;
    Psn of;                      // the last one
    std::optional<Psn> reaches;  // what was sent when it was: lost, if silence follows its answer
  };
  // A WQE looked up, and how far into its pieces the last packet reached.
  struct LookedUp {
    std::optional<std::uint32_t> wqe;
    WorkRequest request;
    Gather pieces;
    std::uint64_t offset = 0;  // where the cursor stands
    std::uint32_t piece = 0;
    std::uint64_t in_piece = 0;
  };

  Outstanding& at(std::uint32_t wqe) { return ring_[wqe & (ring_.size() - 1)]; }
  void push(const Outstanding&);
  WcStatus load(LookedUp&, std::uint32_t wqe);

  // requester.cpp
  void stop_waiting();
  void lost(std::uint64_t now_ns);
  void rewind();
  void fail(WcStatus);
  std::uint64_t probe_after_ns() const;
  std::uint64_t unasked_ns() const;
  bool asks_always() const;
  // An answer to something that is on its way is due without a probe.
  bool is_asked() const { return una_ < asked_.beyond; }
  // Nothing of what was lost is on its way again yet: the peer's silence means nothing.
  bool waits_to_repeat() const { return waits_for_window_ && next_ == una_; }

  // sending.cpp
  bool begin_next(std::uint64_t now_ns);
  bool find_next(std::uint64_t now_ns);
  bool may_send(const Outstanding&);
  bool others_are_next() const;
  void emit(std::uint32_t wqe, std::uint32_t index, std::uint32_t packets, Outgoing&, bool ack);
  bool send_probe(Outgoing&);
  std::uint32_t packets_of_read(std::uint32_t index) const;
  std::uint32_t payload_of(const Outstanding&, std::uint32_t index) const;
  std::uint64_t charge_of(const Outstanding&, std::uint32_t from, std::uint32_t to) const;
  bool wants_ack(std::uint64_t now_ns, const Outstanding&, std::uint32_t index) const;
  void gather_payload(LookedUp&, std::uint64_t offset, std::uint32_t bytes, Outgoing&);

  // answers.cpp
  void take_acknowledge(std::uint64_t now_ns, const wire::Packet&);
  void take_data(std::uint64_t now_ns, const wire::Packet&);
  void acknowledge_before(std::uint64_t now_ns, Psn end);
  void answered(std::uint64_t now_ns, Psn end);
  void retire();
  void rnr(std::uint64_t now_ns, std::uint8_t timer);

  SendSource& source_;
  Window& window_;
  RequesterAttributes attributes_;
  RequesterCounts counts_;

  std::vector<Outstanding> ring_;  // of WQEs completed_ .. begun_; a power of two of them
  std::uint32_t completed_ = 0, sending_ = 0, begun_ = 0;  // sending_: the WQE of next_
  Psn una_, next_, beyond_;
  std::deque<Psn> unanswered_;   // the last PSN of each READ request and atomic on its way
  std::uint64_t in_flight_ = 0;  // charged to the window
  Asked asked_;
  LookedUp sending_wqe_, answered_wqe_;
  bool failed_ = false, waits_for_window_ = false;
  // What it may send although others wait, as the window charges. If the window closes before that, its own
  // acknowledgements let it go on.
  std::uint64_t turn_left_ = 0;

  Pacer pacer_;                                  // between messages; not of what is sent again
  std::optional<std::uint64_t> paced_until_ns_;  // the next message waits for it

  // Timers; all that stand are in deadline_ns().
  std::uint64_t since_ns_ = 0;   // the last progress, timeout, or when something began to be outstanding
  std::uint64_t probed_ns_ = 0;  // since then silence is measured for the next probe
  std::uint32_t probes_ = 0;     // since the last progress
  Probe probe_;
  std::optional<std::uint64_t> resend_ns_;  // then it is sent again
  std::optional<Psn> rewound_at_;           // a second NAK of the same gap is a duplicate
  std::optional<std::uint64_t> rnr_until_ns_;
  std::uint32_t retries_ = 0, rnr_retries_ = 0;
  std::optional<Psn> timed_psn_;  // its answer measures a round trip
  std::uint64_t timed_ns_ = 0, smoothed_rtt_ns_ = 0;
};

}  // namespace weir::rnic::packet
