#include "rnic/datagrams/datagram_packets.hpp"

#include "wire/byte_order.hpp"

namespace weir::rnic {

void DatagramPackets::go_to(const DatagramPath& path, std::uint64_t process) {
  const bool same = path.grh == grh_ && path.interface == route_.interface && process == route_.process;
  if (icrc_ && same) return;
  send();
  grh_ = path.grh;
  const GrhFields fields = read_grh(path.grh);
  route_ = {.source = fields.source,
            .destination = fields.destination,
            .traffic_class = fields.traffic_class,
            .hop_limit = fields.hop_limit,
            .interface = path.interface,
            .from = own_,
            .process = process};
  icrc_.emplace(wire::IcrcRoute::Ends{.source = route_.source,
                                      .destination = route_.destination,
                                      .source_port = wire::roce_port,
                                      .destination_port = wire::roce_port},
                host_.wire_key());
}

bool DatagramPackets::add(const SendWqe& wqe, std::uint32_t qkey, std::uint64_t process,
                          const Gather& payload) {
  go_to(*wqe.datagram.path, process);
  if (!batch_) batch_.emplace(host_, route_, *icrc_);
  const bool has_imm = wqe.opcode == SendOpcode::send_with_imm;
  wire::Packet said;
  said.bth.opcode =
      wire::opcode(wire::Service::ud, has_imm ? wire::Operation::send_only_imm : wire::Operation::send_only);
  said.bth.solicited = wqe.solicited;
  said.bth.destination = wqe.datagram.destination.value();
  said.bth.psn = psn_++ & 0xffffff;
  said.deth = {.qkey = qkey, .source = own_.value()};
  said.imm = wire::swap_network(wqe.imm_be);

  auto room = payload.pieces;
  packet::Outgoing packet{};
  packet.header_bytes = static_cast<std::uint8_t>(wire::encode_headers(said, payload.bytes, packet.header));
  packet.pad = wire::pad_of(payload.bytes);
  packet.is_ours = payload.is_ours;
  packet.payload_bytes = static_cast<std::uint32_t>(payload.bytes);
  packet.room = room;
  packet.pieces = payload.count;
  return batch_->add(packet);
}

void DatagramPackets::send() {
  if (batch_) batch_->send();
  batch_.reset();
}

}  // namespace weir::rnic
