// Publishing and fetching end to end: every size in every way, versions, changing metadata, waiting, and what
// a peer sees when the hub goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

Numbers counted(std::size_t count, std::uint64_t from) {
  Numbers array = numbers(count, 0);
  std::iota(array->begin(), array->end(), from);
  return array;
}

struct Sizes : testing::TestWithParam<std::size_t> {};

TEST_P(Sizes, arrive_whole_by_write_and_by_read) {
  const auto hub = make_hub();
  for (const std::uint64_t read_from : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const auto peer = make_peer(*hub, {.limits = {.read_from_bytes = read_from}});
    for (std::uint64_t round = 1; round <= 3; ++round) {
      const Numbers array = counted(GetParam(), round * 1000);
      const std::uint64_t version = publish(*hub, "a", array);
      const Fetched fetched = must(peer->fetch("a"));
      EXPECT_EQ(fetched.version, version);
      EXPECT_EQ(fetched.generation, hub->generation());
      EXPECT_EQ(values(fetched), *array);
    }
    EXPECT_EQ(peer->stats().metadata_updates, 1U);
  }
}
INSTANTIATE_TEST_SUITE_P(Arrays, Sizes, testing::Values(0, 1, 512, 2048, 2049, 8192, 1 << 17, 3'000'001));

TEST(Fetch, into_memory_of_the_caller) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  const Numbers array = counted(100'000, 5);
  publish(*hub, "a", array);
  Numbers mine = numbers(array->size(), 0);
  for (int round = 0; round < 3; ++round) {
    std::ranges::fill(*mine, 0);
    const FetchOptions into{
        .out = Out{testing_support::uint64, {mine->size()}, std::as_writable_bytes(std::span(*mine))}};
    const Fetched fetched = must(peer->fetch("a", into));
    EXPECT_EQ(*mine, *array);
    EXPECT_EQ(fetched.memory, nullptr);
  }
}

TEST(Fetch, refuses_an_out_of_another_shape_and_goes_on) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  publish(*hub, "a", counted(100, 5));
  Numbers mine = numbers(99, 7);
  const FetchOptions into{
      .out = Out{testing_support::uint64, {mine->size()}, std::as_writable_bytes(std::span(*mine))}};
  for (int round = 0; round < 3; ++round) {
    const auto failed = peer->fetch("a", into);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::shape_mismatch) << failed.error().what;
    EXPECT_NE(failed.error().what.find("uint64 (100)"), std::string::npos) << failed.error().what;
  }
  EXPECT_EQ(*mine, *numbers(99, 7));
  EXPECT_EQ(values(must(peer->fetch("a"))), *counted(100, 5));
}

TEST(Fetch, hears_of_changed_metadata_by_an_update) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  for (const std::size_t count : {10U, 10U, 50'000U, 50'000U, 0U, 10U}) {
    const Numbers array = counted(count, count);
    publish(*hub, "a", array);
    EXPECT_EQ(values(must(peer->fetch("a"))), *array);
  }
  EXPECT_EQ(peer->stats().metadata_updates, 4U);
  EXPECT_EQ(hub->stats().metadata_updates, 4U);
}

TEST(Fetch, says_what_is_not_published) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  const auto failed = peer->fetch("nothing");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::not_published);
  publish(*hub, "a", numbers(1, 1));
  const auto no_newer = peer->fetch("a", {.newer_than = 1});
  ASSERT_FALSE(no_newer);
  EXPECT_EQ(no_newer.error().code, Errc::timed_out);
  EXPECT_TRUE(hub->withdraw("a"));
  EXPECT_EQ(peer->fetch("a").error().code, Errc::not_published);
}

TEST(Fetch, waits_for_a_newer_version) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  publish(*hub, "a", numbers(10, 1));
  must(peer->fetch("a"));
  const auto next = peer->start("a", {.newer_than = 1, .timeout = 30s});
  const auto unborn = peer->start("b", {.timeout = 30s});
  EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(10, 1));  // not delayed by the waiting ones
  publish(*hub, "b", numbers(5, 7));
  publish(*hub, "a", numbers(10, 2));
  const Fetched fetched = must(peer->wait(next, 30s));
  EXPECT_EQ(fetched.version, 2U);
  EXPECT_EQ(values(fetched), *numbers(10, 2));
  EXPECT_EQ(values(must(peer->wait(unborn, 30s))), *numbers(5, 7));
}

TEST(Fetch, gives_up_waiting_at_its_deadline) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  const auto failed = peer->fetch("a", {.timeout = 20ms});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::timed_out) << failed.error().what;
  publish(*hub, "a", numbers(10, 1));
  EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(10, 1));
  EXPECT_EQ(peer->stats().connects, 1U);
}

