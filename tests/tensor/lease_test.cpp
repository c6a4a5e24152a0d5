// Versions that are lent, end to end: how each lease ends, and that nobody reads what was taken back.
#include <gtest/gtest.h>

#include <thread>

#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using namespace std::chrono_literals;
using testing_support::make_hub;
using testing_support::make_peer;
using testing_support::must;
using testing_support::Numbers;
using testing_support::numbers;
using testing_support::publish;
using testing_support::test_provider;
using testing_support::values;
using testing_support::view_of;
using End = Lease::End;
using Words = std::vector<std::string>;

struct LeaseBy : testing::TestWithParam<const char*> {
  std::unique_ptr<Hub> hub = std::string_view(GetParam()) == "rdma"
                                 ? make_hub()
                                 : must(Hub::listen("tcp://127.0.0.1:0", test_provider()));
  std::unique_ptr<Peer> peer = make_peer(*hub);
  Numbers array = numbers(20'000, 7);

  std::shared_ptr<const Lease> lend(const LeaseSettings& settings) {
    return must(hub->lend("a", view_of(array), array, settings));
  }
  Lease::Outcome end_of(const Lease& lease) {
    const auto outcome = lease.wait(60s);
    if (!outcome) throw std::runtime_error("the lease does not end");
    return *outcome;
  }
  Errc code(const Result<void>& result) { return result ? Errc::ok : result.error().code; }
};

TEST_P(LeaseBy, ends_with_the_readers_word_and_the_memory_is_free) {
  const auto lease = lend({.time = 600s});
  EXPECT_EQ(lease->version(), 1U);
  EXPECT_FALSE(lease->wait(0ns));
  const Fetched got = must(peer->fetch("a"));
  EXPECT_EQ(values(got), *array);
  EXPECT_TRUE(peer->done("a", got, "7 tokens"));
  const Lease::Outcome outcome = end_of(*lease);
  EXPECT_EQ(outcome.end, End::done);
  EXPECT_EQ(outcome.words, Words{"7 tokens"});
  EXPECT_EQ(peer->fetch("a").error().code, Errc::not_published);
  peer.reset();  // what it holds of the version is gone with its session at the latest
  const std::weak_ptr<std::vector<std::uint64_t>> owner = std::exchange(array, nullptr);
  for (int i = 0; i < 6000 && !owner.expired(); ++i)
    (void)lease->wait(1ns), std::this_thread::yield(), hub->stats();
  EXPECT_TRUE(owner.expired());
}

TEST_P(LeaseBy, ends_when_nobody_comes_in_time) {
  const auto lease = lend({.time = 1ms});
  EXPECT_EQ(end_of(*lease).end, End::never_came);
  EXPECT_EQ(peer->fetch("a").error().code, Errc::not_published);
}

TEST_P(LeaseBy, ends_when_a_reader_came_and_never_said_done) {
  const auto lease = lend({.time = 300ms});
  const auto got = peer->fetch("a");
  const Lease::Outcome outcome = end_of(*lease);
  // Where the machine stood still until the time was over, nobody came.
  EXPECT_EQ(outcome.end, got ? End::left : End::never_came);
  EXPECT_EQ(outcome.words, Words{});
  if (got) {
    EXPECT_EQ(code(peer->done("a", *got)), Errc::superseded);
  }
}

TEST_P(LeaseBy, waits_for_all_readers_and_counts_each_once) {
  const auto lease = lend({.readers = 2, .time = 600s});
  const auto other = make_peer(*hub);
  const Fetched got = must(peer->fetch("a"));
  EXPECT_TRUE(peer->done("a", got, "one"));
  EXPECT_TRUE(peer->done("a", got, "one again"));
  EXPECT_FALSE(lease->wait(0ns));
  EXPECT_TRUE(other->done("a", got, "two"));
  const Lease::Outcome outcome = end_of(*lease);
  EXPECT_EQ(outcome.end, End::done);
  EXPECT_EQ(outcome.words, (Words{"one", "two"}));
}

TEST_P(LeaseBy, done_with_what_is_not_lent_is_an_error) {
  EXPECT_EQ(code(peer->done("a", 1, hub->generation(), "", 60s)), Errc::superseded);
  publish(*hub, "a", array);
  EXPECT_EQ(code(peer->done("a", 1, hub->generation(), "", 60s)), Errc::superseded);
  const auto lease = lend({.time = 600s});
  EXPECT_EQ(code(peer->done("a", 1, hub->generation(), "", 60s)), Errc::superseded);
  EXPECT_EQ(code(peer->done("a", 2, hub->generation() + 2, "", 60s)), Errc::peer_gone);
  EXPECT_EQ(code(peer->done("a", 2, hub->generation(), std::string(1025, 'x'), 60s)), Errc::bad_array);
  EXPECT_EQ(code(peer->done("a", 2, hub->generation(), std::string(1024, 'x'), 60s)), Errc::ok);
  EXPECT_EQ(end_of(*lease).words, Words{std::string(1024, 'x')});
}

TEST_P(LeaseBy, a_newer_version_does_not_end_it_nor_is_taken_back) {
  const auto lease = lend({.time = 600s});
  const Fetched got = must(peer->fetch("a"));
  publish(*hub, "a", numbers(3, 8));
  EXPECT_FALSE(lease->wait(0ns));
  EXPECT_TRUE(peer->done("a", got));
  EXPECT_EQ(end_of(*lease).end, End::done);
  EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(3, 8));
}

TEST_P(LeaseBy, ends_with_the_hub) {
  const auto lease = lend({.time = 600s});
  hub.reset();
  EXPECT_EQ(end_of(*lease).end, End::closed);
}

TEST_P(LeaseBy, without_readers_is_refused) {
  EXPECT_EQ(hub->lend("a", view_of(array), array, {.readers = 0}).error().code, Errc::bad_array);
}

INSTANTIATE_TEST_SUITE_P(Carriers, LeaseBy, testing::Values("rdma", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace weir::tensor
