// Datagrams to groups between hosts: one packet goes to the group's address, and on each receiving host every
// attached queue pair gets a copy.
#include "rnic/datagrams/grh.hpp"
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint32_t group_qkey = 0x01234567, group_packet_bytes = 1024;

constexpr Gid group_v4(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 1, last};
}
constexpr Gid group_v6(std::uint8_t last) {
  Gid gid{0xff, 0x15};
  gid[15] = last;
  return gid;
}
constexpr Gid host_v6(std::uint8_t last) {
  Gid gid{0xfd, 0x77};
  gid[15] = last;
  return gid;
}

struct GroupFamily {
  const char* name;
  Gid a, b, group, other_group;
};

class MulticastPackets : public TwoHosts, public testing::WithParamInterface<GroupFamily> {
 protected:
  MulticastPackets() {
    a_gid = GetParam().a;
    b_gid = GetParam().b;
    path.group = group;
    path.grh = write_grh({.source = a_gid, .destination = group, .hop_limit = 1});
    path.packet_bytes = group_packet_bytes;
    from.fill(7);
    for (Endpoint* end : {&sender, &mine, &first, &second}) end->to_rts(Qpn());
    for (std::uint64_t id = 0; id < 4; ++id)
      for (Endpoint* end : {&mine, &first, &second})
        EXPECT_EQ(end->recv(id, {landing_of(*end).sge(id * 2048, 2048)}), PostResult::ok);
  }
  Memory& landing_of(const Endpoint& end) {
    if (&end == &mine) return into_mine;
    return &end == &first ? into_first : into_second;
  }
  static void attach(Endpoint& end, const Gid& to) {
    ASSERT_EQ(end.nic().adapter().multicast().attach(end.qpn().index(), to), MulticastGroups::Attached::ok);
  }
  PostResult post(std::size_t bytes) {
    return sender.post({.wr_id = 1,
                        .opcode = SendOpcode::send_with_imm,
                        .flags = send_flag::signaled,
                        .imm_be = 0x01020304,
                        .datagram = {multicast_destination, group_qkey, &path}},
                       {from.sge(0, bytes)});
  }
  // What goes to the other hosts. The test's two NICs are neighbours too, so that nobody there is attached
  // yet.
  OnWire sent(std::size_t bytes) {
    EXPECT_EQ(post(bytes), PostResult::ok);
    EXPECT_TRUE(completed(sender.poll_send(), 1));
    EXPECT_EQ(wire.size(), 1u);
    OnWire packet = wire.front();
    wire.clear();
    return packet;
  }
  bool got(Endpoint& end, std::size_t bytes) {
    const auto wc = end.poll_recv();
    return wc && wc->status == WcStatus::success && wc->byte_len == grh_bytes + bytes &&
           wc->src_qpn == sender.qpn().value() && wc->imm_be == 0x01020304 && wc->has_grh;
  }

  const Gid group = GetParam().group, other_group = GetParam().other_group;
  Endpoint sender{a_nic, {.type = QpType::ud, .qkey = group_qkey}};
  Endpoint mine{a_nic, {.type = QpType::ud, .qkey = group_qkey}};
  Endpoint first{b_nic, {.type = QpType::ud, .qkey = group_qkey}};
  Endpoint second{b_nic, {.type = QpType::ud, .qkey = group_qkey}};
  Memory from{a_nic, 8192}, into_mine{a_nic, 8192}, into_first{b_nic, 8192}, into_second{b_nic, 8192};
  DatagramPath path;
};

