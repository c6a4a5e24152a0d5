// Fetching rows of an array: the same answers whether the peer reads them, the hub writes them, or TCP brings
// them.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "tests/tensor/hub_and_peer.hpp"
#include "tests/tensor/raw_reader.hpp"

namespace weir::tensor {
namespace {

using namespace std::chrono_literals;
using testing_support::make_hub;
using testing_support::must;
using testing_support::Numbers;
using testing_support::numbers;
using testing_support::publish;
using testing_support::RawReader;
using testing_support::test_provider;
using testing_support::uint64;
using testing_support::values;

constexpr std::size_t width = 1000;

// Row i is `width` times 1000 * generation + i.
std::uint64_t publish_table(Hub& hub, std::size_t rows, std::uint64_t generation) {
  const Numbers array = numbers(rows * width, 0);
  for (std::size_t i = 0; i < array->size(); ++i) (*array)[i] = 1000 * generation + i / width;
  return must(hub.publish("table", {"", uint64, {rows, width}, array->data()}, array));
}

std::vector<std::uint64_t> rows_of(const Fetched& fetched) {
  const std::vector<std::uint64_t> all = values(fetched);
  std::vector<std::uint64_t> rows;
  for (std::size_t i = 0; i < all.size(); i += width) {
    EXPECT_EQ(std::vector(all.begin() + i, all.begin() + i + width), std::vector(width, all[i]));
    rows.push_back(all[i]);
  }
  return rows;
}

struct Way {
  const char* name;
  const char* scheme;
  std::uint64_t read_from_bytes;
};
struct RowsBy : testing::TestWithParam<Way> {
  std::unique_ptr<Hub> hub = make_hub_by(GetParam());
  std::unique_ptr<Peer> peer = must(Peer::connect(
      hub->address(), test_provider(), {.limits = {.read_from_bytes = GetParam().read_from_bytes}}));

  static std::unique_ptr<Hub> make_hub_by(const Way& way) {
    const std::string host = rdma::testing_support::test_address().address().to_string();
    return must(Hub::listen(way.scheme + ("://" + host + ":0"), test_provider(), {}));
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, RowsBy,
                         testing::Values(Way{"read", "rdma", 0}, Way{"write", "rdma", ~0ULL},
                                         Way{"tcp", "tcp", 0}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(RowsBy, come_in_the_order_that_was_asked_for) {
  publish_table(*hub, 300, 1);
  for (int round = 0; round < 2; ++round) {  // without and with known metadata
    const Fetched some = must(peer->fetch("table", {.rows = {{9, 1}, {3, 1}, {100, 3}}}));
    EXPECT_EQ(rows_of(some), (std::vector<std::uint64_t>{1009, 1003, 1100, 1101, 1102}));
    EXPECT_EQ(some.metadata->tensors[0].shape, (std::vector<std::uint64_t>{5, width}));
    EXPECT_EQ(some.metadata_id, 0U);
  }
  EXPECT_EQ(values(must(peer->fetch("table"))).size(), 300 * width);
  EXPECT_EQ(peer->stats().metadata_updates, 1U);
}

TEST_P(RowsBy, come_into_memory_of_the_caller) {
  publish_table(*hub, 300, 1);
  const Numbers mine = numbers(2 * width, 0);
  const Out out{uint64, {2, width}, std::as_writable_bytes(std::span(*mine))};
  for (const std::uint64_t first : {7U, 250U}) {
    must(peer->fetch("table", {.out = out, .rows = {{first, 2}}}));
    EXPECT_EQ((*mine)[0], 1000 + first);
    EXPECT_EQ(mine->back(), 1001 + first);
  }
  EXPECT_EQ(peer->fetch("table", {.out = out, .rows = {{7, 3}}}).error().code, Errc::shape_mismatch);
}

TEST_P(RowsBy, come_of_more_runs_than_one_message_names) {
  publish_table(*hub, 2 * most_extents, 1);
  std::vector<Rows> odd;
  for (std::uint64_t i = 0; i < most_extents; ++i) odd.push_back({2 * i + 1, 1});
  const std::vector<std::uint64_t> rows = rows_of(must(peer->fetch("table", {.rows = odd})));
  ASSERT_EQ(rows.size(), odd.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], 1000 + odd[i].first);
  odd.push_back({0, 1});
  EXPECT_EQ(peer->fetch("table", {.rows = odd}).error().code, Errc::too_much);
}

TEST_P(RowsBy, are_of_one_version_though_its_shape_has_changed) {
  publish_table(*hub, 300, 1);
  must(peer->fetch("table"));
  publish_table(*hub, 20, 2);
  EXPECT_EQ(rows_of(must(peer->fetch("table", {.rows = {{19, 1}, {0, 1}}}))),
            (std::vector<std::uint64_t>{2019, 2000}));
  EXPECT_EQ(peer->fetch("table", {.rows = {{20, 1}}}).error().code, Errc::shape_mismatch);
  const auto waiting = peer->start("table", {.newer_than = 2, .timeout = 30s, .rows = {{5, 1}}});
  publish_table(*hub, 6, 3);
  EXPECT_EQ(rows_of(must(peer->wait(waiting, 30s))), (std::vector<std::uint64_t>{3005}));
  EXPECT_EQ(rows_of(must(peer->fetch("table", {.rows = {{4, 2}}}))),
            (std::vector<std::uint64_t>{3004, 3005}));
  EXPECT_EQ(peer->stats().connects, 1U);
}

struct HostileParts : testing::Test {
  std::unique_ptr<Hub> hub = make_hub();
  RawReader raw{*hub};
  std::vector<std::byte> memory = std::vector<std::byte>(8000);

  void SetUp() override { publish(*hub, "a", numbers(1000, 7)); }
  wire::Memory ask(std::uint32_t index) {
    raw.link().send(wire::Request{.index = index, .name = "a"});
    (void)std::get<wire::MetadataUpdate>(raw.next());
    return must(raw.link().expect(index, memory));
  }
};

TEST_F(HostileParts, beyond_the_version_cost_their_own_connection) {
  const wire::Memory to = ask(65);
  raw.link().send(wire::Parts{65, {{7999, 2}}});
  raw.link().send(wire::ReRequest{.index = 65, .to = to});
  EXPECT_TRUE(raw.is_thrown_out());
  EXPECT_EQ(memory, std::vector<std::byte>(8000));
}

TEST_F(HostileParts, of_more_bytes_than_the_destination_are_refused) {
  const wire::Memory to = ask(65);
  raw.link().send(wire::Parts{65, {{0, 8000}, {0, 1}}});
  raw.link().send(wire::ReRequest{.index = 65, .to = to});
  EXPECT_TRUE(raw.is_thrown_out());
}

TEST_F(HostileParts, without_end_cost_their_own_connection) {
  for (std::size_t i = 0; i <= most_extents / wire::most_listed_extents; ++i)
    raw.link().send(wire::Parts{65, std::vector<Extent>(wire::most_listed_extents, Extent{0, 1})});
  EXPECT_TRUE(raw.is_thrown_out());
}

TEST_F(HostileParts, of_another_request_are_forgotten) {
  raw.link().send(wire::Parts{65, {{0, 8}}});  // slot 1, of a request that does not come
  const wire::Memory to = ask(129);            // slot 1 again
  raw.link().send(wire::ReRequest{.index = 129, .to = to});
  raw.run_until([&] { return !raw.records().empty() || raw.end(); });
  ASSERT_FALSE(raw.end());
  EXPECT_EQ(raw.records().front().bytes, 8000U);
}

}  // namespace
}  // namespace weir::tensor
