// Queue pairs whose peer is on another host: two NICs connected only by packets, which a test may drop,
// change or invent. The decisions of the requester and responder belong to packet/, which has its own tests
// (tests/rnic/packet); here queues, completions, memory and errors must be as on one host.
#include <random>

#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

const std::vector<std::size_t> sizes = {0, 1, 3, 4, 1023, 1024, 1025, 2048, 4097, 65'537, 300'000};

TEST_F(TwoHosts, send_delivers_every_size) {
  connect_hosts();
  Memory from(a_nic, 1u << 20, all_access, Reach::mapped), to(b_nic, 1u << 20, all_access, Reach::mapped);
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    to.clear();
    ASSERT_EQ(b->recv(size, {to.sge(0, 5), to.sge(5, to.size() - 5)}), PostResult::ok);
    ASSERT_EQ(a->send(size + 1, from.sge(0, size)), PostResult::ok);
    EXPECT_FALSE(a->poll_send()) << "complete before it was acknowledged";
    carry();
    const auto received = b->poll_recv();
    ASSERT_TRUE(completed(received, size));
    EXPECT_EQ(received->opcode, WcOpcode::recv);
    EXPECT_EQ(received->byte_len, size);
    EXPECT_EQ(received->src_qpn, a->qpn().value());
    ASSERT_TRUE(completed(a->poll_send(), size + 1));
    EXPECT_EQ(to.part(0, size), from.part(0, size));
    EXPECT_EQ(to.data()[size], std::byte{0}) << "wrote behind the message";
  }
}

TEST_F(TwoHosts, write_and_read_move_every_size) {
  connect_hosts();
  Memory from(a_nic, 1u << 20, all_access, Reach::mapped), to(b_nic, 1u << 20, all_access, Reach::mapped);
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size) + 9);
    to.clear();
    const auto sent = from.part(0, size);
    ASSERT_EQ(a->write(1, from.sge(0, size), to.addr() + 8, to.key()), PostResult::ok);
    carry();
    ASSERT_TRUE(completed(a->poll_send(), 1));
    EXPECT_EQ(to.part(8, size), sent);
    from.clear();
    ASSERT_EQ(a->read(2, from.sge(0, size), to.addr() + 8, to.key()), PostResult::ok);
    carry();
    ASSERT_TRUE(completed(a->poll_send(), 2));
    EXPECT_EQ(from.part(0, size), sent);
    EXPECT_EQ(from.data()[size], std::byte{0});
    EXPECT_FALSE(b->poll_recv());
  }
}

TEST_F(TwoHosts, a_write_with_immediate_completes_a_receive_behind_its_bytes) {
  connect_hosts();
  Memory from(a_nic, 8192, all_access, Reach::mapped), to(b_nic, 8192, all_access, Reach::mapped);
  from.fill(1);
  ASSERT_EQ(b->recv(5), PostResult::ok);
  ASSERT_EQ(a->post({.wr_id = 6,
                     .opcode = SendOpcode::rdma_write_with_imm,
                     .flags = send_flag::signaled,
                     .imm_be = 0x01020304,
                     .remote_addr = to.addr(),
                     .rkey = to.key()},
                    {from.sge(0, 5000)}),
            PostResult::ok);
  carry();
  const auto received = b->poll_recv();
  ASSERT_TRUE(completed(received, 5));
  EXPECT_EQ(received->opcode, WcOpcode::recv_rdma_with_imm);
  EXPECT_EQ(received->imm_be, 0x01020304u);
  EXPECT_EQ(received->byte_len, 5000u);
  EXPECT_EQ(to.part(0, 5000), from.part(0, 5000));
  EXPECT_TRUE(completed(a->poll_send(), 6));
}

