// The translation-and-protection table alone: bounds, generations, domains, rights (IBA 10.6).
#include "rnic/memory/protection_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace weir::rnic {
namespace {

using Use = ProtectionTable::Use;

class ProtectionTableTest : public testing::Test {
 protected:
  // Zeroed pages on demand: the table is 64 MiB long and a test touches a few entries of it.
  std::unique_ptr<TptEntry, void (*)(TptEntry*)> entries{
      static_cast<TptEntry*>(std::calloc(max_keys, sizeof(TptEntry))), [](TptEntry* p) { std::free(p); }};
  ProtectionTable table{entries.get()};

  std::uint32_t insert(std::uint64_t addr, std::uint64_t length, std::uint32_t rights = access::local_write) {
    return table.insert({.addr = addr, .base = addr, .length = length, .access = rights, .pd = 1}).value();
  }
};

constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();

TEST_F(ProtectionTableTest, holds_as_many_regions_as_the_limit_says_and_not_one_more) {
  const Region region{.addr = 0, .base = 0, .length = 1, .access = 0, .pd = 1};
  std::uint32_t key = 0;
  for (std::uint32_t i = 0; i < max_mrs; ++i) {
    const auto made = table.insert(region);
    ASSERT_TRUE(made) << i;
    key = *made;
  }
  EXPECT_FALSE(table.insert(region));
  EXPECT_TRUE(table.reserve()) << "windows have a limit of their own";
  table.invalidate(key);
  table.release(key);
  EXPECT_TRUE(table.insert(region));
}

TEST_F(ProtectionTableTest, bounds_include_both_ends_and_nothing_beyond) {
  struct Case {
    std::uint64_t addr;
    std::uint64_t length;
    bool allowed;
  };
  const std::uint32_t key = insert(0x1000, 0x100);
  const Case cases[] = {{0x1000, 0x100, true},
                        {0x1000, 1, true},
                        {0x10ff, 1, true},
                        {0x10ff, 2, false},
                        {0x1100, 1, false},
                        {0x0fff, 1, false},
                        {0x0fff, 2, false},
                        {0x1000, 0x101, false},
                        {0x1001, 0x100, false},
                        {0x1080, 0x80, true},
                        {0x1080, 0x81, false},
                        {0, 1, false},
                        {last, 1, false},
                        {last, 0xffff, false},
                        {0x1000, 0xffffffff, false},
                        {0x10ff, 0xffffffff, false},
                        {last - 0xff, 0x1101, false}};
  for (const Case& c : cases) {
    const Sge sge{c.addr, static_cast<std::uint32_t>(c.length), key};
    EXPECT_EQ(table.allows(sge, 1, Use::read), c.allowed) << std::hex << c.addr << " +" << c.length;
  }
}

TEST_F(ProtectionTableTest, a_length_that_wraps_the_address_space_is_out_of_bounds) {
  const TptEntry& low = table.entry(insert(0x1000, 0x100));
  EXPECT_FALSE(ProtectionTable::in_bounds(low, 0x1010, last));
  EXPECT_FALSE(ProtectionTable::in_bounds(low, 0x1010, last - 0x100f));
  EXPECT_FALSE(ProtectionTable::in_bounds(low, last, 2));
}

TEST_F(ProtectionTableTest, a_region_may_end_at_the_last_byte_of_the_address_space) {
  const TptEntry& high = table.entry(insert(last - 0xff, 0x100));
  EXPECT_TRUE(ProtectionTable::in_bounds(high, last - 0xff, 0x100));
  EXPECT_TRUE(ProtectionTable::in_bounds(high, last, 1));
  EXPECT_FALSE(ProtectionTable::in_bounds(high, last, 2));
  EXPECT_FALSE(ProtectionTable::in_bounds(high, 0, 1));
}

TEST_F(ProtectionTableTest, an_empty_sge_needs_no_region) {
  EXPECT_TRUE(table.allows({0, 0, 0}, 1, Use::write));
  EXPECT_TRUE(table.allows({0xdead, 0, 0xffffffff}, 1, Use::write));
}

TEST_F(ProtectionTableTest, key_zero_and_keys_never_given_are_refused) {
  insert(0, last);
  EXPECT_FALSE(table.allows({0x1000, 1, 0}, 1, Use::read));
  EXPECT_FALSE(table.allows({0x1000, 1, 0xffffffff}, 1, Use::read));
  EXPECT_FALSE(table.allows({0x1000, 1, 0x100}, 1, Use::read));
}

TEST_F(ProtectionTableTest, another_domain_is_refused) {
  const std::uint32_t key = insert(0x1000, 16);
  EXPECT_TRUE(table.allows({0x1000, 16, key}, 1, Use::read));
  EXPECT_FALSE(table.allows({0x1000, 16, key}, 2, Use::read));
}

TEST_F(ProtectionTableTest, reading_needs_no_right_and_writing_needs_local_write) {
  const std::uint32_t read_only = insert(0x1000, 16, 0);
  EXPECT_TRUE(table.allows({0x1000, 16, read_only}, 1, Use::read));
  EXPECT_FALSE(table.allows({0x1000, 16, read_only}, 1, Use::write));
  const std::uint32_t remote_read = insert(0x2000, 16, access::remote_read);
  EXPECT_FALSE(table.allows({0x2000, 16, remote_read}, 1, Use::write));
}

TEST_F(ProtectionTableTest, a_key_dies_with_its_registration) {
  const std::uint32_t key = insert(0x1000, 16);
  table.invalidate(key);
  EXPECT_FALSE(table.allows({0x1000, 16, key}, 1, Use::read));
  table.release(key);
  EXPECT_FALSE(table.allows({0x1000, 16, key}, 1, Use::read));
}

TEST_F(ProtectionTableTest, a_key_is_not_given_again_soon) {
  std::set<std::uint32_t> given;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t key = insert(0x1000, 16);
    EXPECT_NE(key, 0u);
    EXPECT_TRUE(given.insert(key).second) << "registration " << i << " got the key of an earlier one";
    table.invalidate(key);
    table.release(key);
  }
}

