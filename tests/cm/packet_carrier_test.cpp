// The connection manager's datagrams: which are repeated and until when, which are passed on, and what
// strangers cannot do. The link has a clock that the test moves; the port keeps what is sent.
#include "verbs/cm/packet_carrier.hpp"

#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "stepped_port.hpp"

namespace weir::cm {
namespace {

class Carrier : public testing::Test {
 protected:
  Carrier() { end_ = std::dynamic_pointer_cast<RemoteHost>(carrier.host({.ip = ours}, {.ip = theirs})); }

  void send(const CmMessage& message) { carrier.send(*end_, message); }
  // From a peer to us, with any content.
  void arrive(const CmMessage& message, const IpBytes& sender = theirs, std::uint64_t process = 0) {
    const auto mad =
        wire::encode_mad(mad_of(message, {.source = sender, .destination = ours, .guid = 1}, 42));
    port.arrive({sender, ours, process}, mad);
  }
  CmMessage their_request(MessageType type = MessageType::req) {
    CmMessage message = request(type);
    message.local_id = their_id;
    std::swap(message.source.ip, message.destination.ip);
    return message;
  }

  SteppedLink link;
  Port port;
  std::vector<CmMessage> received;
  std::vector<link::NeighbourPtr> from, ended;
  link::Slot owner = 0;
  PacketCarrier carrier{link, port,
                        [this](const link::NeighbourPtr& by, CmMessage message) {
                          from.push_back(by);
                          received.push_back(std::move(message));
                        },
                        [this](const CmMessage&) { return owner; },
                        [this](const link::NeighbourPtr& who) { ended.push_back(who); }};
  std::shared_ptr<RemoteHost> end_;
};

TEST_F(Carrier, repeats_a_request_ever_more_slowly_and_not_for_ever) {
  send(request());
  ASSERT_EQ(port.sent.size(), 1u);
  std::chrono::milliseconds before{0};
  std::size_t repeats = 0;
  for (; !link.timers.empty(); ++repeats) {
    ASSERT_LT(repeats, 100u);
    const auto pause = link.run_timer();
    EXPECT_GE(pause + std::chrono::milliseconds(5), before);
    before = pause;
  }
  EXPECT_EQ(port.sent.size(), 16u);
  for (const Port::Sent& each : port.sent)
    EXPECT_EQ(each.mad, port.sent[0].mad) << "not the same transaction";
}

struct Ends {
  MessageType asked, answered;
  bool stops;
};

class Answers : public Carrier, public testing::WithParamInterface<Ends> {};

INSTANTIATE_TEST_SUITE_P(All, Answers,
                         testing::Values(Ends{MessageType::req, MessageType::rep, true},
                                         Ends{MessageType::req, MessageType::rej, true},
                                         Ends{MessageType::req, MessageType::mra, false},
                                         Ends{MessageType::rep, MessageType::rtu, true},
                                         Ends{MessageType::rep, MessageType::rej, true},
                                         Ends{MessageType::dreq, MessageType::drep, true},
                                         Ends{MessageType::sidr_req, MessageType::sidr_rep, true},
                                         Ends{MessageType::sidr_req, MessageType::mra, false}));

TEST_P(Answers, end_the_repeating_of_what_they_answer) {
  CmMessage asked = request(GetParam().asked);
  if (asked.type == MessageType::rep || asked.type == MessageType::dreq) asked.remote_id = their_id;
  send(asked);
  arrive(answer(GetParam().answered));
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].type, GetParam().answered);
  while (!link.timers.empty() && port.sent.size() < 3) link.run_timer();
  EXPECT_EQ(port.sent.size() == 1, GetParam().stops);
}

TEST_P(Answers, of_strangers_end_nothing) {
  CmMessage asked = request(GetParam().asked);
  if (asked.type == MessageType::rep || asked.type == MessageType::dreq) asked.remote_id = their_id;
  send(asked);
  arrive(answer(GetParam().answered), stranger);
  link.run_timer();
  EXPECT_EQ(port.sent.size(), 2u) << "who was not asked has answered";
  ASSERT_EQ(from.size(), 1u);
  EXPECT_NE(from[0], end_) << "it was taken for the one who was asked";
}

