// A flow: one message of one RC queue pair, both ends of it. A slot is reused when its flow is over
// and its last packet is gone, so memory follows the number of live flows. A flow that waits to start
// is a FlowSpec of 40 bytes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fabric/sim/settings.hpp"
#include "rnic/congestion/dcqcn.hpp"
#include "rnic/congestion/go_back_n.hpp"

namespace weir::fabric::sim {

enum class Place : std::uint8_t {
  parked,  // nothing to send until an acknowledgement or a retransmission timeout
  ready,   // in its host's list
  paced,   // in its host's heap until its rate allows the next packet
};

struct Flow {
  // sender
  rnic::congestion::GoBackNSender sender;
  std::uint32_t packets = 0;
  std::uint32_t last_bytes = 0;  // payload of the last packet
  std::uint32_t source = 0;
  std::uint32_t nic = 0;  // the NIC of the source that it uses
  std::uint32_t destination = 0;
  std::uint32_t next_ready = none;
  std::uint32_t hash = 0;
  std::uint32_t id = none;     // none: the slot is free
  std::uint32_t on_wires = 0;  // packets of this flow, in both directions, that still exist
  Place place = Place::parked;
  std::uint8_t priority = 0;
  bool arrived : 1 = false;       // completely, at the receiver
  bool acknowledged : 1 = false;  // completely, at the sender
  // Of a queue pair of a running program (live/live_packets.hpp): see first_packet.
  bool live : 1 = false;
  Ticks progress = 0;   // last acknowledgement of new data
  double rate_bps = 0;  // what congestion control allows now
  rnic::congestion::ReactionPoint reaction;
  // receiver
  rnic::congestion::GoBackNReceiver receiver;
  rnic::congestion::NotificationPoint notification;
  std::uint32_t not_acknowledged = 0;  // packets since the last ACK
  // Packets from here on were neither dropped nor ignored behind a gap: to send one again is needless. An
  // observer's count, which neither end knows.
  std::uint32_t missed_below = 0;
  // Of a live one: its packets, in order, and when its rate allows the next.
  std::uint32_t first_packet = none, last_packet = none;
  Ticks allowed = 0;

  void miss(std::uint32_t psn) {
    const std::uint32_t ahead = (psn - receiver.delivered()) & rnic::congestion::psn_mask;
    if (ahead < rnic::congestion::most_in_flight)
      missed_below = std::max(missed_below, receiver.delivered() + ahead + 1);
  }
};

// Until the next packet may leave behind one that takes `frame` bytes of its wire.
inline Ticks wait_after(std::uint64_t frame, double rate_bps) {
  return static_cast<Ticks>(static_cast<double>(frame) * 8 * ticks_per_s / rate_bps);
}

struct FlowResult {
  Ticks started = no_time;
  Ticks arrived = no_time;          // the last byte's arrival at the receiver
  Ticks ideal = 0;                  // its duration alone on its path
  std::uint32_t retransmitted = 0;  // packets
  std::uint32_t cnps = 0;
};

}  // namespace weir::fabric::sim
