// Extended reliable connections whose ends are on two hosts: as on one host, each request acts on the SRQ
// that it names, which may belong to another process than the queue pair.
#include "two_hosts.hpp"
#include "xrc_ends.hpp"

namespace weir::rnic::test {
namespace {

const std::vector<std::size_t> sizes = {0, 1, 3, 4, 1023, 1024, 1025, 4097, 65'537, 150'000};

// The owner of the SRQs, and how the queue pair's process reaches their memory.
enum class Owner : std::uint8_t { own_process, another_mapped, another_copied };

// A sender on a; a target on b; two SRQs on b, or in another process of b's host.
class XrcHosts : public TwoHosts {
 protected:
  explicit XrcHosts(Owner owner = Owner::own_process)
      : c_nic(host.add_nic()),
        owner_nic(owner == Owner::own_process ? b_nic : c_nic),
        reach(owner == Owner::another_copied ? Reach::copied : Reach::mapped) {}

  XrcPaths paths() const { return {path_from_a(), path_from_b()}; }
  // To `into`, or from there, at the same offset as in `from`.
  PostResult post(XrcPair& pair, SendOpcode opcode, XrcReceiver& at, std::size_t bytes,
                  std::uint64_t id = 1) {
    return pair.post(
        {.wr_id = id, .opcode = opcode, .imm_be = 77, .remote_addr = into.addr(), .rkey = into.key()},
        at.srq->number(), {from.sge(0, bytes)});
  }
  // All that waits on the wire reaches its destination in one batch.
  void deliver_at_once() {
    const std::vector<OnWire> packets(wire.begin(), wire.end());
    wire.clear();
    std::vector<PacketDatagram> datagrams;
    for (const OnWire& each : packets) datagrams.push_back(datagram_of(each));
    b_nic.adapter().take_packets(datagrams);
  }

  Nic& c_nic;
  Nic& owner_nic;
  const Reach reach;
  XrcReceiver first{owner_nic}, second{owner_nic};
  Memory from{a_nic, 200'000, all_access, Reach::mapped}, into{owner_nic, 200'000, all_access, reach};
};

class EachOwner : public XrcHosts, public testing::WithParamInterface<Owner> {
 protected:
  EachOwner() : XrcHosts(GetParam()) {}
};
std::string name_of(Owner owner) {
  if (owner == Owner::own_process) return "own_process";
  return owner == Owner::another_mapped ? "another_mapped" : "another_copied";
}
INSTANTIATE_TEST_SUITE_P(Owners, EachOwner,
                         testing::Values(Owner::own_process, Owner::another_mapped, Owner::another_copied),
                         [](const auto& param_info) { return name_of(param_info.param); });

TEST_P(EachOwner, a_send_of_every_size_goes_into_the_srq_that_it_names) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  std::uint64_t id = 0;
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    into.clear();
    XrcReceiver& receiver = ++id % 2 == 0 ? first : second;
    XrcReceiver& other = id % 2 == 0 ? second : first;
    receiver.post(id, into.all());
    ASSERT_EQ(post(pair, SendOpcode::send_with_imm, receiver, size, 9), PostResult::ok);
    EXPECT_FALSE(pair.poll()) << "complete before it was acknowledged";
    carry();
    ASSERT_TRUE(completed(pair.poll(), 9));
    const auto wc = receiver.poll();
    ASSERT_TRUE(completed(wc, id));
    EXPECT_EQ(wc->byte_len, size);
    EXPECT_EQ(wc->qpn, pair.target->qpn().value());
    EXPECT_EQ(wc->src_qpn, pair.sender->qpn().value());
    EXPECT_EQ(wc->imm_be, 77u);
    EXPECT_EQ(into.part(0, size), from.part(0, size));
    EXPECT_EQ(into.data()[size], std::byte{0}) << "wrote behind the message";
    EXPECT_FALSE(other.poll());
  }
}

TEST_P(EachOwner, write_and_read_move_every_size) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size) + 9);
    into.clear();
    const auto sent = from.part(0, size);
    ASSERT_EQ(post(pair, SendOpcode::rdma_write, first, size), PostResult::ok);
    carry();
    ASSERT_TRUE(completed(pair.poll(), 1));
    EXPECT_EQ(into.part(0, size), sent);
    from.clear();
    ASSERT_EQ(post(pair, SendOpcode::rdma_read, second, size, 2), PostResult::ok);
    carry();
    ASSERT_TRUE(completed(pair.poll(), 2));
    EXPECT_EQ(from.part(0, size), sent);
    EXPECT_EQ(from.data()[size], std::byte{0});
  }
  EXPECT_FALSE(first.poll());
  EXPECT_FALSE(second.poll());
}

