// A writer at full speed, and readers in every way: each fetch gives one whole version, and none goes
// backwards. The writer overwrites memory with zeros as soon as it is released, so a version released too
// early shows.
//
// TORN_SUITE, TORN_FETCHES: the number of fetches in every test run, and in the slow one; WEIR_TEST_FETCHES
// overrides it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using namespace std::chrono_literals;
using testing_support::make_hub;
using testing_support::must;
using testing_support::Numbers;
using testing_support::numbers;
using testing_support::test_provider;

constexpr std::size_t count = 1500;  // 12 KB

struct Way {
  const char* name;
  const char* scheme;
  std::uint64_t read_from_bytes;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

// Memory of versions without readers, to be used again.
struct Pool {
  std::mutex mutex;
  std::deque<Numbers> spare;

  Numbers take() {
    const std::lock_guard lock(mutex);
    if (spare.empty()) return numbers(count, 0);
    Numbers array = std::move(spare.front());
    spare.pop_front();
    return array;
  }
  void give_back(Numbers array) {
    std::ranges::fill(*array, 0);
    const std::lock_guard lock(mutex);
    spare.push_back(std::move(array));
  }
};

struct TORN_SUITE : testing::TestWithParam<Way> {};

TEST_P(TORN_SUITE, no_fetch_is_torn_and_none_goes_back) {
  const auto pool = std::make_shared<Pool>();
  const auto hub =
      must(Hub::listen(std::string(GetParam().scheme) + "://127.0.0.1:0", test_provider(), {.keep = 1}));
  std::atomic<bool> stop = false;
  std::jthread writer([&] {
    for (std::uint64_t version = 1; !stop; ++version) {
      Numbers array = pool->take();
      std::ranges::fill(*array, version);
      const std::shared_ptr<const void> owner(array.get(),
                                              [pool, array](const void*) { pool->give_back(array); });
      must(hub->publish("a", testing_support::view_of(array), owner));
    }
  });
  const auto peer = must(Peer::connect(hub->address(), test_provider(),
                                       {.limits = {.read_from_bytes = GetParam().read_from_bytes}}));
  Numbers mine = numbers(count, 0);
  const Out out{testing_support::uint64, {count}, std::as_writable_bytes(std::span(*mine))};
  std::uint64_t last = 0;
  int lost = 0;
  const char* wanted = std::getenv("WEIR_TEST_FETCHES");
  const int fetches = wanted != nullptr ? std::atoi(wanted) : TORN_FETCHES;
  for (int seen = 0; seen < fetches;) {
    const auto fetched = peer->fetch("a", {.newer_than = last, .timeout = 30s, .out = out});
    if (!fetched) {
      // A superseded version may fail, but nothing of it is shown. A reader that READs may lose its
      // connection.
      ASSERT_TRUE(fetched.error().code == Errc::superseded || fetched.error().code == Errc::peer_gone)
          << fetched.error().what;
      ASSERT_LT(++lost, 10 * fetches + 100'000);
      continue;
    }
    ASSERT_GT(fetched->version, last);
    last = fetched->version;
    ASSERT_EQ(std::ranges::count(*mine, last), static_cast<std::ptrdiff_t>(count)) << "torn";
    ++seen;
  }
  stop = true;
  std::printf("%d fetches of %llu versions, %d superseded\n", fetches, static_cast<unsigned long long>(last),
              lost);
}
INSTANTIATE_TEST_SUITE_P(By, TORN_SUITE,
                         testing::Values(Way{"write", "rdma", ~std::uint64_t{0}}, Way{"read", "rdma", 0},
                                         Way{"tcp", "tcp", 0}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace weir::tensor
