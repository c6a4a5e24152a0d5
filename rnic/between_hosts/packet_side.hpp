// A queue pair whose peer is on another host: packets in and out, where other queue pairs execute their
// requests themselves.
//
// The posting thread sends the first packets, up to the window; the receiving thread answers
// (Adapter::receive_packets) and sends what the window then admits. An unreliable connection only answers
// here; the requester executes its WQEs (requester.hpp).
//
// Threading: "under the send lock" where it says so; current() and receive() from any thread without it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rnic/between_hosts/arrived_packet.hpp"
#include "rnic/between_hosts/packet_batch.hpp"
#include "rnic/between_hosts/packet_path.hpp"

namespace weir::rnic {

class PacketSide {
 public:
  PacketSide(const QpCommon& qp, SendSide& sends) : qp_(qp), sends_(sends) {}
  PacketSide(const PacketSide&) = delete;
  PacketSide& operator=(const PacketSide&) = delete;

  // ---- under the send lock
  // To RTR, by the attributes' path. `window`: if it sends reliably, what may be in flight on that path.
  void open(std::shared_ptr<SharedWindow> window);
  // Applies what modify changed, as far as both halves depend on it.
  void set(QpState to);
  // To reset. A thread receiving packets has either not started on the path or is done with it.
  void close();
  bool is_open() const { return path_ != nullptr; }
  // It also sends: a reliable connection, or the sending end of an extended one.
  bool sends() const { return path_ != nullptr && sends_reliably(qp_.config.type); }
  static bool sends_reliably(QpType type) { return type == QpType::rc || type == QpType::xrc_send; }
  // UC, from RTS on; nullptr before.
  UnreliablePackets* unreliable_sends() const;
  // Sends what the window admits.
  void execute();
  // Its timer has run out, or, with its turn, it stood first in line for the window and that is open.
  enum class Turn : bool { no, yes };
  void resume(Turn);
  // SharedWindow::lets_somebody_send().
  bool others_may_send() const;
  // Sends nothing any more, and takes no answers.
  void give_up_sending();
  // Takes no more of a message that has begun to arrive, and acknowledges those that have arrived.
  void give_up_arriving();
  // The path is still the one a packet came by.
  bool is_current(const std::shared_ptr<PacketPath>& path) const { return path == path_; }
  // An ACK, a NAK or a READ response.
  void receive_answer(const ArrivedPacket&);
  // The peer, a process of another user, has ended. No other process is taken for it.
  void peer_gone();

  // ---- without the send lock
  std::shared_ptr<PacketPath> current();
  // wrong_source: it is not from our peer.
  std::optional<Dropped> refusal_of(const ArrivedPacket&);
  // Takes an intact packet addressed to us. If it is an answer, returns the path it came by; the caller then
  // takes the send lock and calls receive_answer().
  std::shared_ptr<PacketPath> receive(const ArrivedPacket&);
  // After a batch of arrived packets: sends answers to requests.
  void answer(PacketPath&);
  // The process ends. Waits for nobody.
  void finish();

 private:
  bool may_send() const;
  void acknowledge_in(PacketBatch&, PacketPath&);
  void repeat_last_acknowledgement(PacketPath&);
  void run_timer(std::uint64_t now_ns);
  void count_sends();
  void count_answers(PacketPath&, std::uint64_t sent, std::uint64_t again);
  void count_arrived(PacketPath&, const packet::ResponderCounts& now);
  void notify_sender(PacketPath&);
  packet::ResponderAttributes responder_attributes(const PacketPath&) const;

  const QpCommon& qp_;
  SendSide& sends_;
  SpinLock lock_;                     // guards path_, which also changes only under the send lock
  std::shared_ptr<PacketPath> path_;  // from RTR on, if the peer is reached by packets
};

}  // namespace weir::rnic