// Of two messages in one batch, the first one is answered while the second one is being copied.
TEST_F(TwoHosts, a_message_is_acknowledged_before_its_answer_is_sent) {
  connect_hosts();
  Endpoint other_a(a_nic), other_b(b_nic);
  connect_hosts(other_a, other_b);
  Memory memory(a_nic, 64, all_access, Reach::mapped), theirs(b_nic, 64, all_access, Reach::mapped);
  Memory copied(b_nic, 64, all_access, Reach::copied);
  ASSERT_EQ(b->recv(1, {theirs.all()}), PostResult::ok);
  ASSERT_EQ(a->recv(3, {memory.all()}), PostResult::ok);
  int copies = 0;
  host.on_copy = [&] {
    if (copies++ == 0) {
      EXPECT_EQ(b->send(4, theirs.all()), PostResult::ok);
    }
    return Peer::Transfer::done;
  };
  ASSERT_EQ(a->send(5, memory.all()), PostResult::ok);
  ASSERT_EQ(other_a.write(6, memory.all(), copied.addr(), copied.key()), PostResult::ok);
  const std::deque<OnWire> sent = std::exchange(wire, {});
  ASSERT_EQ(sent.size(), 2u);
  const std::array<PacketDatagram, 2> batch = {datagram_of(sent[0]), datagram_of(sent[1])};
  b_nic.adapter().take_packets(batch);

  ASSERT_EQ(copies, 1);
  bool acknowledged = false, answered = false;
  for (; !wire.empty() && !answered; wire.pop_front()) {
    deliver(wire.front());
    answered = a->poll_recv().has_value();
    if (answered) break;
    acknowledged = acknowledged || completed(a->poll_send(), 5);
  }
  EXPECT_TRUE(answered);
  EXPECT_TRUE(acknowledged);
}

TEST_F(TwoHosts, atomics_return_what_was_there_and_happen_once) {
  connect_hosts();
  Memory result(a_nic, 64, all_access, Reach::mapped), word(b_nic, 64, all_access, Reach::mapped);
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(a->post({.wr_id = i,
                       .opcode = SendOpcode::fetch_and_add,
                       .flags = send_flag::signaled,
                       .remote_addr = word.addr(),
                       .rkey = word.key(),
                       .atomic = {.compare_add = 3, .swap = 0}},
                      {result.sge(8 * i, 8)}),
              PostResult::ok);
  }
  carry();
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(completed(a->poll_send(), i));
    std::uint64_t before = 0;
    std::memcpy(&before, result.data() + 8 * i, sizeof before);
    EXPECT_EQ(before, 3 * i);
  }
  std::uint64_t now = 0;
  std::memcpy(&now, word.data(), sizeof now);
  EXPECT_EQ(now, 15u);
}

TEST_F(TwoHosts, a_receive_that_is_missing_is_waited_for) {
  connect_hosts();
  Memory from(a_nic, 4096, all_access, Reach::mapped), to(b_nic, 4096, all_access, Reach::mapped);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  carry();
  EXPECT_FALSE(a->poll_send());
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  std::optional<WorkCompletion> sent;
  ASSERT_TRUE(carry_until([&] { return (sent = a->poll_send()).has_value(); }));
  EXPECT_TRUE(completed(sent, 1));
  EXPECT_TRUE(completed(b->poll_recv(), 2));
}