// The reply that an MRA promises may be lost: a requester that stops asking would never get it.
TEST_F(Carrier, asks_on_slowly_behind_an_mra) {
  send(request());
  arrive(answer(MessageType::mra));
  link.run_timer();
  for (int repeats = 0; repeats < 30; ++repeats) {
    ASSERT_FALSE(link.timers.empty());
    EXPECT_NEAR(static_cast<double>(link.run_timer().count()), 2000, 50);
  }
  arrive(answer(MessageType::rej));
  const std::size_t sent = port.sent.size();
  while (!link.timers.empty()) link.run_timer();
  EXPECT_EQ(port.sent.size(), sent);
}

TEST_F(Carrier, gives_a_repeated_request_its_final_answer_again) {
  for (const MessageType type : {MessageType::req, MessageType::sidr_req}) {
    received.clear();
    port.sent.clear();
    arrive(their_request(type));
    ASSERT_EQ(received.size(), 1u);
    CmMessage refused = answer(type == MessageType::req ? MessageType::rej : MessageType::sidr_rep, their_id);
    refused.local_id = 0;
    refused.status = 28;
    send(refused);
    ASSERT_EQ(port.sent.size(), 1u);
    arrive(their_request(type));
    EXPECT_EQ(received.size(), 1u) << "the application would be asked twice";
    ASSERT_EQ(port.sent.size(), 2u);
    EXPECT_EQ(port.sent[1].mad, port.sent[0].mad);
    EXPECT_EQ(port.sent[1].to, theirs);
    // The same request number from another sender is another request.
    arrive(their_request(type), stranger);
    EXPECT_EQ(received.size(), 2u);
  }
}

TEST_F(Carrier, repeats_no_more_what_its_identifier_has_taken_back) {
  send(request());
  CmMessage given_up = answer(MessageType::rej, 0);
  given_up.local_id = our_id;
  send(given_up);
  const std::size_t sent = port.sent.size();
  while (!link.timers.empty()) link.run_timer();
  EXPECT_EQ(port.sent.size(), sent);
}

TEST_F(Carrier, says_an_end_that_was_not_answered_a_few_times_more_when_the_process_ends) {
  send(request());
  CmMessage end = answer(MessageType::dreq, their_id);
  end.local_id = our_id + 1;
  send(end);
  const auto said = port.sent.back().mad;
  port.sent.clear();
  carrier.finish();
  EXPECT_EQ(port.sent.size(), 2u);
  for (const auto& again : port.sent) EXPECT_EQ(again.mad, said);
}

TEST_F(Carrier, says_an_answered_end_no_more_when_the_process_ends) {
  CmMessage end = answer(MessageType::dreq, their_id);
  end.local_id = our_id;
  send(end);
  arrive(answer(MessageType::drep));
  port.sent.clear();
  carrier.finish();
  EXPECT_TRUE(port.sent.empty());
}

TEST_F(Carrier, passes_on_what_another_process_owns_and_takes_what_is_passed_on) {
  owner = 3;
  arrive(their_request());
  EXPECT_TRUE(received.empty());
  ASSERT_EQ(link.other->sent.size(), 1u);
  EXPECT_EQ(link.other->sent[0].first, link.passed_on_kind);
  link::Message message;
  message.body = link.other->sent[0].second;
  link.passed_on(link.other, std::move(message));
  ASSERT_EQ(received.size(), 1u) << "passed on again instead of taken";
  EXPECT_EQ(received[0].source.ip, theirs);
  EXPECT_EQ(received[0].destination.ip, ours);
  EXPECT_EQ(received[0].local_id, their_id);
  message.body.assign(100, std::byte{1});
  link.passed_on(link.other, std::move(message));
  EXPECT_EQ(received.size(), 1u) << "a body of another length was taken";
}

