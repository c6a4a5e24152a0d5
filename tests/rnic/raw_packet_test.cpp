// Raw packet queue pairs: which one gets a frame, and what happens to frames that none gets.
#include "frames.hpp"
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

// A match on some fields: those that are set in `value`.
FlowMatch match_on(const FrameKey& value, std::uint32_t priority = 0) {
  FlowMatch match{priority, words_of(value), {}};
  auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(FrameKey)>>(value);
  for (std::uint8_t& byte : bytes) byte = byte != 0 ? 0xff : 0;
  match.mask = std::bit_cast<FrameWords>(bytes);
  return match;
}
FlowMatch to_mac(std::uint8_t last, std::uint32_t priority = 0) {
  FrameKey value{};
  value.destination_mac[5] = last;
  return match_on(value, priority);
}

class RawPacket : public TwoNics {
 protected:
  static std::unique_ptr<Endpoint> end(Nic& nic) {
    auto made = std::make_unique<Endpoint>(nic, EndpointOptions{.type = QpType::raw_packet});
    made->to_rts(Qpn());
    return made;
  }
  static std::uint32_t steer(Endpoint& to, const FlowMatch& match) {
    const auto rule = to.nic().adapter().steering().add(to.qpn().index(), match);
    EXPECT_TRUE(rule);
    return rule.value_or(0);
  }
  void feed(Endpoint& to, Memory& buffer, int receives = 4) {
    for (int id = 0; id < receives; ++id)
      ASSERT_EQ(to.recv(static_cast<std::uint64_t>(id), {buffer.all()}), PostResult::ok);
  }
  // Sends the frame from `by` and expects the sender's own completion.
  void send(Endpoint& by, const std::vector<std::byte>& bytes, WcStatus status = WcStatus::success) {
    Memory from(by.nic(), std::max<std::size_t>(bytes.size(), 1));
    std::copy(bytes.begin(), bytes.end(), from.data());
    ASSERT_EQ(by.send(5, from.sge(0, bytes.size())), PostResult::ok);
    EXPECT_TRUE(completed(by.poll_send(), 5, status));
  }
  static int received(Endpoint& end) {
    int count = 0;
    while (const auto wc = end.poll_recv()) count += wc->status == WcStatus::success;
    return count;
  }

  Memory into{b_nic, 8192}, into_a{a_nic, 8192};
};

TEST_F(RawPacket, arrive_whole_at_the_queue_pair_whose_rule_they_match_and_nowhere_else) {
  auto sender = end(a_nic), wanted = end(b_nic), other = end(b_nic), without_rule = end(b_nic);
  steer(*wanted, to_mac(0x20));
  steer(*other, to_mac(0x21));
  for (Endpoint* endpoint : {wanted.get(), other.get(), without_rule.get()}) feed(*endpoint, into);
  const std::vector<std::byte> bytes = frame();
  send(*sender, bytes);
  const auto wc = wanted->poll_recv();
  ASSERT_TRUE(completed(wc, 0));
  EXPECT_EQ(wc->opcode, WcOpcode::recv);
  EXPECT_EQ(wc->byte_len, bytes.size());
  EXPECT_FALSE(wc->has_grh);
  EXPECT_FALSE(wc->has_imm);
  EXPECT_EQ(into.part(0, bytes.size()), bytes);
  EXPECT_EQ(received(*other), 0);
  EXPECT_EQ(received(*without_rule), 0);
}

TEST_F(RawPacket, reach_every_process_that_asks_for_them_the_senders_own_included) {
  auto sender = end(a_nic), own = end(a_nic), first = end(b_nic), second = end(b_nic);
  feed(*own, into_a);
  for (Endpoint* endpoint : {first.get(), second.get()}) feed(*endpoint, into);
  for (Endpoint* endpoint : {own.get(), first.get(), second.get()}) steer(*endpoint, to_mac(0x20));
  send(*sender, frame());
  for (Endpoint* endpoint : {own.get(), first.get(), second.get()}) EXPECT_EQ(received(*endpoint), 1);
}

TEST_F(RawPacket, go_to_the_rules_of_the_first_priority_that_matches) {
  auto sender = end(a_nic), general = end(b_nic), special = end(b_nic);
  feed(*general, into);
  feed(*special, into);
  steer(*general, to_mac(0x20, 5));
  FrameKey both{};
  both.destination_mac[5] = 0x20;
  both.source_ip[3] = 9;
  steer(*special, match_on(both, 1));
  send(*sender, frame({.host = 9}));
  EXPECT_EQ(received(*special), 1);
  EXPECT_EQ(received(*general), 0);
  send(*sender, frame({.host = 8}));
  EXPECT_EQ(received(*special), 0);
  EXPECT_EQ(received(*general), 1);
}

