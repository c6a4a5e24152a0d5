// Unreliable connections whose peer is on another host: a message that arrives is whole, in order, and comes
// once; a message that does not arrive is lost silently and harms no other.
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

class UnreliableHosts : public TwoHosts {
 protected:
  void SetUp() override { connect_hosts({.type = QpType::uc}, {.type = QpType::uc}); }

  Memory from{a_nic, 1u << 20, all_access, Reach::mapped}, to{b_nic, 1u << 20, all_access, Reach::mapped};
};

struct Kind {
  const char* name;
  SendOpcode opcode;
};
constexpr Kind kinds[] = {{"send", SendOpcode::send},
                          {"send_with_imm", SendOpcode::send_with_imm},
                          {"write", SendOpcode::rdma_write},
                          {"write_with_imm", SendOpcode::rdma_write_with_imm}};

class EachKind : public UnreliableHosts, public testing::WithParamInterface<Kind> {
 protected:
  bool writes() const {
    return GetParam().opcode == SendOpcode::rdma_write ||
           GetParam().opcode == SendOpcode::rdma_write_with_imm;
  }
  bool takes_receive() const { return GetParam().opcode != SendOpcode::rdma_write; }
  bool has_imm() const {
    return GetParam().opcode == SendOpcode::send_with_imm ||
           GetParam().opcode == SendOpcode::rdma_write_with_imm;
  }
  PostResult post_message(std::uint64_t id, std::size_t offset, std::size_t size) {
    return a->post({.wr_id = id,
                    .opcode = GetParam().opcode,
                    .flags = send_flag::signaled,
                    .imm_be = static_cast<std::uint32_t>(id),
                    .remote_addr = to.addr() + offset,
                    .rkey = to.key()},
                   {from.sge(offset, size)});
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, EachKind, testing::ValuesIn(kinds),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_P(EachKind, delivers_every_size_and_is_complete_when_it_is_sent) {
  for (const std::size_t size : {0, 1, 3, 4, 1023, 1024, 1025, 2048, 4097, 65'537, 300'000}) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    to.clear();
    if (takes_receive()) {
      ASSERT_EQ(b->recv(size, {to.sge(0, 5), to.sge(5, to.size() - 5)}), PostResult::ok);
    }
    ASSERT_EQ(post_message(size + 1, 0, size), PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), size + 1));
    carry();
    const auto received = b->poll_recv();
    ASSERT_EQ(received.has_value(), takes_receive());
    if (received) {
      EXPECT_TRUE(completed(received, size));
      EXPECT_EQ(received->opcode, writes() ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv);
      EXPECT_EQ(received->byte_len, size);
      EXPECT_EQ(received->has_imm, has_imm());
      if (has_imm()) {
        EXPECT_EQ(received->imm_be, size + 1);
      }
    }
    EXPECT_EQ(to.part(0, size), from.part(0, size));
    EXPECT_EQ(to.data()[size], std::byte{0}) << "wrote behind the message";
  }
  EXPECT_TRUE(wire.empty()) << "something was answered";
}

constexpr std::uint64_t messages = 3, packets_each = 4, bytes_each = (packets_each - 1) * 1024 + 100;

// What the network does to each packet in turn, and which messages survive.
TEST_P(EachKind, loses_the_message_of_a_lost_packet_and_no_other) {
  for (std::uint64_t lost = 0; lost < messages * packets_each; ++lost) {
    SCOPED_TRACE(lost);
    std::uint64_t sent = 0;
    drop = [&](const OnWire&) { return sent++ == lost; };
    from.fill(static_cast<std::uint32_t>(lost));
    to.clear();
    for (std::uint64_t i = 0; i < messages; ++i) {
      if (takes_receive()) {
        ASSERT_EQ(b->recv(i, {to.sge(i * bytes_each, bytes_each)}), PostResult::ok);
      }
      ASSERT_EQ(post_message(i, i * bytes_each, bytes_each), PostResult::ok);
    }
    carry();
    drop = nullptr;
    std::uint64_t receive = 0;
    for (std::uint64_t i = 0; i < messages; ++i) {
      ASSERT_TRUE(completed(a->poll_send(), i)) << "whoever sends does not know";
      if (i == lost / packets_each) continue;
      // The receives are taken in their order, by the messages that come.
      const std::uint64_t place = writes() ? i : receive;
      EXPECT_EQ(to.part(place * bytes_each, bytes_each), from.part(i * bytes_each, bytes_each));
      if (!takes_receive()) continue;
      const auto received = b->poll_recv();
      ASSERT_TRUE(completed(received, receive++));
      EXPECT_EQ(received->byte_len, bytes_each);
      if (has_imm()) {
        EXPECT_EQ(received->imm_be, i);
      }
    }
    EXPECT_FALSE(b->poll_recv());
    EXPECT_EQ(b->qp().state(), QpState::rts);
    if (!takes_receive()) continue;
    // One receive is left, and the next message has it.
    ASSERT_EQ(post_message(9, 0, 8), PostResult::ok);
    carry();
    EXPECT_TRUE(completed(a->poll_send(), 9));
    EXPECT_TRUE(completed(b->poll_recv(), receive));
  }
}