TEST_F(TwoHosts, what_became_of_packets_is_counted) {
  connect_hosts();
  Memory from(a_nic, 65'536, all_access, Reach::mapped), to(b_nic, 65'536, all_access, Reach::mapped);
  constexpr std::uint64_t packets = 8, size = packets * 1024;
  // The third is lost once, so those behind it come out of order, and all from it on are sent again.
  std::uint64_t sent = 0;
  drop = [&](const OnWire& packet) { return packet.source == a_gid && sent++ == 2; };
  ASSERT_EQ(a->write(1, from.sge(0, size), to.addr(), to.key()), PostResult::ok);
  std::optional<WorkCompletion> done;
  ASSERT_TRUE(carry_until([&] { return (done = a->poll_send()).has_value(); }));
  ASSERT_TRUE(completed(done, 1));
  const QpCounters &ours = a->qp().counters(), &theirs = b->qp().counters();
  EXPECT_EQ(ours.requests_out.read(), sent);
  EXPECT_EQ(ours.requests_again.read(), sent - packets);
  EXPECT_GE(ours.requests_again.read(), packets - 2);
  EXPECT_EQ(ours.retries.read(), ours.requests_again.read());
  EXPECT_EQ(ours.naks_in.read(), 1u);
  EXPECT_EQ(theirs.naks_out.read(), 1u);
  EXPECT_EQ(theirs.packets_in.read(), sent - 1);
  EXPECT_EQ(theirs.packets_in.read() - theirs.requests_dropped.read() - theirs.requests_repeated.read(),
            packets);
  EXPECT_EQ(ours.packets_in.read(), theirs.answers_out.read());
  EXPECT_EQ(theirs.served[static_cast<std::size_t>(OperationKind::write)].read(), 1u);
  EXPECT_EQ(theirs.served_payload[static_cast<std::size_t>(PayloadGoes::out)].read(), size);

  const std::uint64_t refused_before = theirs.rnr_naks_out.read();
  ASSERT_EQ(a->send(2, from.sge(0, 8)), PostResult::ok);
  carry();
  EXPECT_EQ(theirs.rnr_naks_out.read(), refused_before + 1);
  EXPECT_EQ(ours.rnr_naks_in.read(), 1u);
  EXPECT_EQ(ours.rnrs.read(), 1u);

  const std::uint64_t dropped_before = theirs.requests_dropped.read();
  OnWire stranger{{}, gid_of(9), b_gid, 0, interface};
  drop = [&](const OnWire& packet) {
    if (packet.source == a_gid) stranger.bytes = packet.bytes;
    return true;
  };
  ASSERT_TRUE(carry_until([&] { return !stranger.bytes.empty(); }));
  sign(stranger);
  deliver(stranger);
  EXPECT_EQ(theirs.requests_dropped.read(), dropped_before + 1);
}

TEST_F(TwoHosts, a_wrong_key_ends_both_ends_as_on_one_host) {
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  ASSERT_EQ(b->recv(9, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key() + 1), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rem_access_err));
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::wr_flush_err));
  EXPECT_EQ(a->qp().state(), QpState::err);
  EXPECT_EQ(b->qp().state(), QpState::err);
  EXPECT_TRUE(completed(b->poll_recv(), 9, WcStatus::wr_flush_err));
  const auto events = b_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event, AsyncEvent::qp_access_error);
}

TEST_F(TwoHosts, a_message_longer_than_its_receive_is_refused) {
  connect_hosts();
  Memory from(a_nic, 4096, all_access, Reach::mapped), to(b_nic, 4096, all_access, Reach::mapped);
  ASSERT_EQ(b->recv(9, {to.sge(0, 1500)}), PostResult::ok);
  ASSERT_EQ(a->send(1, from.sge(0, 4000)), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rem_inv_req_err));
  EXPECT_TRUE(completed(b->poll_recv(), 9, WcStatus::loc_len_err));
}

TEST_F(TwoHosts, a_peer_that_answers_nothing_is_given_up) {
  EndpointOptions options;
  options.timeout = 10;  // 4 ms
  options.retry_cnt = 2;
  connect_hosts(options);
  Memory from(a_nic, 64, all_access, Reach::mapped);
  drop = [](const OnWire&) { return true; };
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  std::optional<WorkCompletion> sent;
  ASSERT_TRUE(carry_until([&] { return (sent = a->poll_send()).has_value(); }));
  EXPECT_TRUE(completed(sent, 1, WcStatus::retry_exc_err));
  EXPECT_EQ(a->qp().state(), QpState::err);
}

