// Questions to peers that may have ended, on loopback in a network namespace of its own: the kernel there
// says whether somebody has the port.
#include "verbs/cm/peer_watch.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "stepped_port.hpp"
#include "tests/link/own_network.hpp"
#include "wire/roce.hpp"

namespace weir::cm {
namespace {

constexpr link::IpAddress us = link::v4_loopback(1);

link::UniqueFd somebody_with_the_port(const link::IpAddress& at) {
  link::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(wire::roce_port);
  std::memcpy(&address.sin_addr, at.data() + 12, sizeof address.sin_addr);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

class Watch : public testing::Test {
 protected:
  void SetUp() override {
    if (!link::own_network()) GTEST_SKIP() << "the kernel lets this user make no network namespace";
    port.on_ask = [this](const verbs::ManagementRoute& to, std::span<const std::byte> mad) {
      auto probe = link::PortProbe::open({.source = us, .destination = to.destination});
      EXPECT_TRUE(probe->send(wire::roce_port, mad));
      asked.push_back(to.destination);
      return probe;
    };
  }
  PeerWatch::Question question(std::uint8_t host, std::uint32_t local_id) {
    auto peer =
        std::dynamic_pointer_cast<RemoteHost>(carrier.host({.ip = ours}, {.ip = link::v4_loopback(host)}));
    CmMessage message = answer(MessageType::rtu, their_id);
    message.local_id = local_id;
    return {std::move(peer), message};
  }
  // Its peer hears questions from now on.
  PeerWatch::Question established(std::uint8_t host, std::uint32_t local_id) {
    const auto alive = somebody_with_the_port(link::v4_loopback(host));
    const PeerWatch::Question made = question(host, local_id);
    watch.greet(made, now);
    run_watched();
    watch.ask({}, now += interval);
    asked.clear();
    return made;
  }
  // Lets the sockets that have something to say speak, as the link's thread would.
  void run_watched() {
    std::vector<pollfd> waited;
    for (const auto& [descriptor, handler] : link.watched) waited.push_back({descriptor, POLLIN, 0});
    ::poll(waited.data(), waited.size(), 0);
    for (const pollfd& each : waited) {
      const auto found = link.watched.find(each.fd);
      if (each.revents == 0 || found == link.watched.end()) continue;
      const auto handler = found->second;  // it may be removed meanwhile
      handler();
    }
  }

  static constexpr std::chrono::seconds interval{5};
  link::Clock::time_point now;
  SteppedLink link;
  Port port;
  std::vector<link::IpAddress> asked, closed;
  PacketCarrier carrier{link, port, [](const link::NeighbourPtr&, CmMessage) {},
                        [](const CmMessage&) { return 0; }, [](const link::NeighbourPtr&) {}};
  PeerWatch watch{link, carrier, [this](const link::NeighbourPtr& who) {
                    closed.push_back(dynamic_cast<const RemoteHost&>(*who).addressing().destination);
                  }};
};

// Loopback answers before send() returns, so nothing here waits.
TEST_F(Watch, a_port_that_nobody_has_is_believed_the_second_time) {
  watch.ask(std::vector{established(2, 1)}, now += interval);
  EXPECT_EQ(asked.size(), 1u);
  EXPECT_TRUE(closed.empty());
  run_watched();
  EXPECT_EQ(asked.size(), 2u) << "one refusal may be forged";
  EXPECT_TRUE(closed.empty());
  run_watched();
  EXPECT_EQ(closed, std::vector{link::v4_loopback(2)});
  EXPECT_TRUE(link.watched.empty());
}

TEST_F(Watch, a_peer_that_is_there_and_says_nothing_stays) {
  const auto stopped = somebody_with_the_port(link::v4_loopback(2));
  for (int i = 0; i < 3; ++i) {
    watch.ask(std::vector{question(2, 1)}, now += interval);
    run_watched();
    EXPECT_EQ(link.watched.size(), 1u) << "the socket of the time before is closed";
  }
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_TRUE(closed.empty());
}

// A firewall may let through only what comes from the port itself.
TEST_F(Watch, a_peer_that_never_heard_a_question_is_not_believed_to_have_ended) {
  const PeerWatch::Question each = question(2, 1);
  watch.greet(each, now);
  for (int i = 0; i < 3; ++i) {
    run_watched();
    EXPECT_TRUE(link.watched.empty()) << "refused";
    watch.ask(std::vector{each}, now += interval);
  }
  EXPECT_EQ(asked.size(), 4u);
  EXPECT_TRUE(closed.empty());
}

TEST_F(Watch, a_question_of_a_moment_ago_has_not_got_through_yet) {
  const PeerWatch::Question each = question(2, 1);
  {
    const auto alive = somebody_with_the_port(link::v4_loopback(2));
    watch.greet(each, now);
    watch.ask({}, now += std::chrono::milliseconds(500));
  }
  for (int i = 0; i < 3; ++i) {
    watch.ask(std::vector{each}, now += interval);
    run_watched();
    run_watched();
  }
  EXPECT_TRUE(closed.empty());
}

TEST_F(Watch, a_new_connection_with_a_peer_that_hears_questions_asks_none) {
  const PeerWatch::Question first = established(2, 1);
  watch.greet({first.peer, question(2, 2).message}, now);
  EXPECT_TRUE(asked.empty());
}

TEST_F(Watch, new_connections_with_many_hosts_open_no_more_sockets_than_a_round) {
  for (std::uint8_t host = 2; host < 2 + 2 * PeerWatch::most_asked; ++host)
    watch.greet(question(host, host), now);
  EXPECT_EQ(link.watched.size(), PeerWatch::most_asked);
}

TEST_F(Watch, only_the_peer_whose_port_is_closed_has_ended) {
  const PeerWatch::Question of_two = established(2, 1), of_three = established(3, 2);
  const auto stopped = somebody_with_the_port(link::v4_loopback(2));
  watch.ask(std::vector{of_two, of_three}, now += interval);
  run_watched();
  run_watched();
  EXPECT_EQ(closed, std::vector{link::v4_loopback(3)});
}

TEST_F(Watch, one_socket_is_enough_for_the_connections_with_a_peer) {
  const auto there = somebody_with_the_port(link::v4_loopback(2));
  watch.ask(std::vector{question(2, 1), question(2, 2), question(2, 3)}, now += interval);
  EXPECT_EQ(asked.size(), 1u);
  EXPECT_EQ(port.sent.size(), 2u) << "the others by the port itself";
  EXPECT_EQ(link.watched.size(), 1u);
}

TEST_F(Watch, many_connections_have_their_turns) {
  const auto there = somebody_with_the_port(link::v4_loopback(2));
  std::vector<PeerWatch::Question> questions;
  constexpr std::size_t many = PeerWatch::most_asked + 8;
  for (std::uint32_t id = 1; id <= many; ++id) questions.push_back(question(2, id));
  std::vector<int> times(many + 1);
  port.on_ask = [&](const verbs::ManagementRoute& to, std::span<const std::byte> mad) {
    port.sent.push_back({to.destination, 0, {mad.begin(), mad.end()}});
    return std::unique_ptr<link::PortProbe>();
  };
  for (int round = 0; round < 5; ++round) {
    port.sent.clear();
    watch.ask(questions, now += interval);
    EXPECT_EQ(port.sent.size(), PeerWatch::most_asked);
    for (const auto& sent : port.sent) {
      const auto mad = wire::parse_mad(sent.mad);
      ASSERT_TRUE(mad);
      ++times[message_of(*mad, {.source = ours, .destination = theirs})->message.local_id];
    }
  }
  for (std::size_t id = 1; id <= many; ++id) EXPECT_EQ(times[id], 4) << id;
}

}  // namespace
}  // namespace weir::cm