TEST_F(RawPacket, match_on_each_field_of_a_rule) {
  struct Row {
    FrameShape other;  // differs from a plain frame in one field
    FrameKey rule;     // matches a plain frame, not that
  };
  const FrameKey plain = frame_key(frame());
  const auto only = [&](auto member) {
    FrameKey key{};
    std::memcpy(&(key.*member), &(plain.*member), sizeof(key.*member));
    return key;
  };
  const Row rows[] = {{{.destination = 1}, only(&FrameKey::destination_mac)},
                      {{.source = 1}, only(&FrameKey::source_mac)},
                      {{.ip = 6}, only(&FrameKey::ip_version)},
                      {{.protocol = 6}, only(&FrameKey::protocol)},
                      {{.host = 4}, only(&FrameKey::source_ip)},
                      {{.source_port = 5}, only(&FrameKey::source_port_be)},
                      {{.destination_port = 5}, only(&FrameKey::destination_port_be)}};
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows);
    auto sender = end(a_nic), receiver = end(b_nic);
    feed(*receiver, into);
    const std::uint32_t rule = steer(*receiver, match_on(row.rule));
    send(*sender, frame());
    EXPECT_EQ(received(*receiver), 1);
    send(*sender, frame(row.other));
    EXPECT_EQ(received(*receiver), 0);
    b_nic.adapter().steering().remove(rule);
  }
}

TEST_F(RawPacket, are_lost_where_no_receive_waits_and_after_their_rule_is_gone) {
  auto sender = end(a_nic), receiver = end(b_nic);
  const std::uint32_t rule = steer(*receiver, to_mac(0x20));
  send(*sender, frame());
  feed(*receiver, into);
  EXPECT_EQ(received(*receiver), 0) << "it was lost before";
  send(*sender, frame());
  EXPECT_EQ(received(*receiver), 1);
  b_nic.adapter().steering().remove(rule);
  send(*sender, frame());
  EXPECT_EQ(received(*receiver), 0);
}

TEST_F(RawPacket, rules_go_with_their_queue_pair) {
  auto sender = end(a_nic), heir = end(b_nic);
  feed(*heir, into);
  {
    auto leaver = end(b_nic);
    steer(*leaver, to_mac(0x20, 0));
  }
  steer(*heir, to_mac(0x20, 1));
  send(*sender, frame());
  EXPECT_EQ(received(*heir), 1) << "a rule of nobody's would have come first";
}

TEST_F(RawPacket, that_are_no_frames_are_length_errors) {
  struct Row {
    std::size_t bytes;
    WcStatus status;
  };
  for (const Row& row :
       {Row{13, WcStatus::loc_len_err}, Row{14, WcStatus::success}, Row{max_frame_bytes, WcStatus::success},
        Row{max_frame_bytes + 1, WcStatus::loc_len_err}}) {
    SCOPED_TRACE(row.bytes);
    auto sender = end(a_nic);
    send(*sender, std::vector<std::byte>(row.bytes, std::byte{2}), row.status);
    EXPECT_EQ(sender->qp().state(), row.status == WcStatus::success ? QpState::rts : QpState::sqe);
  }
}

TEST_F(RawPacket, longer_than_the_receive_complete_it_with_a_length_error) {
  auto sender = end(a_nic), receiver = end(b_nic);
  steer(*receiver, to_mac(0x20));
  ASSERT_EQ(receiver->recv(3, {into.sge(0, 30)}), PostResult::ok);
  send(*sender, frame());
  EXPECT_TRUE(completed(receiver->poll_recv(), 3, WcStatus::loc_len_err));
}

TEST_F(RawPacket, are_sent_and_nothing_else_is) {
  auto sender = end(a_nic);
  Memory memory(a_nic, 64);
  for (const SendOpcode opcode :
       {SendOpcode::send_with_imm, SendOpcode::rdma_write, SendOpcode::rdma_read, SendOpcode::fetch_and_add})
    EXPECT_EQ(sender->post({.opcode = opcode}, {memory.all()}), PostResult::bad_opcode);
}

TEST_F(RawPacket, rules_are_bounded) {
  auto receiver = end(b_nic);
  Steering& steering = b_nic.adapter().steering();
  for (std::uint32_t i = 0; i < max_steering_rules; ++i)
    steer(*receiver, to_mac(static_cast<std::uint8_t>(i % 255 + 1)));
  EXPECT_FALSE(steering.add(receiver->qpn().index(), to_mac(1)));
  steering.remove(17);
  EXPECT_EQ(steering.add(receiver->qpn().index(), to_mac(1)), 17u);
}

}  // namespace
}  // namespace weir::rnic::test
