#include "rnic/between_hosts/packet_path.hpp"

#include <algorithm>
#include <cstring>

#include "rnic/between_hosts/arrived_packet.hpp"
#include "rnic/memory/copy.hpp"
#include "rnic/queue_pair/local_work.hpp"

namespace weir::rnic {
namespace {

using packet::Verdict;

Verdict verdict_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return Verdict::done;
    case Outcome::rnr:
      return Verdict::rnr;
    case Outcome::nak_access:
      return Verdict::nak_access;
    case Outcome::nak_invalid:
      return Verdict::nak_invalid;
    case Outcome::nak_operational:
      return Verdict::nak_operational;
    default:
      return Verdict::lost;
  }
}

Outcome outcome_of(Verdict verdict) {
  if (verdict == Verdict::nak_invalid) return Outcome::nak_invalid;
  return verdict == Verdict::nak_access ? Outcome::nak_access : Outcome::nak_operational;
}

Gather one_piece(const void* at, std::size_t bytes) {
  Gather one;
  one.pieces[0] = {const_cast<void*>(at), bytes};
  one.count = bytes != 0 ? 1 : 0;
  one.bytes = bytes;
  one.is_ours = true;
  return one;
}

// Lets switches mark packets of reliable connections, which slow down on notification (RFC 3168; annex A17).
// ECN bits that the program chose itself stay.
std::uint8_t class_of(QpType type, const Path& path) {
  constexpr std::uint8_t capable = 2;  // ECT(0)
  const bool says_so = path.ecn_capable && is_reliable(type) && ecn_of(path.traffic_class) == 0;
  return says_so ? path.traffic_class | capable : path.traffic_class;
}

}  // namespace

// ---- the requester's view of the send queue

std::uint32_t PacketSends::posted() const {
  switch (qp_.state()) {
    case QpState::rts:
      return sends_.doorbell();
    case QpState::sqd:
      return path_.requester->begun();
    default:
      return sends_.executed();
  }
}

WcStatus PacketSends::look_up(std::uint32_t number, packet::WorkRequest& request, Gather& pieces) {
  SendWqe& wqe = sends_.at(number);
  request.opcode = wqe.opcode;
  request.signaled = wqe.signaled;
  request.solicited = wqe.solicited;
  request.fence = wqe.fenced;
  request.imm_be = wqe.imm_be;
  request.remote_addr = wqe.remote_addr;
  request.rkey = wqe.rkey;
  request.compare_add = wqe.atomic.compare_add;
  request.swap = wqe.atomic.swap;
  request.srqn = wqe.remote_srqn;
  pieces.count = 0;
  pieces.bytes = 0;
  pieces.is_ours = false;
  return prepare(qp_, wqe, pieces).value_or(WcStatus::success);
}

WcStatus PacketSends::execute_local(std::uint32_t number) {
  SendWqe& wqe = sends_.at(number);
  return rnic::execute_local(qp_, wqe) ? WcStatus::success : wqe.status;
}

bool PacketSends::scatter(std::uint32_t, const Gather& pieces, std::uint64_t offset,
                          std::span<const std::byte> bytes) {
  for (const iovec& piece : pieces.span()) {
    if (bytes.empty()) return true;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const iovec into{static_cast<std::byte*>(piece.iov_base) + offset,
                     std::min(piece.iov_len - offset, bytes.size())};
    offset = 0;
    if (try_copy({&into, 1}, {}, [&] { std::memcpy(into.iov_base, bytes.data(), into.iov_len); }) !=
        Trapped::no)
      return false;
    bytes = bytes.subspan(into.iov_len);
  }
  return bytes.empty();
}

void PacketSends::complete(std::uint32_t number, WcStatus status, std::uint64_t bytes) {
  SendWqe& wqe = sends_.at(number);
  if (status != WcStatus::success) return sends_.fail(wqe, status);
  wqe.byte_len = static_cast<std::uint32_t>(bytes);
  qp_.counters.count_done(nullptr, wqe.opcode, wqe.byte_len);
  sends_.complete(wqe, WcStatus::success);
}

// ---- the responder's view of our own memory and receives

bool PacketTarget::connect(const PeerPtr& self, Qpn ours, Qpn sender, QpType type) {
  is_xrc_ = type == QpType::xrc_recv;
  return own_.connect_to_ourselves(self, ours, sender) &&
         (!is_xrc_ || reads_.connect_to_ourselves(self, ours, sender));
}

Verdict PacketTarget::select(std::uint32_t srqn) { return verdict_of(select_at(own_, Qpn(srqn))); }

// The SRQ may belong to another process of our user than the queue pair. Until that process is connected the
// packet counts as lost, so its sender asks again.
Outcome PacketTarget::select_at(RemoteQueuePair& end, Qpn srqn) {
  if (end.srq_selected(srqn)) return Outcome::done;
  HostPort::Reached of{end.peer};
  if (srqn.slot() != end.peer->slot()) of = host_.reach(srqn.slot(), dial_);
  if (of.undecided) return Outcome::connecting;
  if (of.silent) return Outcome::contended;
  return end.select_srq(srqn, of.peer);
}

