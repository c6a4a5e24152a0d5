// A peer that lies about what it pushes loses at most its own connection; the hub keeps none of it.
#include <gtest/gtest.h>

#include <algorithm>

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

std::vector<std::byte> metadata_of(std::uint64_t bytes) {
  return encode(Metadata{bytes, {{"", {1, 8, 1}, {bytes}, 0}}}).value();
}

struct HostilePusher : testing::Test {
  std::unique_ptr<Hub> hub = make_hub({.push = {.names = "grad/*"}});
  std::unique_ptr<Peer> honest = make_peer(*hub);
  std::shared_ptr<const std::vector<std::byte>> bytes =
      std::make_shared<const std::vector<std::byte>>(8000, std::byte{7});

  void SetUp() override { publish(*hub, "a", numbers(1000, 7)); }
  void TearDown() override {
    EXPECT_EQ(values(must(honest->fetch("a"))), *numbers(1000, 7));
    EXPECT_EQ(hub->get("grad/1").error().code, Errc::not_published);
    EXPECT_TRUE(nothing_is_held());
    EXPECT_EQ(honest->stats().connects, 1U);
  }
  // The hub's thread may notice the end later than the peer does.
  bool nothing_is_held() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (hub->stats().pushed_held_bytes > 0 && std::chrono::steady_clock::now() < deadline) {
    }
    return hub->stats().pushed_held_bytes == 0;
  }
  static wire::Push push(std::uint32_t index, std::uint64_t data_bytes) {
    std::vector<std::byte> block = metadata_of(data_bytes);
    return {.index = index,
            .data_bytes = data_bytes,
            .metadata_bytes = block.size(),
            .name = "grad/1",
            .metadata = std::move(block)};
  }
  Transfer transfer(const wire::Memory& to, std::uint32_t index) const {
    return {.source = std::make_shared<const Source>(std::vector<Source::Piece>{*bytes}, bytes),
            .to = to,
            .record = {.generation = hub->generation(), .bytes = bytes->size(), .index = index}};
  }
  // Makes the hub expect a push of 8000 bytes.
  static wire::Memory begin(RawReader& raw, std::uint32_t index) {
    raw.link().send(push(index, 8000));
    return std::get<wire::ReRequest>(raw.next()).to;
  }
};

TEST_F(HostilePusher, wild_lengths_are_answered_before_memory_is_taken) {
  RawReader raw(*hub);
  for (const std::uint64_t wild : {std::uint64_t{1} << 40, std::uint64_t{1} << 46}) {
    raw.link().send(push(65, wild));
    EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::too_much);
  }
  for (const std::uint64_t wild : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    raw.link().send(wire::Push{.index = 66, .data_bytes = 8, .metadata_bytes = wild, .name = "grad/1"});
    EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::too_much);
    raw.link().send(wire::Push{.index = 67, .data_bytes = wild, .metadata_bytes = 1 << 20, .name = "grad/1"});
    EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::too_much);
  }
}

TEST_F(HostilePusher, metadata_that_tell_of_other_bytes_end_it) {
  RawReader raw(*hub);
  wire::Push wrong = push(65, 8000);
  wrong.data_bytes = 7999;
  raw.link().send(wrong);
  EXPECT_TRUE(raw.is_thrown_out());
  RawReader second(*hub);
  wire::Push none = push(65, 8000);
  none.metadata[0] = std::byte{0};
  second.link().send(none);
  EXPECT_TRUE(second.is_thrown_out());
}

TEST_F(HostilePusher, records_that_fit_no_push_end_it) {
  struct Row {
    const char* what;
    void (*spoil)(wire::Record&);
  };
  const Row rows[] = {
      {"generation", [](wire::Record& record) { ++record.generation; }},
      {"kind", [](wire::Record& record) { record.kind = 1; }},
      {"unknown kind", [](wire::Record& record) { record.kind = 9; }},
      {"fewer bytes", [](wire::Record& record) { --record.bytes; }},
      {"more bytes", [](wire::Record& record) { record.bytes = ~std::uint64_t{0}; }},
      {"another use of the slot", [](wire::Record& record) { record.index += wire::slots; }},
      {"another slot", [](wire::Record& record) { ++record.index; }},
  };
  for (const Row& row : rows) {
    RawReader raw(*hub);
    Transfer spoiled = transfer(begin(raw, 65), 65);
    row.spoil(spoiled.record);
    raw.link().write(spoiled);
    EXPECT_TRUE(raw.is_thrown_out()) << row.what;
  }
}