TEST_P(EachOwner, a_write_with_immediate_takes_a_receive_behind_its_bytes) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  from.fill(3);
  second.post(4, into.sge(0, 0));
  ASSERT_EQ(post(pair, SendOpcode::rdma_write_with_imm, second, 5000), PostResult::ok);
  carry();
  ASSERT_TRUE(completed(pair.poll(), 1));
  const auto wc = second.poll();
  ASSERT_TRUE(completed(wc, 4));
  EXPECT_EQ(wc->opcode, WcOpcode::recv_rdma_with_imm);
  EXPECT_EQ(wc->byte_len, 5000u);
  EXPECT_EQ(into.part(0, 5000), from.part(0, 5000));
}

TEST_P(EachOwner, an_atomic_happens_once_whatever_packet_is_lost) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  into.clear();
  for (std::uint64_t lost = 0; lost < 4; ++lost) {
    SCOPED_TRACE(lost);
    std::uint64_t sent = 0;
    drop = [&](const OnWire&) { return sent++ == lost; };
    for (std::uint64_t i = 0; i < 2; ++i) {
      ASSERT_EQ(pair.post({.wr_id = i,
                           .opcode = SendOpcode::fetch_and_add,
                           .remote_addr = into.addr(),
                           .rkey = into.key(),
                           .atomic = {.compare_add = 3, .swap = 0}},
                          first.srq->number(), {from.sge(8 * i, 8)}),
                PostResult::ok);
    }
    for (std::uint64_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(carry_until([&] { return pair.cq->unpolled() != 0; }));
      ASSERT_TRUE(completed(pair.poll(), i));
    }
    std::uint64_t now = 0;
    std::memcpy(&now, into.data(), sizeof now);
    EXPECT_EQ(now, 6 * (lost + 1));
  }
}

TEST_P(EachOwner, each_message_arrives_once_whatever_packet_is_lost) {
  constexpr std::size_t bytes = 3 * 1024 + 100, messages = 3;
  for (std::uint64_t lost = 0; lost < 16; ++lost) {
    SCOPED_TRACE(lost);
    XrcPair pair(a_nic, b_nic, 7, paths());
    std::uint64_t sent = 0;
    drop = [&](const OnWire&) { return sent++ == lost; };
    for (std::uint64_t i = 0; i < messages; ++i) {
      XrcReceiver& receiver = i % 2 == 0 ? first : second;
      receiver.post(i, into.sge(i * bytes, bytes));
      ASSERT_EQ(pair.post({.wr_id = i}, receiver.srq->number(), {from.sge(i * bytes, bytes)}),
                PostResult::ok);
    }
    ASSERT_TRUE(carry_until([&] { return pair.cq->unpolled() == messages; }));
    Endpoint::drain(*pair.cq);
    for (std::uint64_t i = 0; i < messages; ++i)
      EXPECT_TRUE(completed((i % 2 == 0 ? first : second).poll(), i));
    EXPECT_EQ(into.part(0, messages * bytes), from.part(0, messages * bytes));
  }
}

TEST_P(EachOwner, a_message_waits_for_a_receive_of_its_srq) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  from.fill(4);
  second.post(1, into.sge(0, 64));
  ASSERT_EQ(post(pair, SendOpcode::send, first, 2000), PostResult::ok);
  carry();
  EXPECT_FALSE(pair.poll());
  EXPECT_FALSE(second.poll());
  first.post(5, into.all());
  ASSERT_TRUE(carry_until([&] { return pair.cq->unpolled() != 0; }));
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(first.poll(), 5));
}

TEST_P(EachOwner, polling_the_cq_of_an_srq_looks_for_packets) {
  XrcReceiver early(b_nic);  // made before the connection, and one of its domain; the pair's first is, too
  b_nic.on_look = [&](const HostPort::PacketSink& sink) {
    const std::deque<OnWire> came = std::exchange(wire, {});
    for (const OnWire& packet : came) {
      const PacketDatagram datagram = datagram_of(packet);
      sink({&datagram, 1});
    }
  };
  Memory landing(b_nic, 4096);
  EXPECT_FALSE(early.poll());
  {
    XrcPair pair(a_nic, b_nic, 7, paths());
    XrcReceiver late(b_nic);
    for (XrcReceiver* receiver : {&early, &late}) {
      receiver->post(5, landing.all());
      ASSERT_EQ(post(pair, SendOpcode::send, *receiver, 64), PostResult::ok);
      EXPECT_FALSE(receiver->poll()) << "the poll that looks";
      EXPECT_TRUE(completed(receiver->poll(), 5));
      carry();
      EXPECT_TRUE(completed(pair.poll(), 1));
    }
  }
  bool looked = false;
  b_nic.on_look = [&](const HostPort::PacketSink&) { looked = true; };
  EXPECT_FALSE(early.poll());
  EXPECT_FALSE(looked) << "no queue pair is left whose packets could come";
}

