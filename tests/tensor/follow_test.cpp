// Followers: destinations are posted at the hub before versions exist for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
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

// Whether `holds` becomes true within 30 s.
bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!holds())
    if (std::chrono::steady_clock::now() >= deadline) return false;
  return true;
}

TEST(Follow, gives_each_version_once_and_in_order) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  const auto follower = peer->follow("a");
  EXPECT_EQ(follower->next(1ms).error().code, Errc::timed_out);
  for (std::uint64_t version = 1; version <= 50; ++version) {
    const std::size_t count = version < 25 ? 1000 : 200'000;  // metadata change once
    publish(*hub, "a", numbers(count, version));
    const Fetched got = must(follower->next(30s));
    EXPECT_EQ(got.version, version);
    EXPECT_EQ(values(got), *numbers(count, version));
    EXPECT_EQ(peer->stats().read_bytes, 0U);
  }
  EXPECT_EQ(follower->next(1ms).error().code, Errc::timed_out);
}

TEST(Follow, a_version_is_written_while_the_program_does_something_else) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  const auto follower = peer->follow("a", 0, 0, 4);
  publish(*hub, "a", numbers(1000, 1));
  must(follower->next(30s));
  publish(*hub, "a", numbers(1000, 2));
  must(follower->next(30s));  // the destinations now fit these metadata
  // One request for the first version, four after it arrived, and one after the second: all are at the hub.
  constexpr std::uint64_t requests = 6;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(follower->next(1ms).error().code, Errc::timed_out);
    return hub->stats().requests == requests;
  }));
  const std::uint64_t written = hub->stats().written;
  // No code of the reader runs, so versions arrive without further requests.
  for (std::uint64_t version = 3; version <= 5; ++version) {
    publish(*hub, "a", numbers(1000, version));
    eventually([&] { return hub->stats().written >= written + version - 2; });
    EXPECT_EQ(hub->stats().written, written + version - 2);
  }
  EXPECT_EQ(hub->stats().requests, requests);
  for (std::uint64_t version = 3; version <= 5; ++version) {
    const Fetched got = must(follower->next(30s));
    EXPECT_EQ(got.version, version);
    EXPECT_EQ(values(got), *numbers(1000, version));
  }
}

TEST(Follow, a_program_that_never_waits_gets_its_versions) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  const auto follower = peer->follow("a");
  for (std::uint64_t version = 1; version <= 5; ++version) {
    publish(*hub, "a", numbers(1000, version));
    std::uint64_t got = 0;
    EXPECT_TRUE(eventually([&] {
      const auto next = follower->next(0ns);
      if (next) got = next->version;
      return next.has_value();
    }));
    EXPECT_EQ(got, version);
  }
}

TEST(Follow, goes_on_with_the_newest_when_what_it_was_offered_was_superseded) {
  const auto hub = make_hub({.keep = 0});
  const auto peer = make_peer(*hub);
  const auto follower = peer->follow("a");
  const auto requested = [&] {
    EXPECT_EQ(follower->next(1ms).error().code, Errc::timed_out);
    return hub->stats().requests == 1;
  };
  ASSERT_TRUE(eventually(requested));
  publish(*hub, "a", numbers(1000, 1));
  // The reader does not answer, because it would have to allocate memory first.
  ASSERT_TRUE(eventually([&] { return hub->stats().metadata_updates == 1; }));
  publish(*hub, "a", numbers(1000, 2));
  ASSERT_TRUE(eventually([&] { return hub->stats().superseded == 1; }));
  const Fetched got = must(follower->next(30s));
  EXPECT_EQ(got.version, 2U);
  EXPECT_EQ(values(got), *numbers(1000, 2));
}

TEST(Follow, skips_what_came_while_the_program_was_busy_for_long) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  const auto follower = peer->follow("a");
  publish(*hub, "a", numbers(10, 1));
  EXPECT_EQ(must(follower->next(30s)).version, 1U);
  for (std::uint64_t version = 2; version <= 40; ++version) {
    publish(*hub, "a", numbers(10, version));
    (void)hub->stats();  // the hub's thread has processed the publication
  }
  std::uint64_t last = 1;
  int seen = 0;
  while (last < 40) {
    const Fetched got = must(follower->next(30s));
    ASSERT_GT(got.version, last);
    EXPECT_EQ(values(got), *numbers(10, got.version));
    last = got.version;
    ++seen;
  }
  EXPECT_LE(seen, 4);
}

TEST(Follow, hears_once_of_a_hub_that_goes_and_goes_on_with_the_next) {
  for (const bool by_tcp : {false, true}) {
    const std::string scheme = by_tcp ? "tcp" : "rdma";
    auto hub = must(Hub::listen(scheme + "://127.0.0.1:0", test_provider()));
    const std::string address = hub->address();
    const auto peer = make_peer(*hub);
    const auto follower = peer->follow("a");
    for (std::uint64_t version = 1; version <= 3; ++version) {
      publish(*hub, "a", numbers(10, version));
      EXPECT_EQ(must(follower->next(30s)).version, version);
    }
    const std::uint64_t old = hub->generation();
    hub.reset();
    const auto gone = follower->next(30s);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Errc::peer_gone) << gone.error().what;
    EXPECT_EQ(gone.error().generation, old);
    hub = must(Hub::listen(address, test_provider()));
    publish(*hub, "a", numbers(10, 9));
    const Fetched first = must(follower->next(30s));
    EXPECT_EQ(first.version, 1U);
    EXPECT_EQ(first.generation, hub->generation());
    EXPECT_EQ(values(first), *numbers(10, 9));
  }
}

TEST(Follow, is_never_torn_under_a_fast_writer_with_other_fetches_beside_it) {
  for (const bool by_tcp : {false, true}) {
    const std::string scheme = by_tcp ? "tcp" : "rdma";
    const auto hub = must(Hub::listen(scheme + "://127.0.0.1:0", test_provider(), {.keep = 1}));
    std::atomic<bool> stop = false;
    std::jthread writer([&] {
      for (std::uint64_t version = 1; !stop; ++version) {
        auto array = numbers(5000, version);
        auto* raw = array.get();
        const std::shared_ptr<const void> owner(raw, [array](auto* mine) { std::ranges::fill(*mine, 0); });
        must(hub->publish("a", testing_support::view_of(array), owner));
      }
    });
    const auto peer = make_peer(*hub);
    const auto follower = peer->follow("a", 0, 0, 3);
    std::uint64_t last = 0;
    for (int seen = 0; seen < 200; ++seen) {
      const Fetched got = must(follower->next(30s));
      ASSERT_GT(got.version, last);
      last = got.version;
      for (const std::uint64_t each : values(got)) ASSERT_EQ(each, last) << "torn";
      if (seen % 10 != 0) continue;
      const auto beside = peer->fetch("a", {.newer_than = last, .timeout = 30s});
      if (!beside) continue;  // superseded
      for (const std::uint64_t each : values(*beside)) ASSERT_EQ(each, beside->version) << "torn";
    }
    stop = true;
  }
}

TEST(Follow, may_outlive_its_peer_and_leaves_nothing_at_the_hub) {
  const auto hub = make_hub();
  publish(*hub, "a", numbers(10, 1));
  {
    auto peer = make_peer(*hub);
    const auto follower = peer->follow("a");
    peer.reset();
    EXPECT_EQ(must(follower->next(30s)).version, 1U);
  }
  eventually([&] { return hub->stats().connections == 0; });
  EXPECT_EQ(hub->stats().connections, 0U);
}

}  // namespace
}  // namespace weir::tensor
