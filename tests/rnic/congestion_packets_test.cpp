// Queue pairs whose packets a switch between the hosts marks (ECN): which end is told, and which slows down.
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint8_t ect0 = 2, marked = 3;
constexpr std::uint64_t interval_ns = 50'000;  // between two notifications of a queue pair

class MarkingSwitch : public TwoHosts {
 protected:
  MarkingSwitch() { connect_hosts(); }

  static bool is_notification(const OnWire& packet) {
    return packet.bytes[0] == std::byte{wire::congestion_notification};
  }
  // What a WRITE of that many bytes put on the wire, off it again.
  std::deque<OnWire> write(std::uint32_t bytes) {
    EXPECT_EQ(a->write(1, from.sge(0, bytes), to.addr(), to.key()), PostResult::ok);
    return std::exchange(wire, {});
  }
  OnWire a_marked_packet() {
    OnWire packet = write(64).front();
    packet.traffic_class |= marked;
    return packet;
  }
  // Kept back, where the answer to the marked packet arrives.
  OnWire a_notification() {
    deliver(a_marked_packet());
    std::optional<OnWire> notification;
    for (const OnWire& packet : std::exchange(wire, {}))
      is_notification(packet) ? void(notification = packet) : deliver(packet);
    return notification.value();
  }
  std::size_t notifications() {
    return static_cast<std::size_t>(std::ranges::count_if(wire, is_notification));
  }
  std::uint32_t window() { return a_nic.adapter().packet_window(b_gid, 0)->bytes(); }

  Memory from{a_nic, 1u << 20, all_access, Reach::mapped}, to{b_nic, 1u << 20, all_access, Reach::mapped};
};

TEST_F(MarkingSwitch, may_mark_what_a_reliable_connection_sends) {
  for (const OnWire& packet : write(5000)) EXPECT_EQ(packet.traffic_class, ect0);
}

TEST_F(MarkingSwitch, may_not_mark_what_a_path_without_ecn_sends) {
  Endpoint plain(a_nic), peer(b_nic);
  plain.attributes().path = path_from_a();
  plain.attributes().path.ecn_capable = false;
  peer.attributes().path = path_from_b();
  connect(plain, peer);
  ASSERT_EQ(plain.write(1, from.sge(0, 5000), to.addr(), to.key()), PostResult::ok);
  ASSERT_FALSE(wire.empty());
  for (const OnWire& packet : wire) EXPECT_EQ(packet.traffic_class, 0);
}

TEST_F(MarkingSwitch, makes_the_receiver_notify_the_sender_once_in_50_us) {
  OnWire packet = a_marked_packet();
  for (int i = 0; i < 3; ++i) deliver(packet);
  ASSERT_EQ(notifications(), 1u);
  const OnWire& sent = *std::ranges::find_if(wire, is_notification);
  EXPECT_EQ(sent.destination, a_gid);
  EXPECT_EQ(wire::destination_of(sent.bytes), a->qpn().value());
  EXPECT_EQ(sent.bytes.size(), 12u + 16 + wire::icrc_bytes);
  EXPECT_EQ(sent.traffic_class, 48 << 2) << "it must not wait behind the data, nor be marked itself";
  host.advance(interval_ns);
  deliver(packet);
  EXPECT_EQ(notifications(), 2u);
  EXPECT_EQ(b->qp().counters().marked_in.read(), 4u);
  EXPECT_EQ(b->qp().counters().notifications_out.read(), 2u);
}

TEST_F(MarkingSwitch, that_marks_nothing_makes_nobody_notify) {
  for (const OnWire& packet : write(5000)) deliver(packet);
  EXPECT_EQ(notifications(), 0u);
}

TEST_F(MarkingSwitch, slows_the_sender_down_until_it_has_marked_nothing_for_a_while) {
  const std::uint32_t before = window();
  const OnWire notification = a_notification();
  for (int i = 0; i < 20; ++i, host.advance(interval_ns)) deliver(notification);
  const std::uint32_t slow = window();
  EXPECT_LT(slow, before / 4);
  EXPECT_GE(slow, packet::Window::Limits().least);
  EXPECT_EQ(a->qp().counters().notifications_in.read(), 20u);
  const auto asked_after = [&](std::uint64_t ns) {
    host.advance(ns);
    for (const OnWire& packet : write(64)) deliver(packet);  // the sender asks
    carry();
    return window();
  };
  const std::uint32_t later = asked_after(1'000'000);
  EXPECT_GT(later, slow);
  EXPECT_GE(asked_after(200'000'000), before);
}

TEST_F(MarkingSwitch, cannot_stop_the_sender) {
  const OnWire notification = a_notification();
  for (int i = 0; i < 1000; ++i, host.advance(interval_ns)) deliver(notification);
  ASSERT_EQ(a->write(9, from.sge(0, 300'000), to.addr(), to.key()), PostResult::ok);
  bool done = false;
  EXPECT_TRUE(carry_until([&] {
    while (const auto wc = a->poll_send()) done |= wc->wr_id == 9 && wc->status == WcStatus::success;
    return done;
  }));
}

TEST_F(MarkingSwitch, s_notifications_count_only_from_the_peer) {
  const OnWire good = a_notification();
  const std::uint32_t before = window();
  OnWire from_elsewhere = good;
  from_elsewhere.source = gid_of(3);
  sign(from_elsewhere);
  OnWire damaged = good;
  damaged.bytes[20] ^= std::byte{1};
  OnWire longer = good;
  longer.bytes.insert(longer.bytes.end(), 4, std::byte{});
  sign(longer);
  for (const OnWire& bad : {from_elsewhere, damaged, longer}) deliver(bad);
  EXPECT_EQ(window(), before);
  EXPECT_EQ(a->qp().counters().notifications_in.read(), 0u);
}

}  // namespace
}  // namespace weir::rnic::test
