// Queue pairs that share the window to one host: each has its turn, and what one does not need another gets.
#include <algorithm>

#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::size_t message_bytes = 65'536;

class PacketTurns : public TwoHosts {
 protected:
  void connect_pairs(std::size_t count, const EndpointOptions& options = {}) {
    for (std::size_t i = 0; i < count; ++i) {
      senders.push_back(std::make_unique<Endpoint>(a_nic, options));
      receivers.push_back(std::make_unique<Endpoint>(b_nic, options));
      senders[i]->attributes().path = path_from_a();
      receivers[i]->attributes().path = path_from_b();
      connect(*senders[i], *receivers[i]);
    }
  }
  void write(std::size_t pair, std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i)
      ASSERT_EQ(senders[pair]->write(i, from.all(), to.addr(), to.key()), PostResult::ok);
  }
  std::size_t completed_writes(std::size_t pair) {
    const auto done = Endpoint::drain(senders[pair]->send_cq());
    return static_cast<std::size_t>(
        std::ranges::count_if(done, [](const auto& wc) { return wc.status == WcStatus::success; }));
  }
  std::size_t packets_on_the_wire_to(std::size_t pair) const {
    return static_cast<std::size_t>(std::ranges::count_if(wire, [&](const OnWire& packet) {
      return wire::destination_of(packet.bytes) == receivers[pair]->qpn().value();
    }));
  }

  Memory from{a_nic, message_bytes, all_access, Reach::mapped};
  Memory to{b_nic, message_bytes, all_access, Reach::mapped};
  std::vector<std::unique_ptr<Endpoint>> senders, receivers;
};

// No time passes, so no timer helps.
TEST_F(PacketTurns, all_that_wait_for_one_window_have_theirs) {
  constexpr std::size_t pairs = 40;
  connect_pairs(pairs);
  for (std::size_t i = 0; i < pairs; ++i) write(i, 1);
  carry();
  for (std::size_t i = 0; i < pairs; ++i) EXPECT_EQ(completed_writes(i), 1u) << i;
}

TEST_F(PacketTurns, one_with_much_to_send_leaves_others_theirs) {
  constexpr std::size_t messages = 50;
  connect_pairs(2);
  write(0, messages);
  write(1, 1);
  std::size_t done = 0;
  std::optional<std::size_t> done_before;
  drop = [&](const OnWire&) {
    done += completed_writes(0);
    if (completed_writes(1) != 0) done_before = done;
    return false;
  };
  carry();
  ASSERT_TRUE(done_before);
  EXPECT_LT(*done_before, messages / 5);
}

TEST_F(PacketTurns, an_answer_costs_nothing_for_those_whom_it_does_not_help) {
  constexpr std::size_t pairs = 300;
  connect_pairs(pairs);
  for (std::size_t i = 0; i < pairs; ++i) write(i, 1);
  while (wire.front().destination == b_gid) {
    const OnWire packet = std::move(wire.front());
    wire.pop_front();
    deliver(packet);
  }
  const OnWire answer = wire.front();
  ASSERT_EQ(answer.destination, a_gid);
  const std::uint64_t before = a_nic.clock_reads;
  deliver(answer);
  EXPECT_LT(a_nic.clock_reads - before, pairs / 10) << "queue pairs were looked at in vain";
}

TEST_F(PacketTurns, a_timer_costs_nothing_for_those_that_wait) {
  constexpr std::size_t pairs = 300;
  connect_pairs(pairs);
  for (std::size_t i = 0; i < pairs; ++i) write(i, 1);
  wire.clear();
  const std::uint64_t before = a_nic.clock_reads;
  host.advance(5'000'000);  // a probe of each that sent something
  EXPECT_FALSE(wire.empty());
  EXPECT_LT(a_nic.clock_reads - before, pairs / 2);
}

class PacketTurnsAfter : public PacketTurns, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ends, PacketTurnsAfter, testing::Values("err", "reset", "destroyed"),
                         [](const auto& end) { return std::string(end.param); });

TEST_P(PacketTurnsAfter, the_end_of_a_queue_pair_its_part_of_the_window_is_free) {
  connect_pairs(2);
  write(0, 8);  // more than the window
  write(1, 1);
  ASSERT_EQ(packets_on_the_wire_to(1), 0u);
  wire.clear();
  const std::string end = GetParam();
  if (end == "destroyed")
    senders[0]->destroy_qp();
  else
    senders[0]->modify(end == "err" ? QpState::err : QpState::reset);
  host.advance(0);
  carry();
  EXPECT_EQ(completed_writes(1), 1u);
}

// What arrived while this process had no processor is no silence.
TEST_F(PacketTurns, the_answer_that_waits_in_the_socket_comes_before_the_timeout) {
  connect_pairs(1, {.timeout = 8, .retry_cnt = 0});
  ASSERT_EQ(senders[0]->write(1, from.sge(0, 64), to.addr(), to.key()), PostResult::ok);
  std::deque<OnWire> in_socket;
  drop = [&](const OnWire& packet) {
    if (packet.destination == a_gid) in_socket.push_back(packet);
    return packet.destination == a_gid;
  };
  a_nic.on_look = [&](const HostPort::PacketSink& sink) {
    for (const OnWire& packet : std::exchange(in_socket, {})) {
      const PacketDatagram datagram = datagram_of(packet);
      sink({&datagram, 1});
    }
  };
  carry();
  ASSERT_FALSE(in_socket.empty());
  host.advance(100'000'000);
  EXPECT_TRUE(completed(senders[0]->poll_send(), 1));
}

}  // namespace
}  // namespace weir::rnic::test