// No polling here. The timer of an answered message may still run, with an earlier deadline than ours.
TEST_F(TwoHosts, a_timer_of_an_answered_message_starts_that_of_the_next) {
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  for (const std::uint64_t id : {1, 2}) ASSERT_EQ(b->recv(id, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(3'000'000);  // a round trip; silence is measured against it from now on
  carry();
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  ASSERT_EQ(wire.size(), 1u);
  wire.clear();
  for (int waits = 0; wire.empty() && waits < 100; ++waits) host.advance(1'000'000);
  EXPECT_FALSE(wire.empty()) << "the lost message was not sent again";
}

TEST_F(TwoHosts, losses_duplicates_and_damage_leave_every_message_whole_once_and_in_order) {
  connect_hosts();
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  drop = [&](const OnWire& packet) {
    const auto chance = random() % 100;
    if (chance < 5) deliver(packet);  // and once more
    if (chance >= 5 && chance < 10) {
      OnWire damaged = packet;
      damaged.bytes[random() % damaged.bytes.size()] ^= std::byte{0x10};
      deliver(damaged);
      return true;
    }
    return chance >= 90;
  };
  constexpr std::uint32_t messages = 60, bytes = 9000;
  Memory from(a_nic, std::size_t{messages} * bytes, all_access, Reach::mapped);
  Memory to(b_nic, std::size_t{messages} * bytes, all_access, Reach::mapped);
  from.fill(seed);
  for (std::uint32_t i = 0; i < messages; ++i) {
    ASSERT_EQ(b->recv(i, {to.sge(std::size_t{i} * bytes, bytes)}), PostResult::ok);
    ASSERT_EQ(a->send(i, from.sge(std::size_t{i} * bytes, bytes)), PostResult::ok);
  }
  std::uint32_t sent = 0, received = 0;
  ASSERT_TRUE(carry_until([&] {
    while (const auto wc = b->poll_recv()) {
      if (!completed(wc, received)) return false;
      ++received;
    }
    while (const auto wc = a->poll_send()) {
      if (!completed(wc, sent)) return false;
      ++sent;
      EXPECT_LE(sent, received) << "acknowledged before it was there";
    }
    return sent == messages;
  }));
  EXPECT_EQ(received, messages);
  EXPECT_EQ(to.part(0, to.size()), from.part(0, from.size()));
}

TEST_F(TwoHosts, packets_of_strangers_change_nothing) {
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  from.fill(1);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  ASSERT_EQ(wire.size(), 1u);
  const OnWire good = wire.front();
  wire.clear();
  OnWire from_elsewhere = good;
  from_elsewhere.source = gid_of(3);
  OnWire cut = good;
  cut.bytes.resize(10);
  for (const OnWire& bad : {from_elsewhere, cut}) deliver(bad);
  for (std::size_t byte = 0; byte < good.bytes.size(); ++byte) {
    OnWire changed = good;
    changed.bytes[byte] ^= std::byte{1};
    if (byte == 4) continue;  // what switches may change
    deliver(changed);
  }
  EXPECT_TRUE(wire.empty()) << "a stranger was answered";
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  EXPECT_EQ(b->qp().state(), QpState::rts);
  deliver(good);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

// Forged with a valid ICRC; one field is wrong in each.
TEST_F(TwoHosts, forged_requests_whose_sender_is_not_the_peer_change_nothing) {
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  from.fill(1);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  const OnWire good = wire.front();
  wire.clear();
  const auto forge = [&](const std::function<void(OnWire&)>& change) {
    OnWire forged = good;
    change(forged);
    sign(forged);
    deliver(forged);
  };
  const auto set = [](std::size_t at, unsigned value) {
    return [=](OnWire& packet) { packet.bytes[at] = static_cast<std::byte>(value); };
  };
  const unsigned uc_write_only = wire::opcode(wire::Service::uc, wire::Operation::write_only);
  forge([](OnWire& packet) { packet.source = gid_of(3); });
  forge([](OnWire& packet) { packet.interface = 9; });
  forge(set(0, uc_write_only));
  forge(set(0, 0xc0));  // of some manufacturer
  forge(set(1, 0x01));  // version
  forge(set(2, 0x12));  // P_Key
  forge(set(7, b->qpn().value() % 256 ^ 1));
  EXPECT_TRUE(wire.empty()) << "a stranger was answered";
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  EXPECT_EQ(b->qp().state(), QpState::rts);
  // From the peer, but out of sequence: it is NAKed, and nothing is executed.
  forge(set(11, std::to_integer<unsigned>(good.bytes[11]) + 1));
  EXPECT_EQ(wire.size(), 1u);
  wire.clear();
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  deliver(good);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 1));
}

TEST_F(TwoHosts, forged_answers_complete_nothing_and_end_nothing) {
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  const OnWire request = wire.front();
  wire.clear();
  const auto answer = [&](std::int32_t psn_off, std::uint8_t syndrome, const Gid& source,
                          wire::Service service = wire::Service::rc) {
    wire::Packet packet;
    packet.bth.opcode = wire::opcode(service, wire::Operation::acknowledge);
    packet.bth.destination = a->qpn().value();
    packet.bth.psn = static_cast<std::uint32_t>(0xfffff0 + psn_off) & 0xffffff;
    packet.aeth = {.syndrome = syndrome, .msn = 1};
    OnWire made{.bytes = {}, .source = source, .destination = a_gid, .id = 0, .interface = 0};
    std::array<std::byte, wire::longest_headers> headers{};
    made.bytes.assign(headers.begin(),
                      headers.begin() + static_cast<std::ptrdiff_t>(encode_headers(packet, 0, headers)));
    made.bytes.resize(made.bytes.size() + wire::icrc_bytes);
    sign(made);
    deliver(made);
  };
  constexpr std::uint8_t refused = wire::nak | wire::nak_remote_access;
  for (const std::uint8_t syndrome : {wire::ack_without_credit, refused, wire::rnr_nak, wire::nak}) {
    answer(0, syndrome, gid_of(3));
    answer(0, syndrome, b_gid, wire::Service::xrc);
    for (const std::int32_t psn_off : {-1, 1, 2, 1 << 22, 1 << 23}) answer(psn_off, syndrome, b_gid);
  }
  EXPECT_FALSE(a->poll_send());
  EXPECT_EQ(a->qp().state(), QpState::rts);
  deliver(request);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 1));
}

