// The MMU alone: which queue may use which part of the buffer, and when XOFF ends.
#include "fabric/sim/buffer.hpp"

#include <gtest/gtest.h>

namespace weir::fabric::sim {
namespace {

SharedPool pool_of(std::uint64_t cells, std::uint64_t headroom_pool = 0) {
  SharedPool pool;
  pool.cell_bytes = 208;
  pool.size = cells;
  pool.headroom_size = headroom_pool;
  return pool;
}

PriorityGroup group_of(double alpha, std::uint32_t headroom, std::uint32_t guaranteed = 0) {
  PriorityGroup group;
  group.lossless = true;
  group.alpha = static_cast<std::uint32_t>(alpha_factor(alpha));
  group.headroom = headroom;
  group.guaranteed = guaranteed;
  return group;
}

TEST(Buffer, GroupTakesGuaranteedThenSharedThenHeadroomAndGivesBackInOppositeOrder) {
  auto pool = pool_of(100);
  auto group = group_of(1, 20, 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(admit(pool, group, 1), Admission::taken);
  EXPECT_EQ(pool.used, 0u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(admit(pool, group, 1), Admission::taken);  // T = 100 - used
  EXPECT_EQ(pool.used, 50u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(admit(pool, group, 1), Admission::over);
  EXPECT_EQ(admit(pool, group, 1), Admission::dropped);
  EXPECT_EQ(group.dropped, 1u);
  release(pool, group, 25);  // the headroom, and five of the shared cells
  EXPECT_EQ(group.used_headroom, 0u);
  EXPECT_EQ(group.used_shared, 45u);
  release(pool, group, 45 + 10);
  EXPECT_EQ(group.used_guaranteed, 0u);
  EXPECT_EQ(pool.used, 0u);
  EXPECT_EQ(pool.headroom_used, 0u);
}

TEST(Buffer, PacketIsCountedInWholeCells) {
  const auto pool = pool_of(100);
  const std::pair<std::uint32_t, std::uint32_t> rows[] = {{1, 1}, {208, 1}, {209, 2}, {416, 2}, {1086, 6}};
  for (const auto& [bytes, cells] : rows) EXPECT_EQ(pool.cells(bytes), cells) << bytes;
}

TEST(Buffer, SharedHeadroomPoolEndsForAllWhenItIsFull) {
  auto pool = pool_of(0, 30);
  auto one = group_of(1, 20), other = group_of(1, 20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(admit(pool, one, 1), Admission::over);
  EXPECT_EQ(admit(pool, one, 1), Admission::dropped);  // its own limit
  for (int i = 0; i < 10; ++i) EXPECT_EQ(admit(pool, other, 1), Admission::over);
  EXPECT_EQ(admit(pool, other, 1), Admission::dropped);  // the pool's limit
  release(pool, one, 1);
  EXPECT_EQ(admit(pool, other, 1), Admission::over);
}

// SAI: XON when usage <= max(XON_TH, limit - XON_OFFSET_TH) and the headroom is empty.
struct Resume {
  const char* name;
  std::uint32_t used, headroom_used, xon, offset;
  bool may;
};

TEST(Buffer, XonFollowsAtTheLargerOfTheMarkAndTheThresholdLessTheOffset) {
  // A pool of 100, alpha 1: with u cells used the threshold is 100 - u.
  const Resume rows[] = {
      {"at the threshold less the offset", 40, 0, 0, 20, true},
      {"one above", 41, 0, 0, 20, false},
      {"at the mark, which is larger", 45, 0, 45, 40, true},
      {"above both", 46, 0, 45, 40, false},
      {"below both, but in headroom", 1, 1, 45, 0, false},
      {"no offset: below the threshold", 50, 0, 0, 0, true},
      {"no offset: above it", 51, 0, 0, 0, false},
      {"offset larger than the threshold: only the mark counts", 3, 0, 2, 200, false},
      {"and it does", 2, 0, 2, 200, true},
  };
  for (const auto& row : rows) {
    auto pool = pool_of(100);
    auto group = group_of(1, 10);
    group.used_shared = row.used;
    pool.used = row.used;
    group.used_headroom = row.headroom_used;
    group.xon = row.xon;
    group.xon_offset = row.offset;
    EXPECT_EQ(may_send_xon(pool, group), row.may) << row.name;
  }
}

}  // namespace
}  // namespace weir::fabric::sim
