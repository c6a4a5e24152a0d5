// The options of an rsocket, and the files that give their defaults.
#include "verbs/rsocket/options.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <filesystem>
#include <fstream>

#include "tests/scratch_directory.hpp"

namespace weir::rsocket {
namespace {

struct Row {
  const char* what;
  int level, name, set, reads;
};
class IntOption : public testing::TestWithParam<Row> {};
TEST_P(IntOption, reads_back_as_documented) {
  const Row& row = GetParam();
  Options options;
  ASSERT_EQ(options.set(row.level, row.name, &row.set, sizeof row.set, false), 0) << row.what;
  int value = -1;
  socklen_t size = sizeof value;
  ASSERT_EQ(options.get(row.level, row.name, &value, &size), 0) << row.what;
  EXPECT_EQ(value, row.reads) << row.what;
  EXPECT_EQ(size, sizeof value);
}
INSTANTIATE_TEST_SUITE_P(Each, IntOption,
                         testing::Values(Row{"SO_RCVBUF is doubled", SOL_SOCKET, SO_RCVBUF, 100000, 200000},
                                         Row{"SO_SNDBUF is doubled", SOL_SOCKET, SO_SNDBUF, 100000, 200000},
                                         Row{"buffers have a least size", SOL_SOCKET, SO_RCVBUF, 0, 4096},
                                         Row{"and a largest", SOL_SOCKET, SO_SNDBUF, -1, 1 << 28},
                                         Row{"SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 7, 1},
                                         Row{"SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1, 1},
                                         Row{"SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1, 1},
                                         Row{"TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1, 1},
                                         Row{"TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 30, 30},
                                         Row{"IPV6_V6ONLY", IPPROTO_IPV6, IPV6_V6ONLY, 1, 1},
                                         Row{"RDMA_SQSIZE", SOL_RDMA, RDMA_SQSIZE, 100, 100},
                                         Row{"queues have a least size", SOL_RDMA, RDMA_RQSIZE, 1, 16},
                                         Row{"RDMA_INLINE", SOL_RDMA, RDMA_INLINE, 384, 384},
                                         Row{"inline has a largest size", SOL_RDMA, RDMA_INLINE, 1 << 20,
                                             1024},
                                         Row{"RDMA_IOMAPSIZE", SOL_RDMA, RDMA_IOMAPSIZE, 5, 5},
                                         Row{"RDMA_IOMAPSIZE above 128 is cut to a multiple of 256", SOL_RDMA,
                                             RDMA_IOMAPSIZE, 700, 512}));

TEST(Options, a_connected_socket_keeps_the_queues_it_has) {
  Options options;
  const int size = 100;
  EXPECT_EQ(options.set(SOL_RDMA, RDMA_SQSIZE, &size, sizeof size, true), EINVAL);
  const auto before = options.receive_bytes;
  EXPECT_EQ(options.set(SOL_SOCKET, SO_RCVBUF, &size, sizeof size, true), 0);
  EXPECT_EQ(options.receive_bytes, before);
}

TEST(Options, unknown_ones_are_not_options_of_the_protocol) {
  Options options;
  int value = 1;
  socklen_t size = sizeof value;
  for (const auto& [level, name] :
       {std::pair<int, int>{SOL_SOCKET, SO_BROADCAST}, std::pair<int, int>{IPPROTO_TCP, TCP_CORK},
        std::pair<int, int>{IPPROTO_IPV6, IPV6_UNICAST_HOPS}, std::pair<int, int>{SOL_RDMA, 99},
        std::pair<int, int>{IPPROTO_UDP, 1}}) {
    EXPECT_EQ(options.set(level, name, &value, sizeof value, false), ENOPROTOOPT) << level << " " << name;
    EXPECT_EQ(options.get(level, name, &value, &size), ENOPROTOOPT) << level << " " << name;
  }
}

TEST(Options, too_short_a_value_is_invalid) {
  Options options;
  const char value = 1;
  for (const int level : {SOL_SOCKET, static_cast<int>(IPPROTO_TCP), SOL_RDMA}) {
    const int name = level == SOL_SOCKET ? SO_KEEPALIVE : level == SOL_RDMA ? RDMA_INLINE : TCP_NODELAY;
    EXPECT_EQ(options.set(level, name, &value, sizeof value, false), EINVAL) << level;
  }
  EXPECT_EQ(options.set(SOL_SOCKET, SO_LINGER, &value, sizeof value, false), EINVAL);
}

class DefaultFiles : public testing::Test {
 protected:
  void write(const char* file, const char* text) { std::ofstream(folder_ / file) << text; }

 private:
  test::ScratchDirectory scratch_;

 protected:
  const std::filesystem::path folder_ = scratch_.path();
};

TEST_F(DefaultFiles, that_are_absent_leave_the_documented_defaults) {
  const auto defaults = Defaults::read(folder_.c_str());
  EXPECT_EQ(defaults.receive_bytes, 524288U);
  EXPECT_EQ(defaults.send_bytes, 524288U);
  EXPECT_EQ(defaults.send_queue, 384);
  EXPECT_EQ(defaults.receive_queue, 384);
  EXPECT_EQ(defaults.inline_bytes, 64U);
  EXPECT_EQ(defaults.iomap_entries, 0U);
}

TEST_F(DefaultFiles, are_read_and_brought_into_their_limits) {
  write("mem_default", "1000000\n");
  write("wmem_default", "1");
  write("sqsize_default", "100");
  write("rqsize_default", "1000000");
  write("inline_default", "32");
  write("iomap_size", "9");
  write("polling_time", "50");
  const auto defaults = Defaults::read(folder_.c_str());
  EXPECT_EQ(defaults.receive_bytes, 1000000U);
  EXPECT_EQ(defaults.send_bytes, 4096U);
  EXPECT_EQ(defaults.send_queue, 100);
  EXPECT_EQ(defaults.receive_queue, 16384);
  EXPECT_EQ(defaults.inline_bytes, 32U);
  EXPECT_EQ(defaults.iomap_entries, 9U);
  EXPECT_EQ(defaults.polling_us, 50U);
}

TEST_F(DefaultFiles, with_nonsense_are_as_if_absent) {
  write("mem_default", "much");
  write("sqsize_default", "-5");
  write("inline_default", "99999999999999999999");
  const auto defaults = Defaults::read(folder_.c_str());
  EXPECT_EQ(defaults.receive_bytes, 524288U);
  EXPECT_EQ(defaults.send_queue, 384);
  EXPECT_EQ(defaults.inline_bytes, 64U);
}

}  // namespace
}  // namespace weir::rsocket
