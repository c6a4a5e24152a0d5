// What a queue pair has besides its rings while its peer is reached by packets: a requester over its send
// queue, a responder over its own context, and the route to the peer. An unreliable connection has no
// requester: its WQEs are executed in turn, like datagrams (requester.cpp), and cut into packets.
//
// The requester is used under the queue pair's send lock, the responder under `arriving`. Neither lock is
// taken while the other is held, except by reset, by modify and by a sender that acknowledges: these take the
// send lock first.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "rnic/between_hosts/departures.hpp"
#include "rnic/between_hosts/unreliable_packets.hpp"
#include "rnic/between_hosts/windows.hpp"
#include "rnic/congestion/dcqcn.hpp"
#include "rnic/packet/requester.hpp"
#include "rnic/packet/responder.hpp"
#include "rnic/packet/unreliable_responder.hpp"
#include "rnic/queue_pair/send_side.hpp"
#include "rnic/same_host/responder.hpp"
#include "wire/icrc.hpp"

namespace weir::rnic {

struct PacketPath;

// The send side, as the requester sees it.
class PacketSends final : public packet::SendSource {
 public:
  PacketSends(const QpCommon& qp, SendSide& sends, const PacketPath& path)
      : qp_(qp), sends_(sends), path_(path) {}
  std::uint32_t posted() const override;
  WcStatus look_up(std::uint32_t wqe, packet::WorkRequest& request, Gather& pieces) override;
  WcStatus execute_local(std::uint32_t wqe) override;
  bool scatter(std::uint32_t wqe, const Gather& pieces, std::uint64_t offset,
               std::span<const std::byte> bytes) override;
  void complete(std::uint32_t wqe, WcStatus status, std::uint64_t bytes) override;

 private:
  const QpCommon& qp_;
  SendSide& sends_;
  const PacketPath& path_;
};

// The queue pair, as the responder sees it.
class PacketTarget final : public packet::Target {
 public:
  explicit PacketTarget(HostPort& host) : host_(host) {}
  bool connect(const PeerPtr& self, Qpn ours, Qpn sender, QpType type);
  void disconnect() {
    own_.disconnect();
    reads_.disconnect();
  }
  void give_up_send() { own_.give_up_send(); }
  QpCounters& counters() { return *own_.counters(); }  // while connected
  // The pieces from read() have been copied.
  void end_read() { read_from().end_read(); }

  packet::Verdict select(std::uint32_t srqn) override;
  packet::Verdict begin_send() override;
  packet::Verdict begin_write(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) override;
  packet::Verdict append(std::uint64_t offset, std::span<const std::byte> bytes) override;
  packet::Verdict finish(const packet::Ending& ending) override;
  packet::Verdict check_read(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) override;
  packet::Verdict read(std::uint32_t srqn, std::uint64_t addr, std::uint32_t rkey, std::uint32_t length,
                       std::span<iovec> room, std::uint32_t& used) override;
  packet::Verdict atomic(SendOpcode opcode, std::uint64_t addr, std::uint32_t rkey, std::uint64_t compare_add,
                         std::uint64_t swap, std::uint64_t& before) override;
  packet::Verdict atomic_write(std::uint64_t addr, std::uint32_t rkey,
                               std::span<const std::byte, atomic_bytes> value) override;
  void refuse(packet::Verdict why) override;

 private:
  packet::Verdict report_ending(const packet::Ending& ending);
  Outcome select_at(RemoteQueuePair& end, Qpn srqn);
  RemoteQueuePair& read_from() { return is_xrc_ ? reads_ : own_; }

  HostPort& host_;
  RemoteQueuePair own_;
  // XRC: answers to READs are read through this one, because a message for another SRQ may be on its way
  // through own_.
  RemoteQueuePair reads_;
  bool is_xrc_ = false;
  HostPort::Ticket dial_ = 0;           // for the process of the SRQ that was asked for last
  std::vector<std::byte> guest_bytes_;  // read from the memory of another process
  // State of the message being received.
  bool is_write_ = false;
  std::uint64_t write_addr_ = 0;
  std::uint32_t write_rkey_ = 0;
};

struct PacketPath {
  PacketPath(const QpCommon& qp, SendSide& sends, const Path& path, Qpn remote);

  const PacketRoute route;
  const wire::IcrcRoute icrc_out;
  const Qpn remote;
  const std::uint32_t mtu;

  SpinLock arriving;
  DepartureStage::Place answers_left;   // under `arriving`
  DepartureStage::Place requests_left;  // under the send lock
  PacketTarget target;
  // One of the two, by the type of connection.
  std::optional<packet::Responder> responder;
  std::optional<packet::UnreliableResponder> unreliable_responder;
  congestion::NotificationPoint notification_point;
  bool repeated = false;  // the last acknowledgement, which goes out again once, when the queue pair ends

  std::optional<UnreliablePackets> unreliable_sends;  // UC, from RTS on; and of RC:
  PacketSends requests;
  std::shared_ptr<SharedWindow> window;
  std::optional<packet::Requester> requester;  // from RTS on
  std::uint64_t timer_ns = 0;                  // the earliest running timer
  bool in_line = false;                        // of the window

  // How much of both halves' counts is already in the queue pair's counters.
  packet::RequesterCounts counted_sends;
  packet::ResponderCounts counted_answers;
};

}  // namespace weir::rnic
