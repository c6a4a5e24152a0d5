// Pushing end to end: a push becomes a version like a published one, within the hub's limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
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
using testing_support::values;
using testing_support::view_of;

std::vector<std::uint64_t> numbers_in(const Held& held) {
  std::vector<std::uint64_t> all(held.data.size() / 8);
  if (!all.empty()) std::memcpy(all.data(), held.data.data(), all.size() * 8);
  return all;
}

struct PushedSizes : testing::TestWithParam<std::size_t> {};

TEST_P(PushedSizes, arrive_whole_at_the_hub_and_at_its_readers) {
  const auto hub = make_hub({.push = {.names = "*"}});
  const auto pusher = make_peer(*hub);
  const auto reader = make_peer(*hub);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const Numbers array = numbers(GetParam(), 0);
    std::iota(array->begin(), array->end(), round);
    EXPECT_EQ(must(pusher->push("grad", view_of(array))), round);
    const Held held = must(hub->get("grad"));
    EXPECT_EQ(held.version, round);
    EXPECT_EQ(numbers_in(held), *array);
    const Numbers before = numbers(GetParam(), 0);
    std::ranges::copy(*array, before->begin());
    std::ranges::fill(*array, 0);  // the memory is ours again
    EXPECT_EQ(values(must(reader->fetch("grad"))), *before);
  }
  EXPECT_EQ(hub->stats().pushes, 3U);
  EXPECT_EQ(pusher->stats().pushes, 3U);
  EXPECT_EQ(pusher->stats().pushed_bytes, 3 * 8 * GetParam());
}
INSTANTIATE_TEST_SUITE_P(Arrays, PushedSizes, testing::Values(0, 1, 2048, 2049, 1 << 17, 3'000'001));

TEST(Push, a_tree_whose_metadata_are_long_comes_as_one_version) {
  const auto hub = make_hub({.push = {.names = "*"}});
  const auto pusher = make_peer(*hub);
  std::vector<Numbers> arrays;
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < 300; ++i) {
    arrays.push_back(numbers(i % 7 == 0 ? 3000 + i : i % 50, i));
    views.push_back(view_of(arrays.back(), "layer" + std::to_string(i)));
  }
  EXPECT_EQ(must(pusher->push_tree("model", views)), 1U);
  const Held held = must(hub->get("model"));
  ASSERT_EQ(held.metadata->tensors.size(), 300U);
  for (std::size_t i = 0; i < 300; ++i) {
    const TensorInfo& info = held.metadata->tensors[i];
    ASSERT_EQ(*info.bytes(), arrays[i]->size() * 8);
    EXPECT_TRUE(std::ranges::equal(held.data.subspan(info.offset, *info.bytes()),
                                   std::as_bytes(std::span(*arrays[i]))))
        << i;
  }
}

TEST(Push, is_refused_unless_the_hub_was_opened_for_it) {
  struct Row {
    PushSettings settings;
    const char* name;
    Errc expected;
  };
  const Row rows[] = {
      {{}, "a", Errc::refused},
      {{.names = "grad/*"}, "a", Errc::refused},
      {{.names = "*", .from = "203.0.113.7"}, "a", Errc::refused},
      {{.names = "*"}, "weir.names", Errc::bad_array},
      {{.names = "*", .bytes = 5000}, "a", Errc::too_much},
      {{.names = "*", .bytes_per_peer = 5000}, "a", Errc::too_much},
      {{.names = "grad/*,a"}, "a", Errc::ok},
  };
  for (const Row& row : rows) {
    const auto hub = make_hub({.push = row.settings});
    const auto peer = make_peer(*hub);
    for (int round = 0; round < 3; ++round) {
      const auto pushed = peer->push(row.name, view_of(numbers(1000, 1)));
      EXPECT_EQ(pushed ? Errc::ok : pushed.error().code, row.expected) << row.name << row.settings.names;
    }
    EXPECT_EQ(peer->stats().connects, 1U);  // a refused push does not cost the connection
    if (row.expected != Errc::ok) {
      EXPECT_EQ(hub->stats().pushed_held_bytes, 0U);
    }
  }
}