Verdict PacketTarget::begin_send() {
  is_write_ = false;
  return verdict_of(own_.begin_send());
}

Verdict PacketTarget::begin_write(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
  is_write_ = true;
  write_addr_ = addr;
  write_rkey_ = rkey;
  return verdict_of(own_.check_write(addr, length, rkey));
}

Verdict PacketTarget::append(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (!is_write_) return verdict_of(own_.append_to_send(offset, bytes));
  return verdict_of(
      own_.rdma_write(one_piece(bytes.data(), bytes.size()), write_addr_ + offset, write_rkey_));
}

Verdict PacketTarget::finish(const packet::Ending& ending) {
  const Verdict verdict = report_ending(ending);
  if (verdict == Verdict::done)
    counters().count_served(is_write_ ? SendOpcode::rdma_write : SendOpcode::send, ending.byte_len);
  return verdict;
}

Verdict PacketTarget::report_ending(const packet::Ending& ending) {
  if (is_write_ && !ending.imm_be) return Verdict::done;
  Arrival arrival;
  arrival.opcode = is_write_ ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv;
  arrival.byte_len = ending.byte_len;
  if (ending.imm_be) {
    arrival.carries = Carries::immediate;
    arrival.imm_be = *ending.imm_be;
  } else if (ending.invalidate) {
    arrival.carries = Carries::invalidate;
    arrival.imm_be = *ending.invalidate;
  }
  arrival.solicited = ending.solicited;
  // The payload of a WRITE has been written; only its receive must still be completed.
  return verdict_of(is_write_ ? own_.rdma_write_with_imm({}, 0, 0, arrival) : own_.finish_send(arrival));
}

Verdict PacketTarget::check_read(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
  const Verdict verdict = verdict_of(own_.check_read(addr, length, rkey));
  if (verdict == Verdict::done) counters().count_served(SendOpcode::rdma_read, length);
  return verdict;
}

Verdict PacketTarget::read(std::uint32_t srqn, std::uint64_t addr, std::uint32_t rkey, std::uint32_t length,
                           std::span<iovec> room, std::uint32_t& used) {
  if (length == 0) return Verdict::done;
  RemoteQueuePair& from = read_from();
  if (is_xrc_) {
    if (const Outcome selected = select_at(from, Qpn(srqn)); selected != Outcome::done)
      return verdict_of(selected);
  }
  if (from.acts_on_another_process()) {  // where its memory need not be mapped
    guest_bytes_.resize(length);
    room[used] = {guest_bytes_.data(), length};
    const Outcome copied = from.rdma_read(one_piece(guest_bytes_.data(), length), addr, rkey);
    if (copied == Outcome::done) ++used;
    return verdict_of(copied);
  }
  const Outcome begun = from.begin_read(addr, length, rkey, room[used], own_.has_refused());
  if (begun == Outcome::done) ++used;
  return verdict_of(begun);
}

Verdict PacketTarget::atomic(SendOpcode opcode, std::uint64_t addr, std::uint32_t rkey,
                             std::uint64_t compare_add, std::uint64_t swap, std::uint64_t& before) {
  const AtomicOperands operands{.compare_add = compare_add, .swap = swap};
  const Verdict verdict =
      verdict_of(own_.atomic(opcode, operands, one_piece(&before, sizeof before), addr, rkey));
  if (verdict == Verdict::done) counters().count_served(opcode, sizeof before);
  return verdict;
}

Verdict PacketTarget::atomic_write(std::uint64_t addr, std::uint32_t rkey,
                                   std::span<const std::byte, atomic_bytes> value) {
  const Verdict verdict = verdict_of(own_.atomic_write(one_piece(value.data(), value.size()), addr, rkey));
  if (verdict == Verdict::done) counters().count_served(SendOpcode::atomic_write, value.size());
  return verdict;
}

void PacketTarget::refuse(Verdict why) { (void)own_.refuse(outcome_of(why)); }

PacketPath::PacketPath(const QpCommon& qp, SendSide& sends, const Path& path, Qpn remote_number)
    : route{.source = path.source,
            .destination = path.destination,
            .traffic_class = class_of(qp.config.type, path),
            .hop_limit = path.hop_limit,
            .interface = path.interface,
            .from = qp.qpn,
            .process = path.process},
      icrc_out({.source = path.source,
                .destination = path.destination,
                .source_port = wire::roce_port,
                .destination_port = wire::roce_port},
               qp.nic.host.wire_key()),
      remote(remote_number),
      mtu(path.mtu_bytes),
      target(qp.nic.host),
      requests(qp, sends, *this) {}

}  // namespace weir::rnic
