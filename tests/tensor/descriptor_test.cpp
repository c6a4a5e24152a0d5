// Waiting by a descriptor: a program that only polls, and calls nothing that waits.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using namespace std::chrono_literals;
using testing_support::make_hub;
using testing_support::make_peer;
using testing_support::must;
using testing_support::numbers;
using testing_support::publish;
using testing_support::test_provider;
using testing_support::values;

// Takes a signal; false if none came in a minute.
bool wait_for(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  std::uint64_t signals = 0;
  return ::poll(&one, 1, 60'000) == 1 && ::read(descriptor, &signals, sizeof signals) == 8;
}
bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

struct DescriptorBy : testing::TestWithParam<const char*> {
  std::unique_ptr<Hub> hub = std::string_view(GetParam()) == "rdma"
                                 ? make_hub()
                                 : must(Hub::listen("tcp://127.0.0.1:0", test_provider()));
  std::unique_ptr<Peer> peer = make_peer(*hub);
  int descriptor = must(peer->descriptor());

  void until(const std::function<bool()>& done) {
    while (!done()) ASSERT_TRUE(wait_for(descriptor));
  }
  bool is_done(const std::shared_ptr<Fetch>& fetch) { return peer->wait_until_done(fetch, 0ns); }
};

TEST_P(DescriptorBy, is_signalled_when_fetches_are_done) {
  EXPECT_EQ(must(peer->descriptor()), descriptor);
  std::vector<std::shared_ptr<Fetch>> waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(peer->start("a" + std::to_string(i), {.timeout = 60s}));
  for (int i = 99; i >= 0; --i)
    publish(*hub, "a" + std::to_string(i), numbers(20'000, static_cast<std::uint64_t>(i)));
  until([&] { return std::ranges::all_of(waiting, [&](const auto& each) { return is_done(each); }); });
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(values(must(peer->wait(waiting[static_cast<std::size_t>(i)], 0ns))),
              *numbers(20'000, static_cast<std::uint64_t>(i)));
}

TEST_P(DescriptorBy, is_quiet_while_nothing_is_done) {
  while (is_readable(descriptor)) ASSERT_TRUE(wait_for(descriptor));
  const auto never = peer->start("a", {.timeout = 60s});
  const auto other = peer->start("none", {});  // answered, and so is the one before it: not yet
  until([&] { return is_done(other); });
  EXPECT_FALSE(is_done(never));
  peer->stats();  // and what the descriptor's thread does at the end of `other` is done, too
  while (is_readable(descriptor)) ASSERT_TRUE(wait_for(descriptor));
  peer->stats();
  EXPECT_FALSE(is_readable(descriptor));
  EXPECT_FALSE(peer->wait(never, 0ns));
}

TEST_P(DescriptorBy, tells_of_failures_and_of_the_hubs_end) {
  const auto bad = peer->start("", {});
  until([&] { return is_done(bad); });
  const auto waiting = peer->start("a", {.timeout = 60s});
  const auto there = peer->start("weir.names");
  until([&] { return is_done(there); });
  hub.reset();
  until([&] { return is_done(waiting); });
  EXPECT_EQ(peer->wait(waiting, 0ns).error().code, Errc::peer_gone);
}

TEST_P(DescriptorBy, followers_next_versions_are_signalled) {
  const auto follower = peer->follow("a");
  std::uint64_t last = 0;
  const auto next = [&] {
    const auto came = follower->next(0ns);
    if (came) last = came->version;
    return came.has_value();
  };
  EXPECT_FALSE(next());
  for (std::uint64_t version = 1; version <= 20; ++version) {
    publish(*hub, "a", numbers(3, version));
    until(next);
    EXPECT_EQ(last, version);
  }
}

// Their threads wait while the descriptor's thread works.
TEST_P(DescriptorBy, callers_that_wait_go_on_beside_it) {
  publish(*hub, "a", numbers(100, 7));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(100, 7));
    });
  for (std::thread& each : threads) each.join();
}

INSTANTIATE_TEST_SUITE_P(Carriers, DescriptorBy, testing::Values("rdma", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace weir::tensor