// The answer to the READ leaves when the SEND behind it has already begun.
TEST_P(EachOwner, a_read_through_one_srq_disturbs_no_send_to_another) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  Memory result(a_nic, 4096, all_access, Reach::mapped);
  from.fill(8);
  into.fill(9);
  const auto expected = into.part(100'000, 3000);
  second.post(5, into.sge(0, 50'000));
  ASSERT_EQ(pair.post({.wr_id = 1,
                       .opcode = SendOpcode::rdma_read,
                       .remote_addr = into.addr() + 100'000,
                       .rkey = into.key()},
                      first.srq->number(), {result.sge(0, 3000)}),
            PostResult::ok);
  ASSERT_EQ(post(pair, SendOpcode::send, second, 50'000, 2), PostResult::ok);
  ASSERT_GT(wire.size(), 3u);
  const OnWire rest = wire.back();
  wire.pop_back();
  deliver_at_once();
  wire.push_back(rest);
  ASSERT_TRUE(carry_until([&] { return pair.cq->unpolled() == 2; }));
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(pair.poll(), 2));
  EXPECT_EQ(result.part(0, 3000), expected);
  const auto wc = second.poll();
  ASSERT_TRUE(completed(wc, 5));
  EXPECT_EQ(into.part(0, 50'000), from.part(0, 50'000));
}

TEST_P(EachOwner, an_srq_that_is_destroyed_in_the_middle_of_a_message_gets_no_more_of_it) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  auto temporary = std::make_unique<XrcReceiver>(owner_nic);
  from.fill(8);
  into.clear();
  temporary->post(1, into.all());
  ASSERT_EQ(post(pair, SendOpcode::send, *temporary, 3000), PostResult::ok);
  ASSERT_EQ(wire.size(), 3u);
  deliver(wire.front());
  wire.pop_front();
  EXPECT_EQ(into.part(0, 1024), from.part(0, 1024));
  temporary.reset();
  ASSERT_TRUE(carry_until([&] { return pair.cq->unpolled() != 0; }));
  EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::rem_inv_req_err));
  EXPECT_EQ(into.part(1024, 2000), std::vector<std::byte>(2000));
  EXPECT_EQ(pair.target->state(), QpState::err);
}

TEST_F(XrcHosts, a_number_that_is_no_srq_of_the_domain_is_an_invalid_request) {
  XrcReceiver elsewhere(b_nic, xrc_domain + 1), foreign(c_nic, xrc_domain + 1);
  SharedReceiveQueue* plain = b_nic.adapter().create_srq(pd, 4, 1);
  for (const Qpn srqn : {elsewhere.srq->number(), foreign.srq->number(), plain->number(),
                         Qpn(b_nic.slot(), 999), Qpn(77, 1), Qpn()}) {
    SCOPED_TRACE(srqn.value());
    XrcPair pair(a_nic, b_nic, 7, paths());
    ASSERT_EQ(pair.post({.wr_id = 1}, srqn, {from.sge(0, 8)}), PostResult::ok);
    carry();
    EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::rem_inv_req_err));
    EXPECT_EQ(pair.target->state(), QpState::err);
  }
  b_nic.adapter().destroy(plain);
}

TEST_F(XrcHosts, keys_are_checked_in_the_protection_domain_of_the_srq) {
  XrcReceiver stranger(b_nic, xrc_domain, pd + 1);
  for (const SendOpcode opcode :
       {SendOpcode::rdma_write, SendOpcode::rdma_read, SendOpcode::fetch_and_add, SendOpcode::atomic_write}) {
    SCOPED_TRACE(static_cast<int>(opcode));
    XrcPair pair(a_nic, b_nic, 7, paths());
    ASSERT_EQ(post(pair, opcode, first, 8), PostResult::ok);
    carry();
    EXPECT_TRUE(completed(pair.poll(), 1));
    ASSERT_EQ(post(pair, opcode, stranger, 8), PostResult::ok);
    carry();
    EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::rem_access_err));
  }
}

