// A peer with wild addresses, lengths, numbers and generations loses at most its own connection; a reader
// that was connected before keeps fetching.
#include <gtest/gtest.h>

#include <list>

#include "tests/tensor/raw_reader.hpp"

namespace weir::tensor {
namespace {

using testing_support::make_hub;
using testing_support::make_peer;
using testing_support::must;
using testing_support::numbers;
using testing_support::publish;
using testing_support::RawReader;
using testing_support::values;

struct Hostile : testing::Test {
  std::unique_ptr<Hub> hub = make_hub();
  std::unique_ptr<Peer> honest = make_peer(*hub);
  std::uint64_t version = publish(*hub, "a", numbers(1000, 7));

  void SetUp() override { must(honest->fetch("a")); }
  void TearDown() override {
    EXPECT_EQ(values(must(honest->fetch("a"))), *numbers(1000, 7));
    EXPECT_EQ(honest->stats().connects, 1U);
  }
  // The hub's answer to a first request.
  wire::MetadataUpdate update_for(RawReader& raw, std::uint32_t index) {
    raw.link().send(wire::Request{.index = index, .name = "a"});
    return std::get<wire::MetadataUpdate>(raw.next());
  }
};

TEST_F(Hostile, a_wild_destination_costs_its_own_connection) {
  for (const wire::Memory to : {wire::Memory{0, 8000, 0}, wire::Memory{~0ULL - 100, ~0ULL, ~0U},
                                wire::Memory{0x7fff00000000, 8000, 12345}}) {
    RawReader raw(*hub);
    update_for(raw, 65);
    raw.link().send(wire::ReRequest{.index = 65, .to = to});
    EXPECT_TRUE(raw.is_thrown_out());
  }
}

TEST_F(Hostile, a_destination_that_is_too_small_is_no_destination) {
  RawReader raw(*hub);
  std::vector<std::byte> memory(7999);
  update_for(raw, 65);
  raw.link().send(wire::ReRequest{.index = 65, .to = must(raw.link().expect(65, memory))});
  EXPECT_TRUE(raw.is_thrown_out());
  EXPECT_EQ(memory, std::vector<std::byte>(7999));
}

TEST_F(Hostile, a_re_request_without_a_request_means_nothing) {
  RawReader raw(*hub);
  raw.link().send(wire::ReRequest{.index = 77, .to = {1, 1 << 20, 1}});
  raw.link().send(wire::Done{1});
  raw.link().send(wire::Cancel{~0U});
  EXPECT_EQ(update_for(raw, 65).data_bytes, 8000U);
}

TEST_F(Hostile, a_slot_is_used_once_at_a_time) {
  RawReader raw(*hub);
  update_for(raw, 65);
  raw.link().send(wire::Request{.index = 129, .name = "a"});
  EXPECT_TRUE(raw.is_thrown_out());
}

TEST_F(Hostile, messages_of_a_hub_and_records_nobody_waits_for_end_it) {
  RawReader first(*hub);
  first.link().send(wire::MetadataUpdate{.index = 1, .metadata_bytes = 1 << 20});
  EXPECT_TRUE(first.is_thrown_out());
  RawReader second(*hub);
  second.link().write({.source = std::make_shared<const Source>(std::vector<Source::Piece>{}, nullptr),
                       .to = {},
                       .record = {.index = 5}});
  EXPECT_TRUE(second.is_thrown_out());
}

TEST_F(Hostile, a_version_of_another_generation_says_nothing_about_ours) {
  RawReader raw(*hub);
  raw.link().send(wire::Request{.index = 65, .newer_than = ~0ULL, .generation = 1, .name = "a"});
  EXPECT_EQ(std::get<wire::MetadataUpdate>(raw.next()).version, version);
  // A name id of another hub means nothing here.
  raw.link().send(wire::Request{.index = 66, .name_id = 1, .generation = 1});
  EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::peer_gone);
  raw.link().send(wire::Request{.index = 67, .name_id = 99, .generation = hub->generation()});
  EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::not_published);
}

TEST_F(Hostile, a_reader_that_never_comes_back_does_not_keep_versions) {
  RawReader raw(*hub);
  auto array = numbers(1000, 1);
  const std::weak_ptr<std::vector<std::uint64_t>> seen = array;
  publish(*hub, "a", array);
  array.reset();
  EXPECT_EQ(update_for(raw, 65).version, 2U);
  for (int i = 0; i < 2; ++i) {
    publish(*hub, "a", numbers(1000, 1));
    update_for(raw, 66U + static_cast<std::uint32_t>(i));  // holds the version
  }
  EXPECT_FALSE(seen.expired());
  publish(*hub, "a", numbers(1000, 7));  // the third superseded version; keep is 2
  const auto status = std::get<wire::ErrorStatus>(raw.next());
  EXPECT_EQ(status.index, 65U);
  EXPECT_EQ(status.code, Errc::superseded);
  (void)hub->stats();  // the hub's thread has finished with it
  EXPECT_TRUE(seen.expired());
}

// Answers to one frame may not exceed what its connection may queue: only that connection is ended.
TEST_F(Hostile, frames_full_of_small_messages_cost_its_own_connection) {
  RawReader raw(*hub);
  for (std::uint32_t i = 0; i < 1000; ++i) raw.link().send(wire::Cancel{i});  // an index without a request
  EXPECT_EQ(update_for(raw, 65).data_bytes, 8000U);
  for (std::uint32_t i = 0; i < 1000; ++i)
    raw.link().send(wire::Request{.index = 128 + i, .wait = true, .name = "b"});
  EXPECT_TRUE(raw.is_thrown_out());  // a slot was used twice at a time
}

TEST_F(Hostile, cancelled_requests_are_answered_and_their_slots_free) {
  RawReader raw(*hub);
  for (std::uint32_t use = 1; use < 200; ++use) {
    const std::uint32_t index = use * wire::slots + 3;
    raw.link().send(wire::Request{.index = index, .wait = true, .name = "never"});
    raw.link().send(wire::Cancel{index});
    EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).index, index);
  }
}

TEST(SilentReaders, leave_a_full_hub_first) {
  const auto hub = make_hub({.max_connections = 3});
  publish(*hub, "a", numbers(10, 7));
  const auto early = make_peer(*hub);
  must(early->fetch("a"));
  std::list<RawReader> silent;
  for (int i = 0; i < 6; ++i) silent.emplace_back(*hub);
  EXPECT_TRUE(silent.front().is_thrown_out());
  EXPECT_EQ(values(must(make_peer(*hub)->fetch("a"))), *numbers(10, 7));
  EXPECT_EQ(values(must(early->fetch("a"))), *numbers(10, 7));
  EXPECT_EQ(early->stats().connects, 1U);
}

}  // namespace
}  // namespace weir::tensor