TEST(Fetch, more_than_fit_under_way_wait_for_their_turn) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  for (std::uint64_t i = 0; i < 200; ++i) publish(*hub, "a" + std::to_string(i), numbers(1000 + i, i));
  std::vector<std::shared_ptr<Fetch>> all;
  for (std::uint64_t i = 0; i < 200; ++i) all.push_back(peer->start("a" + std::to_string(i)));
  for (std::uint64_t i = 0; i < 200; ++i)
    EXPECT_EQ(values(must(peer->wait(all[i], 60s))), *numbers(1000 + i, i)) << i;
}

TEST(Fetch, many_at_once_share_a_message) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  std::vector<Wanted> wanted;
  for (std::uint64_t i = 0; i < wire::slots; ++i) {
    publish(*hub, std::to_string(i), numbers(512, i));
    wanted.push_back({std::to_string(i)});
  }
  const auto fetch_all = [&] {
    const std::vector<Result<Fetched>> got = peer->fetch_many(wanted);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::uint64_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i]) << got[i].error().what;
      ASSERT_EQ(values(*got[i]), *numbers(512, i));
    }
  };
  fetch_all();  // learns names and metadata
  const HubStats before = hub->stats();
  fetch_all();
  const HubStats after = hub->stats();
  EXPECT_EQ(after.requests - before.requests, wire::slots);
  EXPECT_EQ(after.frames - before.frames, 1U);
}

TEST(Fetch, many_at_once_have_each_an_outcome_of_their_own) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  publish(*hub, "a", numbers(3, 1));
  std::vector<std::uint64_t> into(3);
  const Out out{testing_support::uint64, {3}, std::as_writable_bytes(std::span(into))},
      wrong{testing_support::uint64, {4}, out.memory};
  const std::vector<Result<Fetched>> got =
      peer->fetch_many({{"a"},
                        {"none"},
                        {""},
                        {"a", {.out = out}},
                        {"a", {.out = wrong}},
                        {"later", {.timeout = std::chrono::milliseconds(1)}},
                        {"a", {.newer_than = 1}}});
  const std::optional<Errc> expected[] = {std::nullopt,   Errc::not_published,  Errc::bad_array,
                                          std::nullopt,   Errc::shape_mismatch, Errc::timed_out,
                                          Errc::timed_out};
  ASSERT_EQ(got.size(), std::size(expected));
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i] ? std::nullopt : std::optional(got[i].error().code), expected[i]) << i;
  EXPECT_EQ(into, *numbers(3, 1));
  EXPECT_TRUE(peer->fetch_many({}).empty());
}

TEST(Fetch, threads_share_a_peer) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  for (std::uint64_t i = 0; i < 4; ++i) publish(*hub, "a" + std::to_string(i), numbers(5000, i));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (int round = 0; round < 200; ++round) {
          const auto fetched = peer->fetch("a" + std::to_string(i));
          wrong += !fetched || values(*fetched) != *numbers(5000, i);
        }
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(peer->stats().fetches, 800U);
}

