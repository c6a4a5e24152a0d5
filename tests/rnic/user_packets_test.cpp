// Queue pairs whose peer is another user's process on this host: packets as between hosts, but a number
// identifies the sender instead of an address.
#include "rnic/datagrams/grh.hpp"
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint64_t of_a = 12, of_b = 21, stranger = 33;

class TwoUsers : public TwoHosts {
 protected:
  TwoUsers() {
    a_number = of_a;
    b_number = of_b;
  }
  // A write by a that has not reached b yet.
  OnWire one_write() {
    from.fill(1);
    EXPECT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
    EXPECT_EQ(wire.size(), 1u);
    const OnWire packet = wire.front();
    wire.clear();
    return packet;
  }
  Memory from{a_nic, 64, all_access, Reach::mapped}, to{b_nic, 64, all_access, Reach::mapped};
};

TEST_F(TwoUsers, write_read_and_send_in_packets_without_a_checksum) {
  connect_hosts();
  Memory large(a_nic, 300'000, all_access, Reach::mapped), there(b_nic, 300'000, all_access, Reach::mapped);
  large.fill(3);
  drop = [](const OnWire& packet) {
    EXPECT_TRUE(std::ranges::all_of(std::span(packet.bytes).last(wire::icrc_bytes),
                                    [](std::byte each) { return each == std::byte{0}; }));
    return false;
  };
  ASSERT_EQ(a->write(1, large.all(), there.addr(), there.key()), PostResult::ok);
  carry();
  ASSERT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(there.part(0, there.size()), large.part(0, large.size()));
  large.clear();
  ASSERT_EQ(a->read(2, large.all(), there.addr(), there.key()), PostResult::ok);
  carry();
  ASSERT_TRUE(completed(a->poll_send(), 2));
  EXPECT_EQ(there.part(0, there.size()), large.part(0, large.size()));
  ASSERT_EQ(b->recv(3, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(4, large.sge(0, 50)), PostResult::ok);
  carry();
  ASSERT_TRUE(completed(b->poll_recv(), 3));
  ASSERT_TRUE(completed(a->poll_send(), 4));
}

TEST_F(TwoUsers, packets_of_other_processes_and_of_the_network_change_nothing) {
  connect_hosts();
  const OnWire good = one_write();
  OnWire of_the_network = good, of_another = good;
  of_the_network.process = 0;
  of_the_network.slot = 0;
  sign(of_the_network);  // and its addresses are right
  of_another.process = stranger;
  for (const OnWire& bad : {of_the_network, of_another}) deliver(bad);
  EXPECT_TRUE(wire.empty()) << "a stranger was answered";
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  EXPECT_EQ(b->qp().state(), QpState::rts);
  deliver(good);
  ASSERT_EQ(wire.size(), 1u);
  OnWire answer = wire.front();
  wire.clear();
  OnWire forged = answer;
  forged.process = stranger;
  deliver(forged);
  EXPECT_FALSE(a->poll_send()) << "a stranger's acknowledgement was believed";
  deliver(answer);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(TwoUsers, a_queue_pair_of_another_host_hears_no_user_of_this_one) {
  a_number = b_number = 0;
  connect_hosts();
  const OnWire good = one_write();
  OnWire of_a_user = good;
  of_a_user.process = of_a;
  of_a_user.slot = a_nic.slot();
  deliver(of_a_user);
  EXPECT_TRUE(wire.empty());
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  deliver(good);
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(TwoUsers, the_peers_end_fails_what_is_outstanding_and_flushes_the_rest) {
  connect_hosts();
  (void)one_write();
  ASSERT_EQ(a->recv(2), PostResult::ok);
  a_nic.adapter().process_gone(stranger);
  EXPECT_EQ(a->qp().state(), QpState::rts);
  EXPECT_FALSE(a->poll_send());
  a_nic.adapter().process_gone(of_b);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_TRUE(completed(a->poll_recv(), 2, WcStatus::wr_flush_err));
  EXPECT_EQ(a->qp().state(), QpState::err);
  EXPECT_TRUE(a_nic.async_events().empty()) << "the failed request says it";
}

// ibv_uc_pingpong polls its last message together with what would be flushed.
TEST_F(TwoUsers, the_peers_end_leaves_an_unreliable_connection) {
  connect_hosts({.type = QpType::uc}, {.type = QpType::uc});
  ASSERT_EQ(b->recv(2), PostResult::ok);
  b_nic.adapter().process_gone(of_a);
  EXPECT_EQ(b->qp().state(), QpState::rts);
  EXPECT_FALSE(b->poll_recv());
  EXPECT_TRUE(b_nic.async_events().empty());
}

TEST_F(TwoUsers, the_end_of_a_silent_peer_is_an_event) {
  connect_hosts();
  ASSERT_EQ(b->recv(2), PostResult::ok);
  b_nic.adapter().process_gone(of_a);
  EXPECT_TRUE(completed(b->poll_recv(), 2, WcStatus::wr_flush_err));
  const auto events = b_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event, AsyncEvent::qp_fatal);
  b_nic.adapter().process_gone(of_a);
  EXPECT_TRUE(b_nic.async_events().empty());
}

TEST_F(TwoUsers, datagrams_name_queue_pairs_of_their_own_process) {
  constexpr std::uint32_t qkey = 0x1234;
  Endpoint sender{a_nic, {.type = QpType::ud, .qkey = qkey}},
      receiver{b_nic, {.type = QpType::ud, .qkey = qkey}};
  for (Endpoint* end : {&sender, &receiver}) end->to_rts(Qpn());
  Memory into{b_nic, 4096};
  DatagramPath path;
  path.grh = write_grh({.source = a_gid, .destination = b_gid, .traffic_class = 0, .hop_limit = 1});
  a_nic.known_process = of_b;
  from.fill(1);
  ASSERT_EQ(receiver.recv(5, {into.all()}), PostResult::ok);
  const SendRequest request{.wr_id = 1,
                            .opcode = SendOpcode::send,
                            .flags = send_flag::signaled,
                            .datagram = {receiver.qpn(), qkey, &path}};
  ASSERT_EQ(sender.post(request, {from.all()}), PostResult::ok);
  ASSERT_EQ(wire.size(), 1u);
  const OnWire good = wire.front();
  wire.clear();
  OnWire of_another_slot = good;
  of_another_slot.slot = b_nic.slot();
  deliver(of_another_slot);
  b_nic.foreign = a_gid;
  deliver(good);
  EXPECT_FALSE(receiver.poll_recv()) << "it was believed who it says it is from";
  b_nic.foreign = {};
  deliver(good);
  const auto received = receiver.poll_recv();
  ASSERT_TRUE(completed(received, 5));
  EXPECT_EQ(received->src_qpn, sender.qpn().value());
  EXPECT_EQ(into.part(grh_bytes, 64), from.part(0, 64));
}

TEST_F(TwoUsers, a_datagram_to_a_group_goes_to_each_process_that_is_in_it) {
  constexpr std::uint32_t qkey = 0x1234;
  constexpr std::uint64_t third = 44;
  constexpr Gid group = {0xff, 0x15, 1}, other_group = {0xff, 0x15, 2};
  Endpoint sender{a_nic, {.type = QpType::ud, .qkey = qkey}},
      receiver{b_nic, {.type = QpType::ud, .qkey = qkey}},
      elsewhere{b_nic, {.type = QpType::ud, .qkey = qkey}};
  for (Endpoint* end : {&sender, &receiver, &elsewhere}) end->to_rts(Qpn());
  Memory into{b_nic, 4096}, unused{b_nic, 4096};
  DatagramPath path;
  path.group = group;
  path.grh = write_grh({.source = a_gid, .destination = group, .traffic_class = 0, .hop_limit = 1});
  a_nic.members[group] = {of_b, third};
  from.fill(1);
  ASSERT_EQ(receiver.recv(5, {into.all()}), PostResult::ok);
  ASSERT_EQ(elsewhere.recv(6, {unused.all()}), PostResult::ok);
  const SendRequest request{.wr_id = 1,
                            .opcode = SendOpcode::send,
                            .flags = send_flag::signaled,
                            .datagram = {multicast_destination, qkey, &path}};
  ASSERT_EQ(sender.post(request, {from.all()}), PostResult::ok);
  EXPECT_TRUE(completed(sender.poll_send(), 1));
  ASSERT_EQ(wire.size(), 2u) << "one for each process, and none to another host";
  const OnWire good = wire.front();
  wire.clear();
  // The test's NICs are neighbours too, so that nobody was attached before.
  auto& groups = b_nic.adapter().multicast();
  ASSERT_EQ(groups.attach(receiver.qpn().index(), group), MulticastGroups::Attached::ok);
  ASSERT_EQ(groups.attach(elsewhere.qpn().index(), other_group), MulticastGroups::Attached::ok);
  OnWire of_another_slot = good;
  of_another_slot.slot = b_nic.slot();
  deliver(of_another_slot);
  b_nic.foreign = a_gid;
  deliver(good);
  EXPECT_FALSE(receiver.poll_recv()) << "it was believed who it says it is from";
  b_nic.foreign = {};
  deliver(good);
  const auto received = receiver.poll_recv();
  ASSERT_TRUE(completed(received, 5));
  EXPECT_EQ(received->src_qpn, sender.qpn().value());
  EXPECT_EQ(into.part(grh_bytes, 64), from.part(0, 64));
  EXPECT_FALSE(elsewhere.poll_recv());
}

}  // namespace
}  // namespace weir::rnic::test
