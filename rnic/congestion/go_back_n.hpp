// Go-back-N, the reliability of an RC queue pair: the sender's window of PSNs and the receiver's expected
// PSN. IBA volume 1, 9.7.5.2 (responder: sequence errors) and 9.7.5.1.4 (requester: implied retransmission).
//
// Pure state: packets and acknowledgements go in, what to do comes out. Packets are counted from 0 for the
// life of the queue pair; on the wire is the count modulo 2^24, and the halves compare by serial arithmetic,
// so at most 2^23 packets may be in flight. One thread at a time for each object.
#pragma once

#include <cstdint>

namespace weir::rnic::congestion {

constexpr std::uint32_t psn_mask = (1u << 24) - 1;
constexpr std::uint32_t most_in_flight = 1u << 23;

class GoBackNSender {
 public:
  std::uint32_t acknowledged() const { return acknowledged_; }  // packets below this one have arrived
  std::uint32_t next() const { return next_; }                  // the packet that is sent next
  std::uint32_t in_flight() const { return next_ - acknowledged_; }
  std::uint32_t sent() const { return sent_; }  // packets below this one have been sent at least once
  bool window_open() const { return in_flight() < most_in_flight; }
  std::uint32_t psn() const { return next_ & psn_mask; }

  // The packet `next()` left. True: it is a retransmission.
  bool on_sent() {
    const bool again = next_ < sent_;
    if (++next_ > sent_) sent_ = next_;
    return again;
  }

  // Everything below `psn` (the receiver's expected PSN) has arrived. Gives the packets newly acknowledged; a
  // stale or impossible PSN acknowledges nothing.
  std::uint32_t on_ack(std::uint32_t psn) {
    const std::uint32_t step = (psn - acknowledged_) & psn_mask;
    if (step > sent_ - acknowledged_) return 0;
    acknowledged_ += step;
    if (next_ < acknowledged_) next_ = acknowledged_;  // acknowledged while it went back
    return step;
  }

  // The receiver misses `psn`: acknowledge below it, send again from it. Gives the packets newly
  // acknowledged.
  std::uint32_t on_nak(std::uint32_t psn) {
    const std::uint32_t step = (psn - acknowledged_) & psn_mask;
    if (step > sent_ - acknowledged_) return 0;
    acknowledged_ += step;
    next_ = acknowledged_;
    return step;
  }

  // No progress for the retransmission timeout: send again from the oldest packet.
  void on_timeout() { next_ = acknowledged_; }

 private:
  std::uint32_t acknowledged_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t sent_ = 0;
};

enum class Arrival : std::uint8_t {
  deliver,    // the expected packet
  duplicate,  // before it: acknowledge again, deliver nothing (9.7.5.2.3)
  nak,        // after it, the first since the gap opened: NAK sequence error
  ignore,     // after it, the NAK is out already
};

class GoBackNReceiver {
 public:
  std::uint32_t delivered() const { return expected_; }  // packets handed up
  std::uint32_t expected_psn() const { return expected_ & psn_mask; }

  Arrival on_packet(std::uint32_t psn) {
    const std::uint32_t ahead = (psn - expected_) & psn_mask;
    if (ahead == 0) {
      ++expected_;
      nak_sent_ = false;
      return Arrival::deliver;
    }
    if (ahead >= most_in_flight) return Arrival::duplicate;
    if (nak_sent_) return Arrival::ignore;
    nak_sent_ = true;
    return Arrival::nak;
  }

 private:
  std::uint32_t expected_ = 0;
  bool nak_sent_ = false;
};

}  // namespace weir::rnic::congestion
