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

constexpr hash::SipKey our_key{11, 12}, their_key{11, 13};

struct KeyRow {
  const char* name;
  const hash::SipKey *of_a, *of_b;
  std::optional<Dropped> why;  // b drops what a sends
};
class WithKeys : public Strangers, public testing::WithParamInterface<KeyRow> {
 protected:
  // Over IPv4 a wrong ICRC fits some IP ID once in 65,536.
  WithKeys() {
    for (Gid* gid : {&a_gid, &b_gid}) (*gid)[10] = (*gid)[11] = 0;
  }
};
INSTANTIATE_TEST_SUITE_P(Keys, WithKeys,
                         testing::Values(KeyRow{"both_ours", &our_key, &our_key, {}},
                                         KeyRow{"two_keys", &their_key, &our_key, Dropped::wrong_key},
                                         KeyRow{"one_at_the_receiver", nullptr, &our_key, Dropped::wrong_key},
                                         KeyRow{"one_at_the_sender", &our_key, nullptr, Dropped::wrong_icrc},
                                         KeyRow{"none", nullptr, nullptr, {}}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(WithKeys, connections_work_where_both_ends_have_the_same) {
  a_nic.key = GetParam().of_a;
  b_nic.key = GetParam().of_b;
  connect_hosts();
  Memory from(a_nic, 20'000), to(b_nic, 20'000);
  from.fill(1);
  ASSERT_EQ(b->recv(1), PostResult::ok);
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  ASSERT_EQ(a->send(3, from.sge(0, 0)), PostResult::ok);
  std::optional<WorkCompletion> ended;
  ASSERT_TRUE(carry_until([&] { return (ended = a->poll_send()).has_value(); }));
  if (GetParam().why) {
    EXPECT_EQ(ended->status, WcStatus::retry_exc_err);
    EXPECT_GT(dropped(*GetParam().why), 0u);
    EXPECT_EQ(to.part(0, to.size()), std::vector<std::byte>(to.size()));
  } else {
    EXPECT_TRUE(completed(ended, 2));
    EXPECT_TRUE(completed(a->poll_send(), 3));
    EXPECT_TRUE(completed(b->poll_recv(), 1));
    EXPECT_EQ(to.part(0, to.size()), from.part(0, from.size()));
  }
}

// To each kind of destination. The host, whose budgets for strangers are small, hears of none.
TEST_F(Strangers, without_the_key_reach_nothing) {
  b_nic.key = &our_key;
  connect_hosts();
  Endpoint datagrams{b_nic, {.type = QpType::ud, .qkey = 0x1234}};
  datagrams.to_rts(Qpn());
  const Gid group{0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  constexpr std::uint8_t datagram = wire::opcode(wire::Service::ud, wire::Operation::send_only);
  OnWire to_datagrams = packet_to(datagrams.qpn().value(), gid_of(9), datagram);
  for (const auto& [at, byte] : {std::pair{14, 0x12}, {15, 0x34}}) to_datagrams.bytes[at] = std::byte(byte);
  OnWire to_group = packet_to(0xffffff, gid_of(9), datagram);
  to_group.destination = group;
  const struct {
    const char* name;
    OnWire packet;
  } rows[] = {{"a connection", packet_to(b->qpn().value(), a_gid)},
              {"datagrams", to_datagrams},
              {"a group", to_group},
              {"the connection manager", packet_to(1, gid_of(9), datagram)},
              {"another process", packet_to(Qpn(Slot{900}, 5).value(), gid_of(9))}};
  for (const auto& row : rows)
    for (const hash::SipKey* key : {static_cast<const hash::SipKey*>(nullptr), &their_key, &our_key}) {
      SCOPED_TRACE(row.name);
      OnWire packet = row.packet;
      sign(packet, key);
      const std::uint64_t before = dropped(Dropped::wrong_key);
      deliver(packet);
      EXPECT_EQ(dropped(Dropped::wrong_key) - before, key == &our_key ? 0u : 1u);
    }
  EXPECT_EQ(b_nic.management_asked, 1u);
  EXPECT_EQ(b_nic.passing_on_asked, 1u);
}

}  // namespace
}  // namespace weir::rnic::test
