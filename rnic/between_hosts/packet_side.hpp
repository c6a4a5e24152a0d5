// A queue pair whose peer is on another host: packets in and out, where the others execute their requests
// themselves.
//
// Whoever posts sends the first packets, up to the window; whoever receives answers
// (Adapter::receive_packets) and sends what the window then lets through. An unreliable connection only
// answers here; the requester executes what it posts (requester.hpp).
//
// Threading: "under the send lock" where it says so; current() and receive() from any thread without it.
#pragma once

#include <cstdint>
#include <memory>

#include "rnic/between_hosts/arrived_packet.hpp"
#include "rnic/between_hosts/packet_path.hpp"

namespace weir::rnic {

class PacketSide {
 public:
  PacketSide(const QpCommon& qp, SendSide& sends) : qp_(qp), sends_(sends) {}
  PacketSide(const PacketSide&) = delete;
  PacketSide& operator=(const PacketSide&) = delete;

  // ---- under the send lock
  // To rtr, by the attributes' path. `window`: of RC, what may be on its way there.
  void open(std::shared_ptr<packet::Window> window);
  // What modify changed, as far as both halves go by it.
  void set(QpState to);
  // To reset; whoever receives has either not begun with it, or is through.
  void close();
  bool is_open() const { return path_ != nullptr; }
  // It sends, too: a reliable connection.
  bool sends() const { return path_ != nullptr && qp_.config.type == QpType::rc; }
  // UC, from rts on; nullptr before.
  UnreliablePackets* unreliable_sends() const;
  // What the window lets go.
  void execute();
  // From a timer or a poll. True: something is still on its way.
  bool resume();
  // Of a message that began to arrive the rest is not taken any more.
  void give_up_arriving();
  // The path is still the one that a packet came by.
  bool is_current(const std::shared_ptr<PacketPath>& path) const { return path == path_; }
  // An ACK, a NAK or the answer to a READ.
  void receive_answer(const ArrivedPacket&);
  // The process of another user that it led to ended. Nobody else is believed to be it.
  void peer_gone();

  // ---- not under it
  std::shared_ptr<PacketPath> current();
  // A packet that names us, found whole. The path that it came by, if it is an answer: then the caller takes
  // the send lock and has receive_answer() take it.
  std::shared_ptr<PacketPath> receive(const ArrivedPacket&);
  // Behind a batch of arrived packets: answers to requests.
  void answer(PacketPath&);

 private:
  bool may_send() const;
  void run_timer(std::uint64_t now_ns);
  void count_sends();
  void count_answers(PacketPath&, std::uint64_t sent, std::uint64_t again);
  void count_arrived(PacketPath&, const packet::ResponderCounts& now);
  void notify_sender(PacketPath&);
  packet::ResponderAttributes responder_attributes(const PacketPath&) const;

  const QpCommon& qp_;
  SendSide& sends_;
  SpinLock lock_;                     // of path_, which changes under the send lock, too
  std::shared_ptr<PacketPath> path_;  // from rtr on, where the peer is reached by packets
};

}  // namespace weir::rnic