TEST_F(XrcHosts, a_message_waits_for_the_connection_to_the_srqs_process) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  XrcReceiver far(c_nic);
  Memory memory(c_nic, 64);
  bool connected = false;
  b_nic.on_reach = [&](Slot slot) { return slot != c_nic.slot() || connected; };
  far.post(5, memory.sge(0, 64));
  ASSERT_EQ(post(pair, SendOpcode::send, far, 8), PostResult::ok);
  carry();
  EXPECT_FALSE(pair.poll());
  connected = true;
  ASSERT_TRUE(carry_until([&] { return pair.cq->unpolled() != 0; }));
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(far.poll(), 5));
}

// Packets that a stranger, or a peer that knows everything, may send instead of the second of a message.
TEST_F(XrcHosts, a_packet_that_does_not_fit_its_message_harms_no_memory) {
  constexpr std::size_t opcode_at = 0, srqn_at = 12;
  struct Row {
    const char* name;
    std::function<void(OnWire&)> change;
    bool refused;  // else it is as if it had not come
  };
  const Row rows[] = {
      {"of another service", [](OnWire& packet) { packet.bytes[opcode_at] &= std::byte{0x1f}; }, false},
      {"from another address", [](OnWire& packet) { packet.source = gid_of(9); }, false},
      {"for another SRQ",
       [&](OnWire& packet) {
         const std::uint32_t other = second.srq->number().value();
         for (unsigned i = 0; i < 4; ++i)
           packet.bytes[srqn_at + i] = static_cast<std::byte>(other >> (24 - 8 * i));
       },
       true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    wire.clear();
    XrcPair pair(a_nic, b_nic, 7, paths());
    from.fill(8);
    into.clear();
    first.post(5, into.sge(0, 100'000));
    second.post(6, into.sge(100'000, 100'000));
    ASSERT_EQ(post(pair, SendOpcode::send, first, 3000), PostResult::ok);
    ASSERT_EQ(wire.size(), 3u);
    deliver(wire.front());
    OnWire bad = wire[1];
    row.change(bad);
    sign(bad);
    deliver(bad);
    EXPECT_EQ(into.part(1024, 150'000), std::vector<std::byte>(150'000));
    EXPECT_EQ(pair.target->state(), row.refused ? QpState::err : QpState::rts);
    wire.pop_front();
    ASSERT_TRUE(carry_until([&] { return pair.cq->unpolled() != 0; }));
    EXPECT_TRUE(completed(pair.poll(), 1, row.refused ? WcStatus::rem_inv_req_err : WcStatus::success));
    const auto wc = first.poll();
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status == WcStatus::success, !row.refused);
    EXPECT_FALSE(second.poll()) << "the other SRQ lost a receive";
    wire.clear();
    XrcPair again(a_nic, b_nic, 7, paths());
    ASSERT_EQ(post(again, SendOpcode::send, second, 8), PostResult::ok);
    ASSERT_TRUE(carry_until([&] { return again.cq->unpolled() != 0; }));
    EXPECT_TRUE(completed(second.poll(), 6)) << "its next message has it";
  }
}

TEST_F(XrcHosts, a_sending_end_answers_no_request) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  from.fill(8);
  into.clear();
  ASSERT_EQ(post(pair, SendOpcode::rdma_write, first, 8), PostResult::ok);
  OnWire request = wire.front();
  wire.clear();
  // Turned around: to the queue pair that sent it.
  std::swap(request.source, request.destination);
  const std::uint32_t back = pair.sender->qpn().value();
  for (unsigned i = 0; i < 3; ++i) request.bytes[5 + i] = static_cast<std::byte>(back >> (16 - 8 * i));
  sign(request);
  deliver(request);
  EXPECT_TRUE(wire.empty());
  EXPECT_EQ(pair.sender->state(), QpState::rts);
}

class XrcUsers : public XrcHosts {
 protected:
  XrcUsers() {
    a_number = 12;
    b_number = 21;
  }
};

TEST_F(XrcUsers, the_ends_may_be_processes_of_two_users) {
  XrcPair pair(a_nic, b_nic, 7, paths());
  from.fill(5);
  first.post(5, into.all());
  ASSERT_EQ(post(pair, SendOpcode::send, first, 5000), PostResult::ok);
  OnWire of_the_network = wire.front();
  of_the_network.process = 0;
  sign(of_the_network);
  deliver(of_the_network);
  EXPECT_EQ(into.part(0, 64), std::vector<std::byte>(64)) << "a stranger was believed";
  carry();
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(first.poll(), 5));
  EXPECT_EQ(into.part(0, 5000), from.part(0, 5000));
  ASSERT_EQ(post(pair, SendOpcode::send, first, 5000), PostResult::ok);
  a_nic.adapter().process_gone(21);
  EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::retry_exc_err));
}

}  // namespace
}  // namespace weir::rnic::test
