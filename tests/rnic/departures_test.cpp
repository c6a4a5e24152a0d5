// Short packets of a thread leave in runs where it has several things to answer, and at once where it has
// one.
#include <numeric>
#include <thread>

#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

class DeparturesOf : public TwoHosts {
 protected:
  // Pairs with one completion queue at our end.
  void connect_pairs(std::size_t count) {
    cq = a_nic.adapter().create_cq(1024, 0);
    for (std::size_t i = 0; i < count; ++i) {
      ours.push_back(std::make_unique<Endpoint>(a_nic, EndpointOptions{.cq = cq}));
      theirs.push_back(std::make_unique<Endpoint>(b_nic));
      connect_hosts(*ours[i], *theirs[i]);
    }
    a_nic.on_packets = [this](const PacketRoute& route, std::span<const PacketRun> sent) {
      for (const PacketRun& run : sent) runs.push_back(run.bytes.size() / run.segment);
      take(route, sent);
    };
  }
  ~DeparturesOf() override {
    ours.clear();
    if (cq != nullptr) a_nic.adapter().destroy(cq);
  }
  // So many pairs have a message for us.
  void receive(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(ours[i]->recv(i, {into.sge(0, 64)}), PostResult::ok);
      ASSERT_EQ(theirs[i]->send(i, hers.sge(0, 64), 0), PostResult::ok);
    }
    carry();
    runs.clear();
  }
  std::size_t poll(std::size_t at_most = 64) {
    std::vector<WorkCompletion> room(at_most);
    return static_cast<std::size_t>(cq->poll(room));
  }
  // `length`: of the payload.
  void post(std::size_t pair, std::uint32_t length = 16, std::uint32_t flags = 0) {
    ASSERT_EQ(ours[pair]->write(pair, from.sge(0, length), to.addr(), to.key(), flags), PostResult::ok);
  }
  void post_to_all(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) post(i);
  }
  using Runs = std::vector<std::size_t>;

  CompletionQueue* cq = nullptr;
  std::vector<std::unique_ptr<Endpoint>> ours, theirs;
  Runs runs;  // how many packets were in each that we sent
  Memory from{a_nic, 4096}, into{a_nic, 4096}, hers{b_nic, 4096}, to{b_nic, 4096};
};

TEST_F(DeparturesOf, a_thread_that_found_one_completion_leave_at_once) {
  connect_pairs(2);
  receive(1);
  ASSERT_EQ(poll(), 1u);
  post(0);
  EXPECT_EQ(runs, (Runs{1}));
  post(1);
  EXPECT_EQ(runs, (Runs{1, 1}));
}

TEST_F(DeparturesOf, a_thread_with_many_to_answer_are_one_run) {
  connect_pairs(10);
  receive(10);
  ASSERT_EQ(poll(), 10u);
  post_to_all(9);
  EXPECT_EQ(runs, Runs{});
  post(9);
  EXPECT_EQ(runs, Runs{10});
}

TEST_F(DeparturesOf, a_thread_that_polls_one_by_one_are_runs_too) {
  connect_pairs(10);
  receive(10);
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(poll(1), 1u);
    post(i);
  }
  ASSERT_EQ(poll(), 0u);
  EXPECT_EQ(std::accumulate(runs.begin(), runs.end(), std::size_t{0}), 10u);
  EXPECT_LE(runs.size(), 4u);
}

TEST_F(DeparturesOf, mixed_lengths_are_a_run_of_each) {
  connect_pairs(9);
  receive(9);
  ASSERT_EQ(poll(), 9u);
  for (std::size_t i = 0; i < 9; ++i) post(i, i % 3 == 0 ? 16 : i % 3 == 1 ? 100 : 200);
  EXPECT_EQ(runs, (Runs{3, 3, 3}));
}

// Sixteen GETs in one message are longer than 512 bytes.
TEST_F(DeparturesOf, a_round_wait_if_they_are_a_whole_short_message) {
  connect_pairs(2);
  const struct {
    std::uint32_t length;
    bool waits;
  } rows[] = {{512, true}, {576, true}, {1024, true}, {1025, false}, {4096, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.length);
    receive(2);
    ASSERT_EQ(poll(), 2u);
    post(0, row.length);
    EXPECT_EQ(runs.empty(), row.waits);
    post(1, row.length);
    if (row.waits) EXPECT_EQ(runs, Runs{2});
    carry();
    while (poll() != 0) {
    }
  }
}