INSTANTIATE_TEST_SUITE_P(Families, MulticastPackets,
                         testing::Values(GroupFamily{"ipv4", gid_of(1), gid_of(2), group_v4(1), group_v4(2)},
                                         GroupFamily{"ipv6", host_v6(1), host_v6(2), group_v6(1),
                                                     group_v6(2)}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(MulticastPackets, leave_once_beside_what_this_host_gets) {
  attach(mine, group);
  const OnWire packet = sent(64);
  EXPECT_EQ(packet.destination, group);
  EXPECT_EQ(packet.source, a_gid);
  EXPECT_EQ(wire::destination_of(packet.bytes), 0xffffffu);
  EXPECT_TRUE(got(mine, 64));
  EXPECT_FALSE(mine.poll_recv());
}

TEST_P(MulticastPackets, reach_each_queue_pair_that_is_attached) {
  for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 1, 1024}) {
    SCOPED_TRACE(bytes);
    const OnWire packet = sent(bytes);
    deliver(packet);
    EXPECT_FALSE(first.poll_recv()) << "nobody is attached";
    attach(first, group);
    attach(second, other_group);
    deliver(packet);
    EXPECT_TRUE(got(first, bytes));
    EXPECT_FALSE(second.poll_recv()) << "of another group";
    b_nic.adapter().multicast().forget(first.qpn().index());
    b_nic.adapter().multicast().forget(second.qpn().index());
  }
  const OnWire packet = sent(64);
  attach(first, group);
  attach(second, group);
  deliver(packet);
  EXPECT_TRUE(got(first, 64));
  EXPECT_TRUE(got(second, 64));
  EXPECT_EQ(first.qp().counters().multicasts.read(), 4u);
  const auto grh = into_second.part(0, grh_bytes);
  const GrhFields fields = read_grh(std::span(grh).first<grh_bytes>());
  EXPECT_EQ(fields.destination, group);
  EXPECT_EQ(fields.source, a_gid);
  EXPECT_EQ(into_second.part(grh_bytes, 64), from.part(0, 64));
}

TEST_P(MulticastPackets, need_the_q_key_of_their_receiver) {
  Endpoint stranger{b_nic, {.type = QpType::ud, .qkey = group_qkey + 1}};
  stranger.to_rts(Qpn());
  Memory unused(b_nic, 2048);
  ASSERT_EQ(stranger.recv(1, {unused.all()}), PostResult::ok);
  const OnWire packet = sent(64);
  attach(stranger, group);
  attach(first, group);
  deliver(packet);
  EXPECT_FALSE(stranger.poll_recv());
  EXPECT_TRUE(got(first, 64)) << "the others get it all the same";
}

TEST_P(MulticastPackets, that_are_damaged_or_of_another_partition_change_nothing) {
  const OnWire good = sent(64);
  attach(first, group);
  for (std::size_t byte = 0; byte < good.bytes.size(); ++byte) {
    if (byte == 4) continue;  // what switches may change
    OnWire changed = good;
    changed.bytes[byte] ^= std::byte{1};
    deliver(changed);
  }
  OnWire of_another = good;
  of_another.bytes[2] = std::byte{0x12};  // the P_Key
  sign(of_another);
  deliver(of_another);
  EXPECT_FALSE(first.poll_recv());
  deliver(good);
  EXPECT_TRUE(got(first, 64));
}

// IBA 9.4.1: a group's address and the number that stands for all of them go together.
TEST_P(MulticastPackets, go_to_nobody_by_half_of_a_groups_address) {
  const OnWire good = sent(64);
  attach(first, group);
  OnWire to_one = good;
  for (int i = 0; i < 3; ++i)
    to_one.bytes[5 + static_cast<std::size_t>(i)] =
        static_cast<std::byte>(first.qpn().value() >> (8 * (2 - i)));
  sign(to_one);
  deliver(to_one);
  OnWire to_this_host = good;
  to_this_host.destination = b_gid;
  sign(to_this_host);
  deliver(to_this_host);
  EXPECT_FALSE(first.poll_recv());
  deliver(good);
  EXPECT_TRUE(got(first, 64));
}

TEST_P(MulticastPackets, longer_than_the_way_takes_are_the_senders_error_and_reach_nobody) {
  attach(mine, group);
  ASSERT_EQ(post(group_packet_bytes + 1), PostResult::ok);
  EXPECT_TRUE(completed(sender.poll_send(), 1, WcStatus::loc_len_err));
  EXPECT_TRUE(wire.empty());
  EXPECT_FALSE(mine.poll_recv());
}

}  // namespace
}  // namespace weir::rnic::test