// An ICRC over IPv6 covers other fields, and no ID that would have to be found.
TEST_F(TwoHosts, ipv6_carries_runs_of_packets_and_notices_damage) {
  a_gid = {0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  b_gid = {0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  connect_hosts();
  constexpr std::size_t bytes = 30'000;
  Memory from(a_nic, bytes, all_access, Reach::mapped), to(b_nic, bytes, all_access, Reach::mapped);
  from.fill(1);
  std::size_t damaged = 0;
  drop = [&](const OnWire& packet) {
    if (carried % 5 != 2) return false;
    OnWire changed = packet;
    changed.bytes[packet.bytes.size() / 2] ^= std::byte{1};
    deliver(changed);
    ++damaged;
    return true;
  };
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  std::optional<WorkCompletion> sent;
  ASSERT_TRUE(carry_until([&] { return (sent = a->poll_send()).has_value(); }));
  EXPECT_TRUE(completed(sent, 1));
  EXPECT_GT(damaged, 3u);
  EXPECT_EQ(to.part(0, bytes), from.part(0, bytes));
}

TEST_F(TwoHosts, a_link_local_peer_is_one_of_its_link_only) {
  a_gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  b_gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  interface = 7;
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  from.fill(1);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  OnWire of_another_link = wire.front();
  EXPECT_EQ(of_another_link.interface, 7u);
  of_another_link.interface = 8;
  deliver(of_another_link);
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(TwoHosts, a_reset_queue_pair_answers_nothing_and_goes_to_this_host_afterwards) {
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  const OnWire late = wire.front();
  wire.clear();
  ASSERT_TRUE(a->modify(QpState::reset));
  ASSERT_TRUE(b->modify(QpState::reset));
  deliver(late);
  EXPECT_TRUE(wire.empty());
  a->attributes().path = b->attributes().path = {};
  connect(*a, *b);
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(wire.empty());
}

// A program may end the connection when it has the message: its peer must not hear of that end first. Of two
// messages in one batch, the connection of the first one ends while the second one is being copied.
TEST_F(TwoHosts, a_message_is_acknowledged_before_its_queue_pair_is_in_error) {
  connect_hosts();
  Endpoint other_a(a_nic), other_b(b_nic);
  connect_hosts(other_a, other_b);
  Memory memory(a_nic, 64, all_access, Reach::mapped), theirs(b_nic, 64, all_access, Reach::mapped);
  Memory copied(b_nic, 64, all_access, Reach::copied);
  ASSERT_EQ(b->recv(1, {theirs.all()}), PostResult::ok);
  std::size_t answers = 0;
  host.on_copy = [&] {
    EXPECT_TRUE(b->modify(QpState::err));
    answers = wire.size();
    return Peer::Transfer::done;
  };
  ASSERT_EQ(a->send(2, memory.all()), PostResult::ok);
  ASSERT_EQ(other_a.write(3, memory.all(), copied.addr(), copied.key()), PostResult::ok);
  const std::deque<OnWire> sent = std::exchange(wire, {});
  ASSERT_EQ(sent.size(), 2u);
  const std::array<PacketDatagram, 2> batch = {datagram_of(sent[0]), datagram_of(sent[1])};
  b_nic.adapter().take_packets(batch);
  EXPECT_GE(answers, 1u);
  deliver(wire.front());
  EXPECT_TRUE(completed(a->poll_send(), 2));
}

// The acknowledgement is lost, and nobody will answer when the sender asks again.
TEST_F(TwoHosts, a_queue_pair_that_ends_acknowledges_the_last_message_again) {
  const auto loses_an_acknowledgement = [&] {
    connect_hosts();
    EXPECT_TRUE(wire.empty()) << "what ended before has already said it";
    Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
    ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
    deliver(std::exchange(wire, {}).front());
    wire.clear();
  };
  const std::vector<std::pair<std::string, std::function<void()>>> ends = {
      {"in error", [&] { ASSERT_TRUE(b->modify(QpState::err)); }},
      {"reset", [&] { ASSERT_TRUE(b->modify(QpState::reset)); }},
      {"destroyed", [&] { b.reset(); }},
      {"its process ends", [&] { b_nic.adapter().finish_packets(); }}};
  for (const auto& [what, end] : ends) {
    SCOPED_TRACE(what);
    loses_an_acknowledgement();
    EXPECT_FALSE(a->poll_send());
    end();
    EXPECT_EQ(wire.size(), 2u);
    carry();
    EXPECT_TRUE(completed(a->poll_send(), 1));
  }
}

// An acknowledgement of a READ without its data would say that the data was lost.
TEST_F(TwoHosts, a_queue_pair_that_ends_says_nothing_if_data_was_its_last_answer) {
  connect_hosts();
  Memory from(a_nic, 64, all_access, Reach::mapped), to(b_nic, 64, all_access, Reach::mapped);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  ASSERT_EQ(a->read(2, from.all(), to.addr(), to.key()), PostResult::ok);
  carry();
  ASSERT_TRUE(b->modify(QpState::reset));
  EXPECT_TRUE(wire.empty());
}

TEST_F(TwoHosts, queue_pairs_drain_before_they_stand_in_sqd) {
  connect_hosts();
  Memory from(a_nic, 4096, all_access, Reach::mapped), to(b_nic, 4096, all_access, Reach::mapped);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  a->attributes().sqd_event = true;
  ASSERT_TRUE(a->modify(QpState::sqd));
  EXPECT_TRUE(a->qp().draining());
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  carry();
  EXPECT_FALSE(a->qp().draining());
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_FALSE(a->poll_send());
  a->attributes().sqd_event = false;
  ASSERT_TRUE(a->modify(QpState::rts));
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 2));
}

}  // namespace
}  // namespace weir::rnic::test