// What lets go what is held.
TEST_F(DeparturesOf, a_round_leave_when_it_ends_early) {
  connect_pairs(3);
  const struct {
    const char* named;
    std::function<void()> ends;
  } rows[] = {
      {"a poll in vain", [&] { ASSERT_EQ(poll(), 0u); }},
      {"arming", [&] { cq->arm(Armed::next); }},
      {"going to sleep", [&] { a_nic.adapter().departures().here().will_sleep(); }},
      {"time", [&] { host.advance(1'500'000); }},
      {"the end of the process", [&] { a_nic.adapter().finish_packets(); }},
      {"a long message", [&] { post(0, 4096); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.named);
    receive(3);
    ASSERT_EQ(poll(), 3u);
    post(0);
    ASSERT_EQ(runs, Runs{});
    row.ends();
    ASSERT_FALSE(runs.empty());
    EXPECT_EQ(runs.front(), 1u);
    carry();
    while (poll() != 0) {
    }
  }
}

TEST_F(DeparturesOf, a_queue_pair_leave_before_it_is_reset) {
  connect_pairs(3);
  receive(3);
  ASSERT_EQ(poll(), 3u);
  post(0);
  ASSERT_TRUE(ours[0]->modify(QpState::reset));
  EXPECT_EQ(runs, Runs{1});
}

TEST_F(DeparturesOf, a_thread_that_ends_leave) {
  connect_pairs(3);
  receive(3);
  std::thread([&] {
    ASSERT_EQ(poll(), 3u);
    post(0);
    EXPECT_EQ(runs, Runs{});
  }).join();
  EXPECT_EQ(runs, Runs{1});
}

TEST_F(DeparturesOf, one_queue_pair_keep_their_order) {
  connect_pairs(2);
  std::vector<std::uint32_t> psns;
  const auto look = [&] {
    for (const OnWire& packet : wire) {
      const auto parsed = wire::parse_transport(std::span(packet.bytes).first(packet.bytes.size() - 4));
      ASSERT_TRUE(parsed);
      if (parsed->bth.destination == theirs[0]->qpn().value() && !packet::Responder::is_answer(*parsed))
        psns.push_back((parsed->bth.psn - 0xfffff0) & 0xffffff);
    }
  };
  receive(2);
  ASSERT_EQ(poll(), 2u);
  // The second of 16 bytes may not go with the first, past that of 100; nor the last past what another thread
  // holds.
  for (const std::uint32_t length : {16u, 100u, 16u, 4000u}) post(0, length);
  std::thread([&] { post(0, 16); }).join();
  ASSERT_EQ(poll(), 0u);
  look();
  std::vector<std::uint32_t> expected(psns.size());
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(psns, expected);
  EXPECT_EQ(psns.size(), 4u + 4u);
}

TEST_F(DeparturesOf, answers_to_what_arrived_together_are_one_run) {
  connect_pairs(8);
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_EQ(ours[i]->recv(i, {into.sge(0, 64)}), PostResult::ok);
    ASSERT_EQ(theirs[i]->send(i, hers.sge(0, 64)), PostResult::ok);
  }
  std::vector<PacketDatagram> arrived;
  for (const OnWire& packet : wire) arrived.push_back(datagram_of(packet));
  a_nic.adapter().take_packets(arrived);
  EXPECT_EQ(runs, Runs{8});
}

// The thread that received a message has woken the program, and is not yet done with the others.
TEST_F(DeparturesOf, another_thread_leave_before_an_answer) {
  connect_pairs(1);
  ASSERT_EQ(ours[0]->recv(0, {into.sge(0, 64)}), PostResult::ok);
  ASSERT_EQ(theirs[0]->send(0, hers.sge(0, 64)), PostResult::ok);
  const OnWire message = wire.front();
  wire.clear();
  {
    const DepartureStage::Round round(a_nic.adapter().departures().shared_here());
    deliver(message);
    ASSERT_TRUE(wire.empty()) << "the acknowledgement waits for the end of the round";
    std::thread([&] { post(0); }).join();
  }
  std::vector<bool> answers;
  for (const OnWire& packet : wire) {
    const auto parsed = wire::parse_transport(std::span(packet.bytes).first(packet.bytes.size() - 4));
    ASSERT_TRUE(parsed);
    answers.push_back(packet::Responder::is_answer(*parsed));
  }
  EXPECT_EQ(answers, (std::vector{true, false}));
}

}  // namespace
}  // namespace weir::rnic::test