// Processes of one address share the port, so one that lives gets what is for one that has ended.
TEST_F(Carrier, answers_in_the_place_of_a_process_that_has_ended) {
  owner = 3;
  link.no_way = std::errc::no_such_device_or_address;
  struct Row {
    MessageType question;
    std::optional<MessageType> answer;
  };
  const Row rows[] = {{MessageType::dreq, MessageType::drep}, {MessageType::rtu, MessageType::rej},
                      {MessageType::rep, MessageType::rej},   {MessageType::mra, std::nullopt},
                      {MessageType::rej, std::nullopt},       {MessageType::drep, std::nullopt}};
  for (const Row& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.question));
    port.sent.clear();
    arrive(answer(row.question));
    ASSERT_EQ(port.sent.size(), row.answer ? 1u : 0u);
    if (!row.answer) continue;
    EXPECT_EQ(port.sent[0].to, theirs);
    const auto mad = wire::parse_mad(port.sent[0].mad);
    ASSERT_TRUE(mad);
    const auto said = message_of(*mad, {.source = theirs, .destination = ours});
    ASSERT_TRUE(said);
    EXPECT_EQ(said->message.type, *row.answer);
    EXPECT_EQ(said->message.local_id, our_id);
    EXPECT_EQ(said->message.remote_id, their_id);
    if (row.answer == MessageType::rej) {
      EXPECT_EQ(said->message.status, static_cast<std::uint16_t>(RejectReason::invalid_communication_id));
    }
  }
}

TEST_F(Carrier, says_nothing_for_a_process_that_does_not_answer) {
  owner = 3;
  link.no_way = std::errc::timed_out;  // stopped, say
  for (const MessageType type : {MessageType::dreq, MessageType::rtu, MessageType::rep}) arrive(answer(type));
  EXPECT_TRUE(port.sent.empty());
}

TEST_F(Carrier, says_nothing_for_a_process_of_another_runtime_directory) {
  owner = 3;
  link.no_way = std::errc::no_such_device_or_address;
  link.free = false;  // in the network namespace
  for (const MessageType type : {MessageType::dreq, MessageType::rtu, MessageType::rep}) arrive(answer(type));
  EXPECT_TRUE(port.sent.empty());
}

TEST_F(Carrier, drops_what_is_cut_or_changed_into_nonsense) {
  const auto good =
      wire::encode_mad(mad_of(their_request(), {.source = theirs, .destination = ours, .guid = 1}, 42));
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{24}, good.size() - 1})
    port.arrive({theirs, ours}, std::span(good).first(bytes));
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}}) {  // base, class
    auto changed = good;
    changed[at] ^= std::byte{0x40};
    port.arrive({theirs, ours}, changed);
  }
  EXPECT_TRUE(received.empty());
  EXPECT_TRUE(port.sent.empty());
  port.arrive({theirs, ours}, good);
  EXPECT_EQ(received.size(), 1u);
}

TEST_F(Carrier, says_of_which_type_the_connection_is_and_takes_no_type_that_it_does_not_know) {
  for (const Transport transport : {Transport::reliable, Transport::unreliable, Transport::extended}) {
    SCOPED_TRACE(static_cast<int>(transport));
    CmMessage asked = their_request(), answered = answer(MessageType::rep);
    asked.transport = answered.transport = transport;
    asked.qpn = answered.qpn = 0x123456;
    arrive(asked);
    ASSERT_FALSE(received.empty());
    EXPECT_EQ(received.back().transport, transport);
    EXPECT_EQ(received.back().qpn, 0x123456u);
    send(request());
    arrive(answered);
    EXPECT_EQ(received.back().type, MessageType::rep);
    EXPECT_EQ(received.back().qpn, 0x123456u);
  }
  const std::size_t before = received.size();
  wire::Mad mad = mad_of(their_request(), {.source = theirs, .destination = ours, .guid = 1}, 42);
  auto& req = std::get<wire::CmReq>(mad.message);
  for (const auto& [transport, extended] : {std::pair{2, 0}, std::pair{3, 0}, std::pair{3, 2}}) {
    req.transport = static_cast<std::uint8_t>(transport);
    req.extended_transport = static_cast<std::uint8_t>(extended);
    port.arrive({theirs, ours}, wire::encode_mad(mad));
  }
  EXPECT_EQ(received.size(), before);
}

constexpr std::uint64_t one_process = 5, other_process = 6;

TEST_P(Answers, of_other_processes_of_a_user_end_nothing) {
  const auto asked_of =
      std::dynamic_pointer_cast<RemoteHost>(carrier.host({.ip = ours}, {.ip = theirs}, one_process));
  CmMessage asked = request(GetParam().asked);
  if (asked.type == MessageType::rep || asked.type == MessageType::dreq) asked.remote_id = their_id;
  carrier.send(*asked_of, asked);
  ASSERT_EQ(port.sent.size(), 1u);
  EXPECT_EQ(port.sent[0].process, one_process);
  arrive(answer(GetParam().answered), theirs, other_process);
  arrive(answer(GetParam().answered), theirs);
  link.run_timer();
  EXPECT_EQ(port.sent.size(), 2u) << "who was not asked has answered";
  for (const auto& by : from) EXPECT_NE(by, asked_of) << "it was taken for the one who was asked";
  arrive(answer(GetParam().answered), theirs, one_process);
  EXPECT_EQ(from.back(), asked_of);
}

