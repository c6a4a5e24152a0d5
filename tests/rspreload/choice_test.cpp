// Which sockets become rsockets, according to the lines of preload_config.
#include "verbs/rspreload/choice.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <sstream>

namespace weir::rspreload {
namespace {

struct Socket {
  const char* program;
  int domain, type, protocol;
};
constexpr Socket tcp{"redis-server", AF_INET, SOCK_STREAM, 0}, tcp6{"redis-server", AF_INET6, SOCK_STREAM, 0},
    udp{"redis-server", AF_INET, SOCK_DGRAM, 0}, iperfs{"iperf", AF_INET, SOCK_STREAM, IPPROTO_TCP};

bool takes(const std::string& lines, const Socket& socket) {
  std::istringstream text(lines);
  return Choice::read(text).takes(socket.program, socket.domain, socket.type, socket.protocol);
}

struct Row {
  const char* what;
  const char* lines;
  bool tcp, tcp6, udp, iperfs;
};

TEST(Choice, follows_the_lines) {
  const Row rows[] = {
      {"no line takes all", "", true, true, true, true},
      {"a comment is no line", "# iperf INET STREAM TCP\n", true, true, true, true},
      {"one program", "iperf * * *\n", false, false, false, true},
      {"by the beginning of its name", "redis * * *\n", true, true, true, false},
      {"case does not matter", "REDIS-server inet stream tcp\n", true, false, false, false},
      {"one domain", "* INET6 * *\n", false, true, false, false},
      {"the names with prefixes", "* PF_INET SOCK_DGRAM IPPROTO_UDP\n", false, false, true, false},
      {"protocol 0 is the usual one", "* * * TCP\n", true, true, false, true},
      {"several lines", "iperf INET STREAM TCP\n* INET6 * *\n", false, true, false, true},
      {"a word without meaning voids its line", "* INET7 * *\niperf * * *\n", false, false, false, true},
      {"so does one that is missing", "* * *\niperf * * *\n", false, false, false, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(takes(row.lines, tcp), row.tcp);
    EXPECT_EQ(takes(row.lines, tcp6), row.tcp6);
    EXPECT_EQ(takes(row.lines, udp), row.udp);
    EXPECT_EQ(takes(row.lines, iperfs), row.iperfs);
  }
}

TEST(Choice, leaves_sockets_alone_that_rsockets_cannot_be) {
  EXPECT_FALSE(takes("", {"any", AF_UNIX, SOCK_STREAM, 0}));
  EXPECT_FALSE(takes("", {"any", AF_INET, SOCK_RAW, 0}));
  EXPECT_FALSE(takes("", {"any", AF_NETLINK, SOCK_DGRAM, 0}));
  EXPECT_FALSE(takes("", {"ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP}));
  EXPECT_FALSE(takes("", {"any", AF_INET6, SOCK_STREAM, IPPROTO_SCTP}));
  EXPECT_FALSE(takes("", {"any", AF_INET, SOCK_STREAM, IPPROTO_MPTCP}));
  EXPECT_FALSE(takes("* * * *\n", {"any", AF_INET, SOCK_STREAM, IPPROTO_UDP}));
}

}  // namespace
}  // namespace weir::rspreload
