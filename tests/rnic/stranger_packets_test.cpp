// What strangers on the wire send: counted by its reason, unanswered, and refused before its ICRC is looked
// at, which strangers compute as well as peers.
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

class Strangers : public TwoHosts {
 protected:
  std::uint64_t dropped(Dropped why) {
    return b_nic.adapter().segment().header().counters.dropped[static_cast<std::size_t>(why)].read();
  }
  // A SEND of nothing from a queue pair of `source`, intact.
  OnWire packet_to(std::uint32_t queue_pair, const Gid& source, std::uint8_t opcode = 4) {
    wire::Packet packet;
    packet.bth.opcode = opcode;
    packet.bth.pkey = 0xffff;
    packet.bth.destination = queue_pair;
    packet.bth.ack_request = true;
    OnWire made{{}, source, b_gid, 0, interface};
    std::array<std::byte, wire::longest_headers> headers;
    const std::size_t bytes = wire::encode_headers(packet, 0, headers);
    made.bytes.assign(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(bytes));
    made.bytes.resize(bytes + wire::icrc_bytes);
    sign(made);
    return made;
  }
  static void damage(OnWire& packet) { packet.bytes.back() ^= std::byte{0x5a}; }
};

TEST_F(Strangers, are_counted_by_what_is_wrong_and_get_no_answer) {
  connect_hosts();
  Endpoint datagrams{b_nic, {.type = QpType::ud, .qkey = 0x1234}};
  datagrams.to_rts(Qpn());
  const std::uint32_t ours = b->qpn().value(), free = Qpn(b_nic.slot(), max_qps - 2).value();
  constexpr std::uint8_t datagram = wire::opcode(wire::Service::ud, wire::Operation::send_only);
  struct Row {
    const char* what;
    OnWire packet;
    bool damaged;
    Dropped why;
  };
  OnWire cut = packet_to(ours, a_gid);
  cut.bytes.resize(10);
  const Row rows[] = {
      {"not the peer", packet_to(ours, gid_of(9)), false, Dropped::wrong_source},
      {"not the peer, and damaged", packet_to(ours, gid_of(9)), true, Dropped::wrong_source},
      {"no such queue pair", packet_to(free, a_gid), true, Dropped::no_queue_pair},
      {"queue pair 0", packet_to(0, a_gid), false, Dropped::no_queue_pair},
      {"the peer's, damaged", packet_to(ours, a_gid), true, Dropped::wrong_icrc},
      {"another Q_Key", packet_to(datagrams.qpn().value(), gid_of(9), datagram), true, Dropped::wrong_qkey},
      {"to a group's number alone", packet_to(0xffffff, a_gid), false, Dropped::malformed},
      {"cut off", cut, false, Dropped::malformed},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    OnWire packet = row.packet;
    if (row.damaged) damage(packet);
    const std::uint64_t before = dropped(row.why);
    deliver(packet);
    EXPECT_EQ(dropped(row.why), before + 1);
    EXPECT_TRUE(wire.empty());
  }
}

// Bytes out by bytes in, and what it asks of the host: every opcode there is, to each kind of destination.
TEST_F(Strangers, of_every_kind_cost_no_answer_and_no_call) {
  connect_hosts();
  const std::uint32_t ours = b->qpn().value(), free = Qpn(b_nic.slot(), max_qps - 2).value();
  const std::uint64_t clock_before = b_nic.clock_reads.load();
  std::size_t in = 0;
  for (const std::uint32_t to : {ours, free, 0u, 1u, 0xffffffu, Qpn(Slot{900}, 5).value()})
    for (int opcode = 0; opcode < 256; ++opcode) {
      OnWire packet = packet_to(ours, gid_of(9));
      packet.bytes[0] = std::byte(opcode);
      for (std::size_t i = 0; i < 3; ++i) packet.bytes[5 + i] = std::byte(to >> (16 - 8 * i));
      packet.bytes.resize(packet.bytes.size() + 60);
      sign(packet);
      in += packet.bytes.size();
      deliver(packet);
    }
  EXPECT_GT(in, 100'000u);
  EXPECT_TRUE(wire.empty()) << "a stranger was answered";
  EXPECT_EQ(b_nic.clock_reads.load(), clock_before);
  ASSERT_EQ(b->recv(1), PostResult::ok);
  Memory nothing(a_nic, 64, all_access, Reach::mapped);
  ASSERT_EQ(a->send(2, nothing.sge(0, 0)), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(b->poll_recv(), 1)) << "the connection is no longer what it was";
  EXPECT_TRUE(completed(a->poll_send(), 2));
}

}  // namespace
}  // namespace weir::rnic::test
