// The slots of keys, and what nodes report about slots.
#include <gtest/gtest.h>

#include "cluster/key_slot.hpp"
#include "cluster/redirect.hpp"

namespace weir::cluster {
namespace {

TEST(KeySlot, is_redis_clusters) {
  const struct {
    std::string_view key;
    int slot;
  } rows[] = {{"", 0},
              {"foo", 12182},
              {"bar", 5061},
              {"hello", 866},
              {"123456789", 12739},
              {"a{foo}b", 12182},
              {"{foo}{bar}", 12182},
              {"{}foo", 9500},
              {"{foo", 13308}};
  for (const auto& row : rows) EXPECT_EQ(key_slot(row.key), row.slot) << row.key;
  EXPECT_EQ(key_slot("foo{{bar}}zap"), key_slot("{bar"));
  EXPECT_NE(key_slot("foo{}{bar}"), key_slot("bar")) << "an empty tag is none";
}

TEST(Redirect, reads_what_nodes_say) {
  const struct {
    std::string_view reply;
    bool once;
    int slot;
    std::string_view host;
    int port;
  } rows[] = {
      {"-MOVED 3999 127.0.0.1:6381\r\n", false, 3999, "127.0.0.1", 6381},
      {"-ASK 0 10.1.2.3:7000\r\n", true, 0, "10.1.2.3", 7000},
      {"-MOVED 16383 fd00::1:6381\r\n", false, 16383, "fd00::1", 6381},
      {"-MOVED 5 :7001\r\n", false, 5, "answered", 7001},
      {"-MOVED 5 node-1.example:7001\r\n", false, 5, "node-1.example", 7001},
  };
  for (const auto& row : rows) {
    const auto redirect = read_redirect(row.reply, "answered");
    ASSERT_TRUE(redirect) << row.reply;
    EXPECT_EQ(redirect->once, row.once);
    EXPECT_EQ(redirect->slot, row.slot);
    EXPECT_EQ(redirect->to, (NodeAddress{std::string(row.host), static_cast<std::uint16_t>(row.port)}));
    const auto text = row.reply.substr(1, row.reply.size() - 3);
    EXPECT_EQ(read_redirect(text, "answered")->to, redirect->to) << "without '-' and the end of line";
  }
  for (std::string_view other : {"-ERR MOVED 1 a:1\r\n", "-MOVED\r\n", "-MOVED 1\r\n", "-MOVED 16384 a:1\r\n",
                                 "-MOVED -1 a:1\r\n", "-MOVED 1 a:0\r\n", "-MOVED 1 a:65536\r\n",
                                 "-MOVED 1 a\r\n", "-MOVED x a:1\r\n", "-MOVED 1 a b:1\r\n"})
    EXPECT_FALSE(read_redirect(other, "answered")) << other;
}

}  // namespace
}  // namespace weir::cluster
