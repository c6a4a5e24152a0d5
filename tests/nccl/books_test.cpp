// A sender's and a receiver's books against each other, and against a peer that breaks the protocol.
#include "nccl/books.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace weir::nccl {
namespace {

using Rows = std::array<OfferRow, slots>;

struct Ends {
  std::unique_ptr<Rows> rows = std::make_unique<Rows>();
  OfferBook sender{std::span<const OfferRow, slots>(*rows)};
  GroupBook receiver;
  std::uint64_t opened = 0;

  // Calls irecv() for buffers with these tags; each buffer's address is its tag.
  void open(const std::vector<std::int32_t>& tags) {
    const auto slot = receiver.next();
    ASSERT_TRUE(slot);
    const std::vector<std::size_t> rooms(tags.size(), 100);
    Group& group = receiver.open(rooms);
    EXPECT_EQ(group.number, ++opened);
    for (std::size_t i = 0; i < tags.size(); ++i)
      (*rows)[*slot][i] = Offer{static_cast<std::uint64_t>(tags[i]),     100, 1,           tags[i],
                                static_cast<std::uint16_t>(tags.size()), 0,   group.number};
  }
};

TEST(NcclBooks, an_offer_is_found_by_its_tag_once) {
  Ends ends;
  EXPECT_FALSE(ends.sender.find(5));
  ends.open({4, 5});
  const auto offer = ends.sender.find(5);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->address, 5u);
  ends.sender.take(*offer);
  EXPECT_FALSE(ends.sender.find(5));
  EXPECT_TRUE(ends.sender.find(4));
}

TEST(NcclBooks, the_next_group_waits_for_the_last_send_of_this_one) {
  Ends ends;
  ends.open({1, 2});
  ends.open({3});
  EXPECT_FALSE(ends.sender.find(3));
  ends.sender.take(*ends.sender.find(2));
  EXPECT_FALSE(ends.sender.find(3));
  ends.sender.take(*ends.sender.find(1));
  EXPECT_TRUE(ends.sender.find(3));
}

TEST(NcclBooks, equal_tags_of_a_group_are_taken_in_turn) {
  Ends ends;
  ends.open({7, 7});
  const auto first = ends.sender.find(7);
  ends.sender.take(*first);
  const auto second = ends.sender.find(7);
  ASSERT_TRUE(second);
  EXPECT_NE(first->arrival.member, second->arrival.member);
  ends.sender.take(*second);
  EXPECT_EQ(ends.sender.groups_used_up(), 1u);
}

TEST(NcclBooks, a_slot_is_used_again_when_all_came_and_the_caller_knows) {
  Ends ends;
  for (std::size_t i = 0; i < slots; ++i) ends.open({0});
  EXPECT_FALSE(ends.receiver.next());
  EXPECT_TRUE(ends.receiver.arrived({0, 0}, 50));
  EXPECT_FALSE(ends.receiver.next());
  ends.receiver.at(0).held = false;
  EXPECT_TRUE(ends.receiver.next());
}

TEST(NcclBooks, what_matches_no_receive_is_refused) {
  Ends ends;
  EXPECT_FALSE(ends.receiver.arrived({0, 0}, 1)) << "nothing was offered";
  ends.open({1, 2});
  EXPECT_FALSE(ends.receiver.arrived({0, 2}, 1)) << "no such member";
  EXPECT_FALSE(ends.receiver.arrived({0, 0}, 101)) << "longer than the buffer";
  EXPECT_TRUE(ends.receiver.arrived({0, 0}, 100));
  EXPECT_FALSE(ends.receiver.arrived({0, 0}, 100)) << "twice";
}

TEST(NcclBooks, a_count_beyond_the_row_is_clamped) {
  Ends ends;
  (*ends.rows)[0][0] = Offer{1, 1, 1, 1, 60000, 0, 1};
  EXPECT_FALSE(ends.sender.find(2));
  ASSERT_TRUE(ends.sender.find(1));
  EXPECT_EQ(ends.sender.find(1)->arrival.member, 0);
}

TEST(NcclBooks, only_immediates_that_name_a_slot_and_member_are_arrivals) {
  EXPECT_EQ(arrival(immediate({63, 7}))->slot, 63);
  EXPECT_EQ(arrival(immediate({63, 7}))->member, 7);
  EXPECT_FALSE(arrival(slots << 8));
  EXPECT_FALSE(arrival(8));
  EXPECT_FALSE(arrival(0xffffffff));
}

// Random groups, sends in random order, late arrivals: every message lands where its tag says.
TEST(NcclBooks, any_order_of_sends_fills_every_group) {
  constexpr std::uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Ends ends;
  std::vector<std::vector<std::int32_t>> waiting;  // tags not sent yet, by group
  std::vector<Taken> flying;
  std::int32_t next_tag = 1;
  for (int step = 0; step < 20000; ++step) {
    switch (random() % 3) {
      case 0:
        if (ends.receiver.next()) {
          std::vector<std::int32_t> tags(1 + random() % max_group);
          std::iota(tags.begin(), tags.end(), next_tag);
          next_tag += static_cast<std::int32_t>(tags.size());
          ends.open(tags);
          std::ranges::reverse(tags);
          waiting.push_back(tags);
        }
        break;
      case 1:
        if (!waiting.empty()) {
          const std::int32_t tag = waiting.front().back();
          const auto offer = ends.sender.find(tag);
          ASSERT_TRUE(offer);
          EXPECT_EQ(offer->address, static_cast<std::uint64_t>(tag));
          ends.sender.take(*offer);
          flying.push_back(*offer);
          waiting.front().pop_back();
          if (waiting.front().empty()) waiting.erase(waiting.begin());
        }
        break;
      default:
        if (!flying.empty()) {
          ASSERT_TRUE(ends.receiver.arrived(flying.front().arrival, 10));
          Group& group = ends.receiver.at(flying.front().arrival.slot);
          if (group.complete()) group.held = false;
          flying.erase(flying.begin());
        }
    }
  }
  EXPECT_GT(ends.sender.groups_used_up(), 1000u);
}

}  // namespace
}  // namespace weir::nccl
