// Requests from addresses that have proved nothing: what they get back, which may go to somebody else, and
// what they make us keep and look up.
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <chrono>
#include <vector>

#include "stepped_port.hpp"
#include "verbs/cm/packet_carrier.hpp"
#include "verbs/cm/requests/request_gate.hpp"

namespace weir::cm {
namespace {

using std::chrono::milliseconds;

class Unproved : public testing::Test {
 protected:
  void arrive(const CmMessage& message, const IpBytes& sender = theirs) {
    const auto mad =
        wire::encode_mad(mad_of(message, {.source = sender, .destination = ours, .guid = 1}, 42));
    port.arrive({sender, ours, 0}, mad);
  }
  static CmMessage their_request(MessageType type = MessageType::req, std::uint32_t number = their_id) {
    CmMessage message = request(type);
    message.local_id = number;
    std::swap(message.source.ip, message.destination.ip);
    return message;
  }
  // As the application's acceptance does.
  void accept(std::uint32_t number = their_id, std::uint32_t own = our_id) {
    CmMessage accepted = answer(MessageType::rep, number);
    accepted.local_id = own;
    carrier.send(dynamic_cast<RemoteHost&>(*from.back()), accepted);
  }
  void run_timers() {
    for (int i = 0; i < 100 && !link.timers.empty(); ++i) link.run_timer();
    EXPECT_TRUE(link.timers.empty());
  }

