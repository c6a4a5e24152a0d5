// Mapped buffers: the peer writes directly into the application's memory.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

TEST(Iomap, what_the_peer_writes_is_there_before_the_bytes_it_sends_next) {
  Pair pair(0, 2);
  std::string target(100'000, ' ');
  ASSERT_EQ(::riomap(pair.server.get(), target.data(), target.size(), PROT_WRITE, 0, 4096), 4096);
  send(pair.server, "mapped");
  ASSERT_EQ(receive(pair.client), "mapped");
  const std::string bytes = pattern(60'000);
  EXPECT_EQ(::riowrite(pair.client.get(), bytes.data(), bytes.size(), 4096 + 1000, 0), bytes.size());
  send(pair.client, "written");
  ASSERT_EQ(receive(pair.server), "written");
  EXPECT_TRUE(target.substr(1000, bytes.size()) == bytes);
  EXPECT_EQ(target.substr(0, 1000), std::string(1000, ' '));
}

TEST(Iomap, without_an_offset_the_address_is_the_offset) {
  Pair pair(0, 1);
  char target = 0;
  const auto at = ::riomap(pair.server.get(), &target, 1, PROT_WRITE, 0, -1);
  EXPECT_EQ(at, reinterpret_cast<off_t>(&target));
}

TEST(Iomap, more_than_the_peer_has_room_for_is_no_memory) {
  Pair pair(0, 1);
  char one = 0, two = 0;
  EXPECT_EQ(::riomap(pair.server.get(), &one, 1, PROT_WRITE, 0, 0), 0);
  EXPECT_EQ(::riomap(pair.server.get(), &two, 1, PROT_WRITE, 0, 1), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(::riounmap(pair.server.get(), &one, 1), 0);
  EXPECT_EQ(::riomap(pair.server.get(), &two, 1, PROT_WRITE, 0, 1), 1);
}

TEST(Iomap, for_our_own_use_takes_no_room_of_the_peers) {
  Pair pair;
  char one = 0;
  EXPECT_EQ(::riomap(pair.client.get(), &one, 1, PROT_NONE, 0, 5), 5);
  EXPECT_EQ(::riounmap(pair.client.get(), &one, 1), 0);
  EXPECT_EQ(::riounmap(pair.client.get(), &one, 1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Iomap, writing_where_nothing_is_mapped_is_invalid) {
  Pair pair(0, 1);
  char byte = 0;
  EXPECT_EQ(::riowrite(pair.client.get(), &byte, 1, 0, 0), static_cast<std::size_t>(-1));
  EXPECT_EQ(errno, EINVAL);
}

TEST(Iomap, a_write_over_the_end_of_a_mapping_says_how_much_it_wrote) {
  Pair pair(0, 1);
  std::string target(10, ' ');
  ASSERT_EQ(::riomap(pair.server.get(), target.data(), target.size(), PROT_WRITE, 0, 0), 0);
  send(pair.server, "mapped");
  receive(pair.client);
  EXPECT_EQ(::riowrite(pair.client.get(), "abcdef", 6, 8, 0), 2U);
  send(pair.client, "written");
  receive(pair.server);
  EXPECT_EQ(target, "        ab");
}

TEST(Iomap, protection_other_than_none_or_write_is_invalid) {
  Pair pair(0, 1);
  char byte = 0;
  EXPECT_EQ(::riomap(pair.server.get(), &byte, 1, PROT_READ, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace weir::rsocket