// The writer overwrites memory as soon as it is released, so a version released too early would show.
TEST(Fetch, is_never_torn_and_never_goes_back_under_a_fast_writer) {
  const auto hub = make_hub({.keep = 1});
  std::atomic<bool> stop = false;
  std::jthread writer([&] {
    // The owner's destructor does what a program does with memory that it gets back.
    for (std::uint64_t version = 1; !stop; ++version) {
      Numbers array = numbers(10'000, version);
      std::vector<std::uint64_t>* raw = array.get();
      const std::shared_ptr<const void> owner(raw, [array](auto* mine) { std::ranges::fill(*mine, 0); });
      must(hub->publish("a", view_of(array), owner));
    }
  });
  for (const std::uint64_t read_from : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const auto peer = make_peer(*hub, {.limits = {.read_from_bytes = read_from}});
    std::uint64_t last = 0;
    int seen = 0, superseded = 0;
    while (seen < 100) {
      const auto fetched = peer->fetch("a", {.newer_than = last, .timeout = 30s});
      if (!fetched) {
        // A reader that READs may lose its version, and with it its connection.
        ASSERT_TRUE(fetched.error().code == Errc::superseded || fetched.error().code == Errc::peer_gone)
            << fetched.error().what;
        ASSERT_LT(++superseded, 100'000);
        continue;
      }
      ASSERT_GT(fetched->version, last);
      last = fetched->version;
      for (const std::uint64_t each : values(*fetched)) ASSERT_EQ(each, last) << "torn";
      ++seen;
    }
  }
  stop = true;
}

TEST(Fetch, hears_which_hub_is_gone_and_connects_to_the_next) {
  auto hub = make_hub();
  const std::string address = hub->address();
  const auto peer = make_peer(*hub);
  publish(*hub, "a", numbers(10, 1));
  must(peer->fetch("a"));
  const std::uint64_t old = hub->generation();
  const auto waiting = peer->start("a", {.newer_than = 1, .timeout = 30s});
  hub.reset();
  const auto gone = peer->wait(waiting, 30s);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::peer_gone) << gone.error().what;
  EXPECT_EQ(gone.error().generation, old);
  EXPECT_EQ(peer->fetch("a").error().code, Errc::unreachable);

  auto next = must(Hub::listen(address, testing_support::test_provider()));
  publish(*next, "a", numbers(10, 2));
  // Version 1 of the old hub has nothing to do with version 1 of this one.
  const Fetched fetched = must(peer->fetch("a", {.newer_than = 1, .generation = old}));
  EXPECT_EQ(fetched.version, 1U);
  EXPECT_EQ(fetched.generation, next->generation());
  EXPECT_EQ(values(fetched), *numbers(10, 2));
}

TEST(Fetch, a_tree_comes_as_one_version) {
  const auto hub = make_hub();
  for (const std::uint64_t read_from : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const auto peer = make_peer(*hub, {.limits = {.read_from_bytes = read_from}});
    std::vector<Numbers> arrays;
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < 300; ++i) {
      arrays.push_back(counted(i % 7 == 0 ? 3000 + i : i % 50, i));
      views.push_back(view_of(arrays.back(), "layer" + std::to_string(i)));
    }
    must(hub->publish_tree("model", views, nullptr));
    const Fetched fetched = must(peer->fetch("model"));
    ASSERT_EQ(fetched.metadata->tensors.size(), 300U);
    for (std::size_t i = 0; i < 300; ++i) {
      const TensorInfo& info = fetched.metadata->tensors[i];
      EXPECT_EQ(info.name, "layer" + std::to_string(i));
      EXPECT_EQ(info.offset % 64, 0U);
      ASSERT_EQ(*info.bytes(), arrays[i]->size() * 8);
      EXPECT_TRUE(std::ranges::equal(fetched.data.subspan(info.offset, *info.bytes()),
                                     std::as_writable_bytes(std::span(*arrays[i]))))
          << i;
    }
  }
}

TEST(Hub, lets_go_of_what_nobody_reads) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  Numbers first = numbers(100, 1);
  const std::weak_ptr<std::vector<std::uint64_t>> seen = first;
  publish(*hub, "a", first);
  first.reset();
  EXPECT_FALSE(seen.expired());
  must(peer->fetch("a"));
  publish(*hub, "a", numbers(100, 2));
  must(peer->fetch("a"));  // the hub has now seen the previous completion
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(hub->live_bytes(), 800U);
}

TEST(Hub, says_what_it_cannot_publish) {
  const auto hub = make_hub();
  const Numbers array = numbers(1, 1);
  struct Row {
    std::string name;
    TensorView view;
  };
  const Row rows[] = {
      {"", view_of(array)},
      {std::string(1025, 'n'), view_of(array)},
      {"a", {"", {1, 4, 1}, {1}, array->data()}},
      {"a", {"", testing_support::uint64, {1ULL << 40, 1ULL << 40}, array->data()}},
      {"a", {"", testing_support::uint64, {1}, nullptr}},
  };
  for (const Row& row : rows) {
    const auto failed = hub->publish(row.name, row.view, array);
    ASSERT_FALSE(failed) << row.name;
    EXPECT_EQ(failed.error().code, Errc::bad_array) << failed.error().what;
  }
}

TEST(Fetch, lists_what_the_hub_has) {
  const auto hub = make_hub();
  const auto peer = make_peer(*hub);
  EXPECT_TRUE(must(peer->list()).empty());
  publish(*hub, "a", numbers(10, 1));
  publish(*hub, "a", numbers(10, 1));
  const std::vector<TensorView> tree = {view_of(numbers(0, 0), "x"), view_of(numbers(0, 0), "y")};
  must(hub->publish_tree("model\tv\n", tree, nullptr));
  const std::vector<CatalogueEntry> list = must(peer->list());
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].name, "a");
  EXPECT_EQ(list[0].what, "uint64 (10)");
  EXPECT_EQ(list[0].version, 2U);
  EXPECT_EQ(list[0].bytes, 80U);
  EXPECT_EQ(list[1].name, "model\tv\n");
  EXPECT_EQ(list[1].what, "tree of 2");
  EXPECT_FALSE(hub->publish("weir.names", view_of(numbers(1, 1)), nullptr));
}

TEST(Connect, says_why_not) {
  const auto& provider = testing_support::test_provider();
  const std::string host = rdma::testing_support::test_address().address().to_string();
  EXPECT_EQ(Peer::connect("rdma://" + host + ":1", provider).error().code, Errc::unreachable);
  EXPECT_EQ(Peer::connect("http://x:1", provider).error().code, Errc::bad_address);
}

}  // namespace
}  // namespace weir::tensor