TEST(Push, holds_of_the_budgets_what_is_still_there) {
  const auto hub = make_hub({.push = {.names = "*", .bytes = 50'000, .bytes_per_peer = 30'000}});
  const auto first = make_peer(*hub);
  auto second = make_peer(*hub);
  const Numbers array = numbers(1000, 1);
  for (int round = 0; round < 20; ++round)
    must(first->push("a", view_of(array)));  // each replaces the previous one
  must(first->push("b", view_of(array)));
  must(first->push("c", view_of(array)));
  const auto full = first->push("d", view_of(array));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Errc::too_much);
  EXPECT_NE(full.error().what.find("push_bytes_per_peer"), std::string::npos) << full.error().what;
  must(second->push("d", view_of(array)));
  must(second->push("e", view_of(array)));
  const auto all = second->push("f", view_of(array));
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().what.find("push_bytes)"), std::string::npos) << all.error().what;
  // When the hub's own program replaces or withdraws a version, its charge is returned.
  publish(*hub, "d", numbers(1, 1));
  EXPECT_TRUE(hub->withdraw("e"));
  must(second->push("f", view_of(array)));
  const auto held = must(hub->get("f"));
  hub->withdraw("f");
  EXPECT_EQ(numbers_in(held), *array);
}

TEST(Push, wakes_whoever_waits_at_the_hub_and_elsewhere) {
  const auto hub = make_hub({.push = {.names = "*"}});
  const auto pusher = make_peer(*hub);
  const auto reader = make_peer(*hub);
  const auto waiting = reader->start("a", {.timeout = 30s});
  std::atomic<std::uint64_t> seen = 0;
  std::jthread program([&] { seen = must(hub->get("a", 0, 30s)).version; });
  must(pusher->push("a", view_of(numbers(10, 3))));
  EXPECT_EQ(values(must(reader->wait(waiting, 30s))), *numbers(10, 3));
  program.join();
  EXPECT_EQ(seen, 1U);
  EXPECT_EQ(hub->get("a", 1, 1ms).error().code, Errc::timed_out);
  EXPECT_EQ(hub->get("b", 0, 1ms).error().code, Errc::not_published);
}

// Two pushers write the same name as fast as they can; every fetch gives one whole push.
TEST(Push, is_never_torn_under_two_pushers) {
  const auto hub = make_hub({.keep = 1, .push = {.names = "*"}});
  std::atomic<bool> stop = false;
  std::vector<std::jthread> pushers;
  for (std::uint64_t which = 0; which < 2; ++which)
    pushers.emplace_back([&, which] {
      const auto peer = make_peer(*hub);
      const Numbers array = numbers(10'000, 0);
      for (std::uint64_t round = 1; !stop; ++round) {
        std::ranges::fill(*array, 2 * round + which);
        must(peer->push("a", view_of(array)));
      }
    });
  for (const std::uint64_t read_from : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const auto reader = make_peer(*hub, {.limits = {.read_from_bytes = read_from}});
    std::uint64_t last = 0;
    int failures = 0;
    for (int seen = 0; seen < 100;) {
      const auto fetched = reader->fetch("a", {.newer_than = last, .timeout = 30s});
      if (!fetched) {
        ASSERT_TRUE(fetched.error().code == Errc::superseded || fetched.error().code == Errc::peer_gone)
            << fetched.error().what;
        ASSERT_LT(++failures, 100'000);
        continue;
      }
      ASSERT_GT(fetched->version, last);
      last = fetched->version;
      const std::vector<std::uint64_t> all = values(*fetched);
      for (const std::uint64_t each : all) ASSERT_EQ(each, all[0]) << "torn";
      ++seen;
    }
  }
  stop = true;
}

}  // namespace
}  // namespace weir::tensor
