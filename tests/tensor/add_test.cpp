// Pushes that are added at the hub, end to end, over each carrier: nothing is lost, nothing counted twice,
// and readers see whole sums.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using testing_support::make_hub;
using testing_support::make_peer;
using testing_support::must;
using testing_support::Numbers;
using testing_support::numbers;
using testing_support::publish;
using testing_support::test_provider;
using testing_support::values;
using testing_support::view_of;

constexpr DType float32{2, 32, 1};

struct AddedBy : testing::TestWithParam<const char*> {
  std::unique_ptr<Hub> hub = open();
  static std::unique_ptr<Hub> open() {
    if (std::string_view(GetParam()) == "rdma") return make_hub({.push = {.names = "*"}});
    return must(Hub::listen("tcp://127.0.0.1:0", test_provider(), {.push = {.names = "*"}}));
  }
};

// Larger than a step of the addition.
TEST_P(AddedBy, several_peers_at_once_lose_nothing) {
  constexpr std::size_t peers = 4, times = 5, count = 400'001;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i <= peers; ++i)
    threads.emplace_back([&, i] {
      const auto peer = make_peer(*hub);
      for (std::size_t n = 0; n < times; ++n) must(peer->add("sum", view_of(numbers(count, i))));
    });
  std::atomic<bool> over = false;
  std::thread reader([&] {
    const auto peer = make_peer(*hub);
    std::uint64_t last = 0;
    while (!over) {
      const auto got = peer->fetch("sum");
      if (!got) continue;
      const std::vector<std::uint64_t> all = values(*got);
      ASSERT_EQ(all.front(), all.back());
      ASSERT_GE(got->version, last);
      last = got->version;
    }
  });
  for (std::thread& each : threads) each.join();
  over = true;
  reader.join();
  const Held sum = must(hub->get("sum"));
  EXPECT_EQ(sum.version, peers * times);
  const std::vector<std::byte> bytes(sum.data.begin(), sum.data.end());
  std::vector<std::uint64_t> all(count);
  std::memcpy(all.data(), bytes.data(), bytes.size());
  for (const std::uint64_t each : all) ASSERT_EQ(each, times * (1 + 2 + 3 + 4));
}

// What the hub publishes lies in several pieces; what is pushed in one.
TEST_P(AddedBy, trees_are_added_tensor_by_tensor) {
  const auto large = std::make_shared<std::vector<float>>(10'000, 1.5F),
             small = std::make_shared<std::vector<float>>(3, 2.F);
  const std::vector<TensorView> views = {{"large", float32, {10'000}, large->data()},
                                         {"none", float32, {0}, nullptr},
                                         {"small", float32, {3}, small->data()}};
  const auto both = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(large, small);
  must(hub->publish_tree("model", views, both));
  const auto peer = make_peer(*hub);
  EXPECT_EQ(must(peer->add_tree("model", views)), 2U);
  const Held sum = must(hub->get("model"));
  const auto number = [&](std::size_t tensor, std::size_t i) {
    float value = 0;
    std::memcpy(&value, sum.data.data() + sum.metadata->tensors[tensor].offset + 4 * i, 4);
    return value;
  };
  for (std::size_t i = 0; i < 10'000; ++i) ASSERT_EQ(number(0, i), 3.F);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(number(2, i), 4.F);
  EXPECT_EQ(large->front(), 1.5F);  // what was published did not change
}

TEST_P(AddedBy, what_does_not_fit_is_refused_and_adds_nothing) {
  const auto peer = make_peer(*hub);
  publish(*hub, "a", numbers(4, 1));
  const auto add = [&](const TensorView& array) {
    const auto added = peer->add("a", array);
    return added ? Errc::ok : added.error().code;
  };
  EXPECT_EQ(add(view_of(numbers(5, 1))), Errc::shape_mismatch);
  const float four[4] = {};
  EXPECT_EQ(add({"", float32, {4}, four}), Errc::shape_mismatch);
  const bool truths[4] = {};
  EXPECT_EQ(add({"", {6, 8, 1}, {4}, truths}), Errc::bad_array);
  EXPECT_EQ(must(hub->get("a")).version, 1U);
  EXPECT_EQ(hub->stats().pushed_held_bytes, 0U);
  EXPECT_EQ(add(view_of(numbers(4, 1))), Errc::ok);
  EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(4, 2));
}

TEST_P(AddedBy, withdrawing_begins_a_new_sum) {
  const auto peer = make_peer(*hub);
  must(peer->add("a", view_of(numbers(4, 1))));
  EXPECT_TRUE(hub->withdraw("a"));
  EXPECT_EQ(must(peer->add("a", view_of(numbers(9, 5)))), 2U);
  EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(9, 5));
}

INSTANTIATE_TEST_SUITE_P(Carriers, AddedBy, testing::Values("rdma", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace weir::tensor