  SteppedLink link;
  Port port;
  std::vector<CmMessage> received;
  std::vector<link::NeighbourPtr> from;
  link::Slot owner = 0;
  std::function<void(const link::NeighbourPtr&, const CmMessage&)> on_received;
  PacketCarrier carrier{link, port,
                        [this](const link::NeighbourPtr& by, CmMessage message) {
                          from.push_back(by);
                          if (on_received) on_received(by, message);
                          received.push_back(std::move(message));
                        },
                        [this](const CmMessage&) { return owner; }, [](const link::NeighbourPtr&) {}};
};

TEST_F(Unproved, requester_gets_two_packets_for_one) {
  arrive(their_request());
  accept();
  run_timers();
  EXPECT_EQ(port.sent.size(), 2u);
}

TEST_F(Unproved, requester_gets_its_answer_when_it_asks_again) {
  arrive(their_request());
  accept();
  run_timers();
  port.sent.clear();
  arrive(their_request());
  ASSERT_EQ(port.sent.size(), 1u);
  run_timers();
  EXPECT_EQ(port.sent.size(), 2u);
}

TEST_F(Unproved, requester_that_is_ready_has_proved_its_address) {
  arrive(their_request());
  accept();
  arrive(answer(MessageType::rtu));
  run_timers();
  port.sent.clear();
  arrive(their_request(MessageType::req, their_id + 1));
  accept(their_id + 1, our_id + 1);
  run_timers();
  EXPECT_EQ(port.sent.size(), 16u);
}

// Only who gets our answers knows the number in them.
TEST_F(Unproved, requester_proves_nothing_by_another_number) {
  arrive(their_request());
  accept();
  for (std::uint32_t guess = our_id + 1; guess < our_id + 100; ++guess)
    arrive(answer(MessageType::rtu, guess));
  arrive(answer(MessageType::rtu), stranger);
  for (const auto& host : from) EXPECT_FALSE(dynamic_cast<RemoteHost&>(*host).is_proved());
}

TEST_F(Unproved, requester_that_is_refused_later_gets_no_third_packet) {
  arrive(their_request());
  accept();
  run_timers();
  CmMessage late = answer(MessageType::rej, their_id);
  late.local_id = our_id;
  carrier.send(dynamic_cast<RemoteHost&>(*from.back()), late);
  EXPECT_EQ(port.sent.size(), 2u);
}

// RFC 9000, 8.1: three times the bytes that came, before the address is validated.
TEST_F(Unproved, message_of_no_kind_is_answered_by_more_than_thrice_its_bytes) {
  on_received = [&](const link::NeighbourPtr& by, const CmMessage& message) {
    auto& host = dynamic_cast<RemoteHost&>(*by);
    if (message.type == MessageType::req) return accept(message.local_id, our_id);
    CmMessage refused = answer(MessageType::sidr_rep, message.local_id);
    refused.status = 1;
    if (message.type == MessageType::sidr_req) return carrier.send(host, refused);
    if (const auto nobody = answer_of_nobody(message)) carrier.send(host, *nobody);
  };
  for (const MessageType type :
       {MessageType::req, MessageType::mra, MessageType::rej, MessageType::rep, MessageType::rtu,
        MessageType::dreq, MessageType::drep, MessageType::sidr_req, MessageType::sidr_rep}) {
    SCOPED_TRACE(static_cast<int>(type));
    const bool asks = type == MessageType::req || type == MessageType::sidr_req;
    port.sent.clear();
    constexpr std::size_t copies = 3;
    for (std::size_t copy = 0; copy < copies; ++copy)
      arrive(asks ? their_request(type, their_id + 100) : answer(type, 0x01234567));
    run_timers();
    std::size_t out = 0;
    for (const auto& sent : port.sent) out += sent.mad.size();
    EXPECT_LE(out, 3 * copies * wire::mad_bytes);
    EXPECT_LE(port.sent.size(), 2 * copies);
  }
}

TEST_F(Unproved, messages_for_other_processes_dial_each_once) {
  owner = 3;
  port.dials = 1;
  for (int i = 0; i < 1'000; ++i) arrive(answer(MessageType::rtu));
  EXPECT_EQ(link.other->sent.size(), 1u);
  EXPECT_EQ(port.dropped[rnic::Dropped::over_budget], 999);
}

TEST_F(Unproved, messages_for_no_process_dial_none) {
  owner = 3;
  port.occupied = false;
  for (int i = 0; i < 1'000; ++i) arrive(answer(MessageType::mra));
  EXPECT_TRUE(link.other->sent.empty());
}

TEST_F(Unproved, requesters_are_not_remembered) {
  for (int i = 0; i < 5'000; ++i) {
    arrive(answer(MessageType::mra),
           {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, std::uint8_t(i >> 8), std::uint8_t(i)});
    from.clear();
  }
  EXPECT_LE(carrier.hosts_known(), 200u);
}

class Gate : public testing::Test {
 protected:
  bool asks(std::uint32_t number, milliseconds at) {
    CmMessage request;
    request.source.ip = theirs;
    request.destination.ip = ours;
    request.local_id = number;
    return gate.admits(request, begin + at);
  }
  void crowd(int half_open) {
    for (int i = 0; i < half_open; ++i) gate.opened();
  }
  const link::Clock::time_point begin{std::chrono::seconds(1'000)};
  RequestGate gate{{1, 2}};
};

TEST_F(Gate, admits_first_copies_while_few_are_half_open) {
  crowd(RequestGate::free_half_open - 1);
  EXPECT_TRUE(asks(1, milliseconds(0)));
  gate.opened();
  EXPECT_FALSE(asks(2, milliseconds(0)));
  gate.closed();
  EXPECT_TRUE(asks(3, milliseconds(0)));
}

TEST_F(Gate, admits_a_repeated_request_while_many_are_half_open) {
  crowd(RequestGate::free_half_open);
  struct Row {
    const char* what;
    milliseconds after;
    bool admitted;
  };
  std::uint32_t number = 0;
  for (const Row& row :
       {Row{"at once", milliseconds(0), false}, Row{"too soon", milliseconds(9), false},
        Row{"as we repeat", milliseconds(40), true}, Row{"as the kernel repeats", milliseconds(4'300), true},
        Row{"too late", milliseconds(10'001), false}}) {
    EXPECT_FALSE(asks(++number, milliseconds(0)));
    EXPECT_EQ(asks(number, row.after), row.admitted) << row.what;
  }
}

TEST_F(Gate, admits_nothing_beyond_its_limit) {
  crowd(RequestGate::max_half_open);
  EXPECT_FALSE(asks(1, milliseconds(0)));
  EXPECT_FALSE(asks(1, milliseconds(40)));
  gate.closed();
  EXPECT_TRUE(asks(1, milliseconds(80)));
}

TEST_F(Gate, answers_for_nobody_a_bounded_number_of_times) {
  int answers = 0;
  for (int i = 0; i < 20'000; ++i)
    answers += gate.may_answer_for_nobody(begin + std::chrono::microseconds(50 * i)) ? 1 : 0;
  EXPECT_GE(answers, RequestGate::answers_per_second);
  EXPECT_LE(answers, RequestGate::answers_per_second + RequestGate::answers_at_once);
}

TEST_F(Gate, admits_an_honest_repeat_under_a_flood_of_first_copies) {
  crowd(RequestGate::free_half_open);
  int honest = 0;
  for (int round = 0; round < 100; ++round) {
    const milliseconds at(round * 1'000);
    const auto number = static_cast<std::uint32_t>(1'000'000 + round);
    EXPECT_FALSE(asks(number, at));
    for (std::uint32_t i = 0; i < 1'000; ++i)  // 25,000 a second
      EXPECT_FALSE(asks(static_cast<std::uint32_t>(round) * 1'000 + i, at + milliseconds(20)));
    honest += asks(number, at + milliseconds(40)) ? 1 : 0;
  }
  EXPECT_GT(honest, 80);
}

}  // namespace
}  // namespace weir::cm