TEST_F(HostilePusher, a_slot_is_used_once_at_a_time) {
  for (const bool push_first : {true, false}) {
    RawReader raw(*hub);
    if (push_first)
      begin(raw, 65);
    else
      raw.link().send(wire::Request{.index = 65, .wait = true, .name = "never"});
    if (push_first)
      raw.link().send(wire::Request{.index = 129, .wait = true, .name = "never"});
    else
      raw.link().send(push(129, 8000));
    EXPECT_TRUE(raw.is_thrown_out());
  }
}

TEST_F(HostilePusher, what_it_was_lent_is_given_back_when_it_cancels_or_goes) {
  {
    RawReader raw(*hub);
    const wire::Memory to = begin(raw, 65);
    EXPECT_GT(hub->stats().pushed_held_bytes, 8000U);
    raw.link().send(wire::Cancel{65});
    EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::timed_out);
    EXPECT_EQ(hub->stats().pushed_held_bytes, 0U);
    // The memory must no longer be writable.
    raw.link().write(transfer(to, 65));
    EXPECT_TRUE(raw.is_thrown_out());
  }
  RawReader raw(*hub);
  begin(raw, 65);
  raw.link().send(wire::Done{65});
  raw.link().send(wire::MetadataUpdate{.index = 65});
  EXPECT_TRUE(raw.is_thrown_out());
}

TEST(StillPush, ends_and_holds_no_budget) {
  const auto hub =
      make_hub({.push = {.names = "grad/*", .bytes = 64'000, .patience = std::chrono::milliseconds(20)}});
  const auto honest = make_peer(*hub);
  const std::vector<std::byte> block = metadata_of(40'000), bytes(40'000, std::byte{7});
  RawReader raw(*hub);
  raw.link().send(wire::Push{.index = 65,
                             .data_bytes = 40'000,
                             .metadata_bytes = block.size(),
                             .name = "grad/1",
                             .metadata = block});
  static_cast<void>(std::get<wire::ReRequest>(raw.next()));
  EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::timed_out);
  EXPECT_EQ(hub->stats().pushed_held_bytes, 0U);
  must(honest->push("grad/1", {"", {1, 8, 1}, {bytes.size()}, bytes.data()}));
}

struct UnwrittenPush : testing::TestWithParam<std::size_t> {};

// The sizes differ in where a push lands, and in how memory for it becomes zeros.
TEST_P(UnwrittenPush, publishes_zeros_and_no_earlier_secret) {
  const std::size_t size = GetParam();
  const auto hub = make_hub({.push = {.names = "grad/*"}});
  const auto honest = make_peer(*hub);
  const std::vector<std::byte> secret(size, std::byte{0x53});
  for (int round = 0; round < 2; ++round) {
    must(honest->push("grad/secret", {"", {1, 8, 1}, {size}, secret.data()}));
    ASSERT_TRUE(hub->withdraw("grad/secret"));
    RawReader raw(*hub);
    const std::vector<std::byte> block = metadata_of(size);
    raw.link().send(wire::Push{.index = 65,
                               .data_bytes = size,
                               .metadata_bytes = block.size(),
                               .name = "grad/1",
                               .metadata = block});
    const auto to = std::get<wire::ReRequest>(raw.next()).to;
    const auto nothing = std::make_shared<const Source>(std::vector<Source::Piece>{}, nullptr);
    const wire::Record record{.generation = hub->generation(), .bytes = size, .index = 65};
    raw.link().write({.source = nothing, .to = to, .record = record});
    EXPECT_EQ(std::get<wire::ErrorStatus>(raw.next()).code, Errc::ok);
    const Fetched shown = must(honest->fetch("grad/1"));
    EXPECT_EQ(shown.data.size(), size);
    EXPECT_EQ(std::ranges::count(shown.data, std::byte{0}), std::ssize(shown.data));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, UnwrittenPush, testing::Values(100, 16384, 100'000, 1 << 20, 5 << 20));

}  // namespace
}  // namespace weir::tensor