// Two tables whose secrets differ in one bit, and what a peer learns from keys it was given: nothing about
// the next one. Each statistic is far from what keys in any order of their own would give.
TEST_F(ProtectionTableTest, no_key_can_be_derived_from_the_ones_before) {
  constexpr int keys = 4096;
  table.begin_with(0x5eed);
  std::array<int, 32> flips{};
  std::set<std::uint32_t> steps;
  int near = 0;
  std::uint32_t before = insert(0x1000, 16);
  for (int i = 0; i < keys; ++i) {
    const std::uint32_t key = insert(0x1000, 16);
    for (std::size_t bit = 0; bit < flips.size(); ++bit) flips[bit] += (key ^ before) >> bit & 1;
    const std::uint32_t index = (key >> 8) % max_keys, last_index = (before >> 8) % max_keys;
    near += std::max(index, last_index) - std::min(index, last_index) < 256 ? 1 : 0;
    steps.insert(key - before);
    before = key;
  }
  EXPECT_EQ(steps.size(), static_cast<std::size_t>(keys)) << "two neighbours differ by the same";
  EXPECT_LT(near, keys / 50) << "of " << keys << " keys lie near the one before; 1/128 would by chance";
  for (std::size_t bit = 0; bit < flips.size(); ++bit) {
    if (bit >= 24 && bit < 28) continue;  // the block, of which there is one yet
    EXPECT_NEAR(flips[bit], keys / 2, keys / 16) << "bit " << bit << " can be guessed";
  }
}

TEST_F(ProtectionTableTest, the_generations_of_one_entry_follow_no_order) {
  table.begin_with(0x5eed);
  std::map<std::uint32_t, std::vector<std::uint32_t>> generations;  // by index
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t key = insert(0x1000, 16);
    generations[key >> 8 & (max_keys - 1)].push_back(key >> 28 << 8 | (key & 0xff));
    table.invalidate(key);
    table.release(key);
  }
  std::map<std::uint32_t, int> steps;
  int pairs = 0;
  for (const auto& [index, each] : generations)
    for (std::size_t i = 1; i < each.size(); ++i, ++pairs) ++steps[(each[i] - each[i - 1]) & 0xfff];
  ASSERT_GT(pairs, 50'000);
  for (const auto& [step, count] : steps) EXPECT_LT(count, pairs / 500) << "step " << step << " is usual";
}

TEST_F(ProtectionTableTest, another_secret_gives_other_keys) {
  std::unique_ptr<TptEntry, void (*)(TptEntry*)> others{
      static_cast<TptEntry*>(std::calloc(max_keys, sizeof(TptEntry))), [](TptEntry* p) { std::free(p); }};
  ProtectionTable other(others.get());
  table.begin_with(0x5eed);
  other.begin_with(0x5eed ^ 1);
  int same = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t key = insert(0x1000, 16);
    const Region region{.addr = 0, .base = 0, .length = 1, .access = 0, .pd = 1};
    same += key == other.insert(region).value() ? 1 : 0;
  }
  EXPECT_LE(same, 1);
}

TEST_F(ProtectionTableTest, update_keeps_the_key_and_changes_rights_and_domain) {
  const std::uint32_t key = insert(0x1000, 16, 0);
  table.update(key, access::local_write, 2);
  EXPECT_TRUE(table.allows({0x1000, 16, key}, 2, Use::write));
  EXPECT_FALSE(table.allows({0x1000, 16, key}, 1, Use::read));
}

TEST_F(ProtectionTableTest, an_iova_is_translated_to_where_the_memory_is) {
  const std::uint32_t key =
      table.insert({.addr = 0x40, .base = 0x7f00'0000'1000, .length = 0x100, .access = 0, .pd = 1}).value();
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(ProtectionTable::address(table.entry(key), 0x48)),
            0x7f00'0000'1008u);
  EXPECT_TRUE(table.allows({0x40, 0x100, key}, 1, Use::read));
  EXPECT_FALSE(table.allows({0x1000, 1, key}, 1, Use::read));
}

}  // namespace
}  // namespace weir::rnic
