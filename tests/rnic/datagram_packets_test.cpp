// UD queue pairs of two hosts: each datagram is one packet, and its receiver finds the packet's IP
// header before the payload.
#include "rnic/datagrams/grh.hpp"
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint32_t qkey = 0x1234, packet_bytes = 1024;

constexpr Gid v6_of(std::uint8_t last) {
  Gid gid{0xfd, 0x77};
  gid[15] = last;
  return gid;
}

struct Family {
  const char* name;
  Gid a, b;
};

class DatagramPackets : public TwoHosts, public testing::WithParamInterface<Family> {
 protected:
  DatagramPackets() {
    a_gid = GetParam().a;
    b_gid = GetParam().b;
    path.grh = write_grh({.source = a_gid, .destination = b_gid, .traffic_class = 0x20, .hop_limit = 33});
    path.packet_bytes = packet_bytes;
    for (Endpoint* end : {&sender, &receiver}) end->to_rts(Qpn());
    from.fill(7);
  }
  SendRequest request(SendOpcode opcode = SendOpcode::send, std::uint32_t key = qkey) const {
    return {.wr_id = 1,
            .opcode = opcode,
            .flags = send_flag::signaled,
            .imm_be = 0x01020304,
            .datagram = {receiver.qpn(), key, &path}};
  }
  PostResult send(std::size_t bytes) { return sender.post(request(), {from.sge(0, bytes)}); }
  PacketDatagram arrival_of(const OnWire& packet) const {
    return {.bytes = packet.bytes,
            .source = packet.source,
            .destination = packet.destination,
            .source_port = wire::roce_port,
            .likely_id = packet.id,
            .traffic_class = 0x20,
            .hop_limit = 32};
  }
  void arrive(const OnWire& packet) {
    const PacketDatagram arrived = arrival_of(packet);
    b_nic.adapter().take_packets({&arrived, 1});
  }
  // What was received, as the packet that it came in: Ethernet, the IP header before the payload, UDP, BTH.
  std::optional<wire::Frame> packet_of(std::span<const std::byte> grh, const OnWire& packet) {
    const bool v6 = (grh[0] >> 4) == std::byte{6};
    frame.assign(12, std::byte{0});
    const auto put_16 = [&](std::size_t value) {
      frame.push_back(static_cast<std::byte>(value >> 8));
      frame.push_back(static_cast<std::byte>(value));
    };
    put_16(v6 ? 0x86dd : 0x0800);
    const auto ip = v6 ? grh : grh.subspan(20);
    frame.insert(frame.end(), ip.begin(), ip.end());
    put_16(wire::roce_port);
    put_16(wire::roce_port);
    put_16(8 + packet.bytes.size());
    put_16(0);
    frame.insert(frame.end(), packet.bytes.begin(), packet.bytes.end());
    return wire::parse(frame);
  }

  Endpoint sender{a_nic, {.type = QpType::ud, .qkey = qkey}};
  Endpoint receiver{b_nic, {.type = QpType::ud, .qkey = qkey}};
  Memory from{a_nic, 8192}, to{b_nic, 8192};
  DatagramPath path;
  std::vector<std::byte> frame;
};

INSTANTIATE_TEST_SUITE_P(Families, DatagramPackets,
                         testing::Values(Family{"ipv4", gid_of(1), gid_of(2)},
                                         Family{"ipv6", v6_of(1), v6_of(2)}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(DatagramPackets, arrive_behind_the_ip_header_of_their_packet) {
  for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 3, 64, 1023, 1024}) {
    SCOPED_TRACE(size);
    to.clear();
    ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
    ASSERT_EQ(send(size), PostResult::ok);
    EXPECT_TRUE(completed(sender.poll_send(), 1)) << "nobody acknowledges a datagram";
    ASSERT_EQ(wire.size(), 1u);
    const OnWire packet = wire.front();
    wire.clear();
    arrive(packet);
    const auto wc = receiver.poll_recv();
    ASSERT_TRUE(completed(wc, 5));
    EXPECT_EQ(wc->byte_len, grh_bytes + size);
    EXPECT_EQ(wc->src_qpn, sender.qpn().value());
    EXPECT_TRUE(wc->has_grh);
    EXPECT_FALSE(wc->has_imm);
    EXPECT_EQ(to.part(grh_bytes, size), from.part(0, size));
    EXPECT_EQ(to.data()[grh_bytes + size], std::byte{0});
    const auto grh = to.part(0, grh_bytes);
    const auto whole = packet_of(grh, packet);
    ASSERT_TRUE(whole) << "no packet has that header: lengths, checksum or ICRC are wrong";
    EXPECT_EQ(whole->packet.payload.size(), size);
    const GrhFields fields = read_grh(std::span(grh).first<grh_bytes>());
    EXPECT_EQ(fields.source, a_gid);
    EXPECT_EQ(fields.destination, b_gid);
    EXPECT_EQ(fields.hop_limit, 32) << "as it came, not as it went";
    EXPECT_EQ(fields.traffic_class, 0x20);
  }
}