TEST_P(EachKind, takes_a_packet_that_comes_twice_once) {
  for (std::uint64_t i = 0; i < messages; ++i) {
    if (takes_receive()) {
      ASSERT_EQ(b->recv(i, {to.sge(i * bytes_each, bytes_each)}), PostResult::ok);
    }
    ASSERT_EQ(post_message(i, i * bytes_each, bytes_each), PostResult::ok);
  }
  from.fill(3);
  std::optional<OnWire> earlier;
  while (!wire.empty()) {
    const OnWire packet = std::move(wire.front());
    wire.pop_front();
    deliver(packet);
    deliver(packet);
    if (earlier) deliver(*earlier);
    earlier = packet;
  }
  std::uint64_t received = 0;
  while (b->poll_recv()) ++received;
  EXPECT_EQ(received, takes_receive() ? messages : 0);
  EXPECT_EQ(b->qp().counters().requests_repeated.read(), 2 * messages * packets_each - 1);
}

TEST_P(EachKind, is_lost_where_no_receive_is_posted_and_the_next_is_not) {
  if (!takes_receive()) GTEST_SKIP() << "it takes none";
  ASSERT_EQ(post_message(1, 0, bytes_each), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 1));
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  ASSERT_EQ(post_message(2, 0, bytes_each), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(completed(b->poll_recv(), 7));
  EXPECT_FALSE(b->poll_recv());
  // The bytes of a WRITE are taken before its end finds no receive.
  EXPECT_EQ(b->qp().counters().requests_dropped.read(), writes() ? 1 : packets_each);
}

// IBA 9.9.3.1, class D: the message is dropped silently.
TEST_F(UnreliableHosts, a_refused_message_is_dropped_and_its_receive_waits_for_the_next) {
  ASSERT_EQ(b->recv(5, {to.sge(0, 100)}), PostResult::ok);
  ASSERT_EQ(a->write(1, from.sge(0, 64), to.addr(), to.key() + 1), PostResult::ok);
  ASSERT_EQ(a->write(2, from.sge(0, 5000), to.addr() + to.size() - 1, to.key()), PostResult::ok);
  ASSERT_EQ(a->send(3, from.sge(0, 5000)), PostResult::ok);
  carry();
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_TRUE(completed(a->poll_send(), id));
  EXPECT_FALSE(b->poll_recv());
  from.fill(4);
  ASSERT_EQ(a->send(4, from.sge(0, 80)), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 4));
  EXPECT_TRUE(completed(b->poll_recv(), 5));
  EXPECT_EQ(to.part(0, 80), from.part(0, 80));
  EXPECT_EQ(a->qp().state(), QpState::rts);
  EXPECT_EQ(b->qp().state(), QpState::rts);
  EXPECT_TRUE(b_nic.async_events().empty());
}

TEST_F(UnreliableHosts, a_send_queue_that_failed_goes_on_when_it_was_repaired) {
  ASSERT_EQ(b->recv(5, {to.all()}), PostResult::ok);
  Sge wrong = from.sge(0, 64);
  wrong.lkey += 1;
  ASSERT_EQ(a->send(1, wrong), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
  EXPECT_EQ(a->qp().state(), QpState::sqe);
  ASSERT_EQ(a->send(2, from.sge(0, 64)), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::wr_flush_err));
  ASSERT_TRUE(a->modify(QpState::rts));
  ASSERT_EQ(a->send(3, from.sge(0, 64)), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 3));
  EXPECT_TRUE(completed(b->poll_recv(), 5));
}

TEST_F(UnreliableHosts, packets_of_a_stranger_or_of_another_service_change_nothing) {
  ASSERT_EQ(b->recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(1, from.sge(0, 64)), PostResult::ok);
  ASSERT_EQ(wire.size(), 1u);
  const OnWire sound = wire.front();
  wire.clear();
  OnWire stranger = sound;
  stranger.source = gid_of(9);
  sign(stranger);
  deliver(stranger);
  OnWire reliable = sound;
  reliable.bytes[0] = static_cast<std::byte>(wire::opcode(wire::Service::rc, wire::Operation::send_only));
  sign(reliable);
  deliver(reliable);
  EXPECT_FALSE(b->poll_recv());
  EXPECT_TRUE(wire.empty());
  deliver(sound);
  EXPECT_TRUE(completed(b->poll_recv(), 5));
}

// A forged packet far ahead costs what is on its way, not the connection.
TEST_F(UnreliableHosts, messages_go_on_behind_a_packet_whose_number_is_far_away) {
  for (const std::uint32_t away : {1u, 70'000u, 0x7fffffu, 0x800000u, 0xfe0000u}) {
    SCOPED_TRACE(away);
    ASSERT_EQ(b->recv(5, {to.all()}), PostResult::ok);
    ASSERT_EQ(a->send(1, from.sge(0, 64)), PostResult::ok);
    ASSERT_EQ(wire.size(), 1u);
    OnWire forged = wire.front();
    wire.clear();
    std::uint32_t psn = 0;
    for (std::size_t i = 9; i < 12; ++i) psn = psn << 8 | std::to_integer<std::uint32_t>(forged.bytes[i]);
    psn = (psn + away) & 0xffffff;
    for (std::size_t i = 0; i < 3; ++i) forged.bytes[9 + i] = static_cast<std::byte>(psn >> (16 - 8 * i));
    sign(forged);
    deliver(forged);
    EXPECT_TRUE(completed(b->poll_recv(), 5));
    (void)a->poll_send();
    std::uint64_t tries = 0;
    ASSERT_EQ(b->recv(6, {to.all()}), PostResult::ok);
    for (; !b->poll_recv() && tries < 70'000; ++tries) {
      ASSERT_EQ(a->send(2, from.sge(0, 1)), PostResult::ok);
      carry();
      (void)a->poll_send();
    }
    EXPECT_LE(tries, away < 65'536 ? away + 1 : 1);
  }
}

}  // namespace
}  // namespace weir::rnic::test