TEST_F(Carrier, finds_the_process_that_listens_on_the_address_before_one_that_listens_on_all) {
  const auto at = [](const IpBytes& address, std::uint16_t number) {
    Endpoint endpoint;
    endpoint.ip = address;
    endpoint.port = number;
    return endpoint;
  };
  constexpr IpBytes v6 = {0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  struct Row {
    const char* name;
    IpBytes listens_at;
    std::uint16_t port;
    bool v6_only;
  };
  // The number of a process is its row here, from 1.
  const Row rows[] = {{"one address", ours, 1, false},          {"another address", theirs, 1, false},
                      {"all of IPv4", any_v4().ip, 1, false},   {"all of IPv6", any_v6().ip, 1, true},
                      {"all of both", any_v6().ip, 2, false},   {"one address", ours, 2, false},
                      {"the same again", any_v4().ip, 1, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    ++port.serving;
    const bool first = port.serving < std::size(rows);
    const Binding listener{RDMA_PS_TCP, at(row.listens_at, row.port), {.v6_only = row.v6_only}};
    EXPECT_EQ(carrier.other_user_at(listener), first ? std::nullopt : std::optional(port.user_of_services));
    EXPECT_EQ(carrier.serve(listener), first);
  }
  const auto found = [&](const Endpoint& destination, std::uint16_t space = RDMA_PS_TCP) {
    std::uint64_t process = 0;
    const bool any = carrier.find_server(space, destination, [&](std::uint64_t who) { process = who; });
    EXPECT_EQ(any, process != 0);
    return process;
  };
  EXPECT_EQ(found(at(ours, 1)), 1u);
  EXPECT_EQ(found(at(theirs, 1)), 2u);
  EXPECT_EQ(found(at(stranger, 1)), 3u);
  EXPECT_EQ(found(at(v6, 1)), 4u);
  EXPECT_EQ(found(at(v6, 2)), 5u);
  EXPECT_EQ(found(at(stranger, 2)), 5u) << "a listener on :: takes IPv4 too";
  EXPECT_EQ(found(at(ours, 2)), 6u);
  EXPECT_EQ(found(at(ours, 3)), 0u);
  EXPECT_EQ(found(at(ours, 1), RDMA_PS_UDP), 0u);
  carrier.stop_serving({RDMA_PS_TCP, at(ours, 1), {}});
  EXPECT_EQ(found(at(ours, 1)), 3u);
}

TEST_F(Carrier, hears_of_the_end_of_another_users_process_and_asks_it_no_more) {
  const auto one = carrier.host({.ip = ours}, {.ip = theirs}, one_process),
             other = carrier.host({.ip = ours}, {.ip = theirs}, other_process);
  carrier.send(dynamic_cast<RemoteHost&>(*one), request());
  port.end(one_process);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0], one);
  EXPECT_FALSE(one->alive());
  EXPECT_TRUE(other->alive());
  while (!link.timers.empty()) link.run_timer();
  EXPECT_EQ(port.sent.size(), 1u);
}

TEST_F(Carrier, takes_what_another_users_process_says_to_us_and_passes_nothing_on_for_it) {
  owner = 3;
  arrive(their_request(), theirs, one_process);
  EXPECT_EQ(received.size(), 1u);
  EXPECT_TRUE(link.other->sent.empty());
  arrive(their_request(), stranger, one_process);
  EXPECT_EQ(received.size(), 1u) << "an address that is none of this host's was believed";
}

TEST_F(Carrier, says_on_which_link_a_link_local_peer_is) {
  IpBytes here{0xfe, 0x80}, there = here;
  here[15] = 1;
  there[15] = 2;
  CmMessage message = their_request();
  message.source.ip = there;
  message.destination.ip = here;
  port.arrive({there, here},
              wire::encode_mad(mad_of(message, {.source = there, .destination = here, .guid = 1}, 1)));
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].source.scope_id, 7u);
  EXPECT_EQ(received[0].destination.scope_id, 7u);
}

}  // namespace
}  // namespace weir::cm