TEST_P(DatagramPackets, carry_an_immediate) {
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(sender.post(request(SendOpcode::send_with_imm), {from.sge(0, 8)}), PostResult::ok);
  carry();
  const auto wc = receiver.poll_recv();
  ASSERT_TRUE(completed(wc, 5));
  EXPECT_TRUE(wc->has_imm);
  EXPECT_EQ(wc->imm_be, 0x01020304u);
}

TEST_P(DatagramPackets, of_one_doorbell_leave_in_one_run) {
  std::size_t runs_sent = 0;
  a_nic.on_packets = [&](const PacketRoute& route, std::span<const PacketRun> runs) {
    runs_sent += runs.size();
    EXPECT_EQ(route.traffic_class, 0x20);
    EXPECT_EQ(route.hop_limit, 33);
    take(route, runs);
  };
  PostResult result;
  sender.qp().begin_posting();
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(receiver.recv(i, {to.sge(i * 128, 128)}), PostResult::ok);
    SendWqe* const wqe = sender.qp().append(request(), result);
    ASSERT_NE(wqe, nullptr);
    const Sge piece = from.sge(i * 64, 64);
    ASSERT_EQ(sender.qp().set_sges(*wqe, {&piece, 1}), PostResult::ok);
  }
  sender.qp().ring_doorbell();
  EXPECT_EQ(runs_sent, 1u);
  EXPECT_EQ(wire.size(), 10u);
  carry();
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(completed(receiver.poll_recv(), i));
    EXPECT_EQ(to.part(i * 128 + grh_bytes, 64), from.part(i * 64, 64));
  }
}

TEST_P(DatagramPackets, longer_than_the_way_there_takes_are_the_senders_error) {
  ASSERT_EQ(send(packet_bytes + 1), PostResult::ok);
  EXPECT_TRUE(completed(sender.poll_send(), 1, WcStatus::loc_len_err));
  EXPECT_TRUE(wire.empty());
  EXPECT_EQ(sender.qp().state(), QpState::sqe);
}

TEST_P(DatagramPackets, with_another_q_key_or_without_a_receive_are_lost) {
  ASSERT_EQ(send(64), PostResult::ok);
  carry();
  EXPECT_FALSE(receiver.poll_recv());
  EXPECT_EQ(receiver.qp().counters().datagrams_dropped.read(), 1u);
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(sender.post(request(SendOpcode::send, qkey + 1), {from.sge(0, 64)}), PostResult::ok);
  carry();
  EXPECT_FALSE(receiver.poll_recv());
  ASSERT_EQ(sender.post(request(SendOpcode::send, 0x80000000), {from.sge(0, 64)}), PostResult::ok);
  carry();
  EXPECT_TRUE(completed(receiver.poll_recv(), 5)) << "its top bit means the sender's own Q_Key";
}

TEST_P(DatagramPackets, that_are_damaged_or_of_another_kind_change_nothing) {
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(64), PostResult::ok);
  const OnWire good = wire.front();
  wire.clear();
  for (std::size_t byte = 0; byte < good.bytes.size(); ++byte) {
    if (byte == 4) continue;  // what switches may change
    OnWire changed = good;
    changed.bytes[byte] ^= std::byte{1};
    arrive(changed);
  }
  for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 4, 12, 20, 24}) {
    OnWire cut = good;
    cut.bytes.resize(bytes);
    arrive(cut);
  }
  // A whole message of a connection, to a queue pair without a connection.
  connect_hosts();
  ASSERT_EQ(a->send(9, from.sge(0, 64)), PostResult::ok);
  OnWire of_a_connection = wire.front();
  wire.clear();
  of_a_connection.bytes[5] = static_cast<std::byte>(receiver.qpn().value() >> 16);
  of_a_connection.bytes[6] = static_cast<std::byte>(receiver.qpn().value() >> 8);
  of_a_connection.bytes[7] = static_cast<std::byte>(receiver.qpn().value());
  sign(of_a_connection);
  arrive(of_a_connection);
  EXPECT_FALSE(receiver.poll_recv());
  EXPECT_TRUE(wire.empty()) << "it was answered";
  arrive(good);
  EXPECT_TRUE(completed(receiver.poll_recv(), 5));
}

TEST_P(DatagramPackets, to_the_queue_pair_of_a_connection_change_nothing) {
  connect_hosts();
  ASSERT_EQ(b->recv(5, {to.all()}), PostResult::ok);
  auto stray = request();
  stray.datagram.destination = b->qpn();
  ASSERT_EQ(sender.post(stray, {from.sge(0, 64)}), PostResult::ok);
  carry();
  EXPECT_FALSE(b->poll_recv());
  EXPECT_EQ(b->qp().state(), QpState::rts);
}

}  // namespace
}  // namespace weir::rnic::test
