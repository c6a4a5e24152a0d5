// An agent between a stepped link and a port that keeps what is sent: whose requests wait for its listener.
#include "verbs/cm/agent.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "cm_fixture.hpp"
#include "stepped_port.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::cm {
namespace {

constexpr IpBytes this_host{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
constexpr std::uint16_t the_port = 7471;

class AgentTest : public testing::Test {
 protected:
  static constexpr int backlog = 8, for_others = 6;

  AgentTest() : channel(EventChannel::open()) {
    port.own = this_host;
    port.on_ask = [](const verbs::ManagementRoute&, std::span<const std::byte>) { return nullptr; };
    ::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    listener = agent.create(*channel, nullptr, RDMA_PS_TCP, IBV_QPT_RC);
    auto at = loopback(the_port);
    EXPECT_EQ(agent.bind(*listener, as_address(at)), 0);
    EXPECT_EQ(agent.listen(*listener, backlog), 0);
  }
  ~AgentTest() override {
    for (Id* id : taken) agent.destroy(*id);
    agent.destroy(*listener);
  }

  using MadBytes = std::array<std::byte, wire::mad_bytes>;
  MadBytes mad(const CmMessage& message, const IpBytes& sender) {
    return wire::encode_mad(
        mad_of(message, {.source = sender, .destination = this_host, .guid = 1}, transaction++));
  }
  void arrive(const CmMessage& message, const IpBytes& sender) {
    port.arrive({sender, this_host, 0}, mad(message, sender));
  }
  void ask(const IpBytes& sender, std::uint32_t number) {
    CmMessage message = request();
    message.local_id = number;
    message.source.ip = sender;
    message.destination.ip = this_host;
    message.destination.port = the_port;
    arrive(message, sender);
  }
  // As a requester that has given up.
  void withdraw(const IpBytes& sender, std::uint32_t number) {
    CmMessage message;
    message.type = MessageType::rej;
    message.local_id = number;
    message.status = static_cast<std::uint16_t>(RejectReason::timeout);
    arrive(message, sender);
  }
  // The next request that the application gets, or nullptr.
  Id* take() {
    const EventPtr event = channel->take();
    if (!event) return nullptr;
    agent.taken(*event);
    agent.acknowledged(*event);
    if (event->type() == RDMA_CM_EVENT_CONNECT_REQUEST) taken.push_back(&Id::of(event->id));
    return &Id::of(event->id);
  }
  void take_all(std::vector<IpBytes>& from) {
    while (const Id* id = take()) from.push_back(id->remote.ip);
  }
  // A connection that is established proves its address.
  Id& connect(const IpBytes& sender, std::uint32_t number) {
    ask(sender, number);
    Id& id = *take();
    EXPECT_EQ(agent.accept(id, {}), 0);
    CmMessage ready = answer(MessageType::rtu, id.local_id);
    ready.local_id = number;
    arrive(ready, sender);
    EXPECT_EQ(id.state, State::established);
    EXPECT_EQ(take(), &id);
    return id;
  }
  // Messages of that kind that went there.
  std::ptrdiff_t sent(MessageType type, const IpBytes& to) const {
    return std::ranges::count_if(port.sent, [&](const Port::Sent& each) {
      if (each.to != to) return false;
      const auto mad = wire::parse_mad(each.mad);
      const auto translated = message_of(*mad, {.source = this_host, .destination = to});
      return translated && translated->message.type == type;
    });
  }

  const test::ScratchDirectory directory{"/dev/shm"};
  SteppedLink link{directory.path()};
  Port port;
  Agent agent{link, Limits{}, &port};
  std::unique_ptr<EventChannel> channel;
  Id* listener;
  std::vector<Id*> taken;
  std::uint64_t transaction = 1;
};

TEST_F(AgentTest, hosts_share_the_queue_of_requests) {
  connect(ip(2), 1);
  connect(ip(3), 1);
  for (std::uint32_t number = 2; number < 20; ++number) ask(ip(2), number);
  EXPECT_EQ(sent(MessageType::rej, ip(2)), 18 - for_others);
  ask(ip(3), 2);
  EXPECT_EQ(sent(MessageType::rej, ip(3)), 0);
  EXPECT_EQ(sent(MessageType::rej, ip(2)), 18 - for_others + 1) << "the oldest makes room";
  std::vector<IpBytes> from;
  take_all(from);
  EXPECT_EQ(from, (std::vector{ip(2), ip(2), ip(2), ip(2), ip(2), ip(3)}));
}

TEST_F(AgentTest, many_hosts_get_a_place_each) {
  for (std::uint8_t host = 2; host < 2 + for_others + 3; ++host) ask(ip(host), 1);
  std::vector<IpBytes> from;
  take_all(from);
  EXPECT_EQ(from.size(), for_others) << "with one each the first stay";
  EXPECT_EQ(from.back(), ip(2 + for_others - 1));
}

TEST_F(AgentTest, requests_that_have_ended_leave_the_queue) {
  for (std::uint32_t number = 1; number <= for_others; ++number) ask(ip(2), number);
  for (std::uint32_t number = 1; number <= for_others; ++number) withdraw(ip(2), number);
  for (std::uint32_t number = 11; number <= 10 + for_others; ++number) ask(ip(2), number);
  EXPECT_EQ(sent(MessageType::rej, ip(2)), 0);
  std::size_t live = 0, ended = 0;
  while (Id* id = take()) ++(agent.accept(*id, {}) == 0 ? live : ended);
  EXPECT_EQ(live, for_others);
  EXPECT_LE(ended, 1u);
}

// A program that was told of an event waits for it without a limit.
TEST_F(AgentTest, the_last_event_stays_when_its_request_ends) {
  ask(ip(2), 1);
  withdraw(ip(2), 1);
  EXPECT_TRUE(channel->readable());
  Id* id = take();
  ASSERT_NE(id, nullptr);
  EXPECT_EQ(agent.accept(*id, {}), EINVAL);
}

TEST_F(AgentTest, an_ended_request_may_be_asked_again) {
  ask(ip(2), 1);
  ask(ip(2), 2);
  withdraw(ip(2), 1);
  ask(ip(2), 1);
  std::size_t live = 0;
  while (Id* id = take()) live += agent.accept(*id, {}) == 0 ? 1 : 0;
  EXPECT_EQ(live, 2u);
}

// A third NIC that sends the connection manager's messages from other addresses than the peer's. It may know
// every number of the connection.
class Forger : public AgentTest {
 protected:
  Forger() { port.occupied = false; }  // no other process of this host

  struct Kind {
    const char* what;
    MessageType type;
    std::uint16_t attribute;  // in place of the type's own
  };
  static constexpr std::uint16_t own = 0, load_alternate_path = 0x19, alternate_path_response = 0x1a;
  static constexpr Kind kinds[] = {{"REQ", MessageType::req, own},
                                   {"MRA", MessageType::mra, own},
                                   {"REJ", MessageType::rej, own},
                                   {"REP", MessageType::rep, own},
                                   {"RTU", MessageType::rtu, own},
                                   {"DREQ", MessageType::dreq, own},
                                   {"DREP", MessageType::drep, own},
                                   {"SIDR_REQ", MessageType::sidr_req, own},
                                   {"SIDR_REP", MessageType::sidr_rep, own},
                                   {"LAP", MessageType::rtu, load_alternate_path},
                                   {"APR", MessageType::rtu, alternate_path_response}};

  MadBytes forged(const Kind& kind, const CmMessage& message, const IpBytes& sender) {
    constexpr std::size_t attribute_at = 16;  // IBA 13.4.2
    MadBytes bytes = mad(message, sender);
    if (kind.attribute != own) {
      bytes[attribute_at] = std::byte(kind.attribute >> 8);
      bytes[attribute_at + 1] = std::byte(kind.attribute & 0xff);
    }
    return bytes;
  }
  CmMessage draw(const Kind& kind, const Id& about) {
    const auto number = [&](std::uint32_t right) {
      switch (random() % 4) {
        case 0:
          return right;
        case 1:
          return right + static_cast<std::uint32_t>(random() % 64) - 32;
        case 2:
          return std::uint32_t{0};
        default:
          return static_cast<std::uint32_t>(random());
      }
    };
    CmMessage message;
    message.type = kind.type;
    message.local_id = number(about.remote_id);
    message.remote_id = number(about.local_id);
    message.port_space = kind.type == MessageType::sidr_req ? RDMA_PS_UDP : RDMA_PS_TCP;
    message.source.ip = random() % 2 == 0 ? about.remote.ip : ip(9);
    message.destination.ip = this_host;
    message.destination.port = random() % 2 == 0 ? the_port : static_cast<std::uint16_t>(random());
    message.qpn = static_cast<std::uint32_t>(random()) & 0xffffff;
    message.status = static_cast<std::uint16_t>(random() % 40);
    return message;
  }

  std::mt19937_64 random{20281};
};

TEST_F(Forger, from_another_address_changes_nothing) {
  Id& real = connect(ip(2), 0x02000009);
  const auto to_peer = std::ranges::count(port.sent, ip(2), &Port::Sent::to);
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.what);
    std::size_t in = 0;
    const std::size_t sent_before = port.sent.size();
    for (int i = 0; i < 2'000; ++i) {
      const IpBytes sender = ip(static_cast<std::uint8_t>(3 + random() % 200));
      port.arrive({sender, this_host, 0}, forged(kind, draw(kind, real), sender));
      ++in;
      while (const Id* id = take()) ASSERT_EQ(id->state, State::req_received) << "an event of a connection";
    }
    for (int i = 0; i < 50 && !link.timers.empty(); ++i) link.run_timer();
    ASSERT_EQ(real.state, State::established);
    EXPECT_LE(port.sent.size() - sent_before, 2 * in);
    EXPECT_EQ(std::ranges::count(port.sent, ip(2), &Port::Sent::to), to_peer) << "the peer hears of it";
    for (Id* id : std::exchange(taken, {&real}))
      if (id != &real) agent.destroy(*id);
  }
  EXPECT_GT(port.dropped[rnic::Dropped::wrong_source], 0) << "right numbers from a wrong address";
  EXPECT_GT(port.dropped[rnic::Dropped::unproved], 0);
  // The peer ends it, and is answered.
  CmMessage end = answer(MessageType::dreq, real.local_id);
  end.local_id = real.remote_id;
  arrive(end, ip(2));
  EXPECT_EQ(real.state, State::dreq_received);
  EXPECT_EQ(take(), &real);
}

// Against one that can also send from the peer's address, only the numbers help.
TEST_F(Forger, with_wrong_numbers_from_the_peers_address_changes_nothing) {
  Id& real = connect(ip(2), 0x02000009);
  for (const Kind& kind : kinds) {
    if (kind.type == MessageType::req || kind.type == MessageType::sidr_req) continue;  // another connection
    SCOPED_TRACE(kind.what);
    for (int i = 0; i < 2'000; ++i) {
      CmMessage message = draw(kind, real);
      if (message.remote_id == real.local_id) message.remote_id ^= 1;
      if (message.remote_id == 0 && message.local_id == real.remote_id) message.local_id ^= 1;
      port.arrive({ip(2), this_host, 0}, forged(kind, message, ip(2)));
    }
    ASSERT_EQ(real.state, State::established);
    ASSERT_FALSE(channel->readable());
  }
}

}  // namespace
}  // namespace weir::cm
