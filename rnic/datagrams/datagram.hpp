// Unreliable datagrams: the sender's role of UD queue pairs, and, on this host, the receiver's too.
//
// Any process may send to a UD queue pair, so its receive side is a ring of slots claimed by
// compare-exchange. With an SRQ the slots are open from the beginning, and the sender takes a receive from
// the SRQ once it has a slot. The payload (at most one MTU, after its 40-byte GRH) always travels through the
// slot; the owner's poll scatters it (datagram_slots.hpp). A slot can be claimed only while a receive is
// posted; without one, or with a wrong Q_Key, the datagram is dropped, as the specification says. A sender
// that dies between claim and completion leaves a hole. Polling stops at the hole until the end of that
// process is noticed and the hole becomes an empty datagram.
#pragma once

#include <cstdint>
#include <memory>

#include "rnic/between_hosts/arrived_packet.hpp"
#include "rnic/between_hosts/packet_polling.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {

struct Datagram;
class DatagramPackets;

// Under the send lock.
class DatagramSender {
 public:
  DatagramSender(const QpCommon& qp, PacketPolling& polling);
  ~DatagramSender();

  // `dial`: for the datagram that waits for its destination's process.
  Outcome execute(SendWqe&, const Gather&, HostPort::Ticket& dial);
  // Sends what execute() left in a batch for another host.
  void send();

 private:
  Datagram datagram_of(const SendWqe&, const Gather&) const;
  Outcome send_in_packet(const SendWqe&, const Gather&, std::uint64_t process = 0);
  Outcome multicast(const SendWqe&, const Gather&, HostPort::Ticket& dial);
  Outcome multicast_to_users(const SendWqe&, const Gather&);

  const QpCommon& qp_;
  PacketPolling& polling_;
  std::unique_ptr<DatagramPackets> packets_;  // created with the first datagram to another host
  std::vector<std::uint64_t> members_;        // of the group of the datagram being sent
};

// Delivers a datagram from another host or user to this queue pair. If no receive is posted it is lost, like
// one from this host. Any thread.
void receive_datagram(const QpCommon&, const ArrivedPacket&);

}  // namespace weir::rnic
