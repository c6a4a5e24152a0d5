#include "rnic/between_hosts/unreliable_packets.hpp"

#include <algorithm>
#include <array>

#include "rnic/packet/message_opcodes.hpp"
#include "wire/byte_order.hpp"

namespace weir::rnic {
namespace {

// The next bytes of a payload, piece by piece.
class PayloadCursor {
 public:
  explicit PayloadCursor(const Gather& payload) : pieces_(payload.span()) {}
  std::uint32_t take(std::uint64_t bytes, std::span<iovec> into) {
    std::uint32_t used = 0;
    while (bytes > 0) {
      const iovec& piece = pieces_[at_];
      const std::uint64_t part = std::min<std::uint64_t>(bytes, piece.iov_len - inside_);
      if (part != 0) into[used++] = {static_cast<std::byte*>(piece.iov_base) + inside_, part};
      bytes -= part;
      inside_ += part;
      if (inside_ == piece.iov_len) {
        ++at_;
        inside_ = 0;
      }
    }
    return used;
  }

 private:
  std::span<const iovec> pieces_;
  std::size_t at_ = 0;
  std::uint64_t inside_ = 0;
};

}  // namespace

std::optional<std::uint32_t> UnreliablePackets::add(const SendWqe& wqe, const Gather& payload) {
  if (!batch_) batch_.emplace(host_, route_, icrc_);
  const auto packets =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (payload.bytes + path_mtu_ - 1) / path_mtu_));
  PayloadCursor cursor(payload);
  std::array<iovec, max_sge> room;
  for (std::uint32_t i = 0; i < packets; ++i) {
    const bool last = i + 1 == packets;
    const std::uint64_t bytes = last ? payload.bytes - std::uint64_t{i} * path_mtu_ : path_mtu_;
    wire::Packet said;
    said.bth.opcode = wire::opcode(wire::Service::uc, packet::operation_of(wqe.opcode, i == 0, last));
    said.bth.solicited = last && wqe.solicited && wqe.opcode != SendOpcode::rdma_write;
    said.bth.destination = to_.value();
    said.bth.psn = next_.value();
    said.reth = {wqe.remote_addr, wqe.rkey, static_cast<std::uint32_t>(payload.bytes)};
    said.imm = wire::swap_network(wqe.imm_be);
    packet::Outgoing packet{};
    packet.header_bytes = static_cast<std::uint8_t>(wire::encode_headers(said, bytes, packet.header));
    packet.pad = wire::pad_of(bytes);
    packet.is_ours = payload.is_ours;
    packet.payload_bytes = static_cast<std::uint32_t>(bytes);
    packet.psn = next_;
    packet.room = room;
    packet.pieces = cursor.take(bytes, room);
    if (!batch_->add(packet)) return std::nullopt;
    next_ = next_ + 1;
  }
  return packets;
}

void UnreliablePackets::send() {
  if (batch_) batch_->send();
  batch_.reset();
}

}  // namespace weir::rnic
