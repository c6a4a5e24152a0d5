// Which congestion control sockets get: within this host, and from an address that is not this host's (it was
// when the connection came, in a network namespace for this test, and was then removed).
#include "transport/tcp_pacing.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <ostream>
#include <string>

namespace weir::transport {
namespace {

struct Socket {
  explicit Socket(int open) : fd(open) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(fd); }
  int fd;
};

int tcp_socket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

std::string control_of(int fd) {
  char name[32] = {};
  socklen_t size = sizeof name - 1;
  return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0 ? name : std::strerror(errno);
}

bool choose(int fd, const char* name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, static_cast<socklen_t>(std::strlen(name))) == 0;
}

sockaddr_in at(std::uint32_t address, std::uint16_t port = 0) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = port;
  name.sin_addr.s_addr = htonl(address);
  return name;
}
const sockaddr* generic(const sockaddr_in& name) { return reinterpret_cast<const sockaddr*>(&name); }

constexpr std::uint32_t home = INADDR_LOOPBACK, elsewhere = 0xc0000201;  // 192.0.2.1, reserved (RFC 5737)

sockaddr_in listening(int fd) {
  sockaddr_in name = at(home);
  socklen_t size = sizeof name;
  EXPECT_EQ(bind(fd, generic(name), size), 0);
  EXPECT_EQ(listen(fd, 4), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  return name;
}

// What the host chose, and what a connection gets.
struct Case {
  const char* chosen;
  const char* within_host;
};
void PrintTo(const Case& row, std::ostream* out) { *out << row.chosen; }
class TcpPacing : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!choose(client.fd, GetParam().chosen) || !choose(listener.fd, GetParam().chosen))
      GTEST_SKIP() << "this kernel does not let us choose " << GetParam().chosen;
  }
  Socket client{tcp_socket()};
  Socket listener{tcp_socket()};
};

TEST_P(TcpPacing, what_connects_to_this_host_is_not_paced) {
  const sockaddr_in to = at(home, 1);
  spare_pacing(client.fd, generic(to), sizeof to);
  EXPECT_EQ(control_of(client.fd), GetParam().within_host);
}

TEST_P(TcpPacing, what_connects_to_another_host_is_as_its_host_chose) {
  const sockaddr_in to = at(elsewhere, 1);
  spare_pacing(client.fd, generic(to), sizeof to);
  EXPECT_EQ(control_of(client.fd), GetParam().chosen);
}

TEST_P(TcpPacing, what_is_accepted_from_this_host_is_not_paced) {
  const AcceptedPacing pacing(listener.fd);
  const sockaddr_in to = listening(listener.fd);
  ASSERT_EQ(connect(client.fd, generic(to), sizeof to), 0);
  const Socket accepted(accept(listener.fd, nullptr, nullptr));
  pacing.accepted(accepted.fd);
  EXPECT_EQ(control_of(accepted.fd), GetParam().within_host);
}

// The loopback device under an alias: up, with this address.
bool give_loopback(const char* name, std::uint32_t address) {
  const Socket asked(socket(AF_INET, SOCK_DGRAM, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  const sockaddr_in is = at(address);
  std::memcpy(&request.ifr_addr, &is, sizeof is);
  if (ioctl(asked.fd, SIOCSIFADDR, &request) != 0) return false;
  if (address == 0) return true;
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ioctl(asked.fd, SIOCSIFFLAGS, &request) == 0;
}

// 0: as chosen.
int accept_from_elsewhere(const char* chosen) {
  constexpr int refused = 77;
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return refused;
  if (!give_loopback("lo", home) || !give_loopback("lo:1", elsewhere)) return refused;
  const Socket listener(tcp_socket()), client(tcp_socket());
  const int once = 1;  // and not for two minutes, should the device not be what it is thought to be
  setsockopt(client.fd, IPPROTO_TCP, TCP_SYNCNT, &once, sizeof once);
  if (!choose(listener.fd, chosen)) return refused;
  const AcceptedPacing pacing(listener.fd);
  const sockaddr_in to = listening(listener.fd), from = at(elsewhere);
  if (bind(client.fd, generic(from), sizeof from) != 0 || connect(client.fd, generic(to), sizeof to) != 0)
    return 1;
  const Socket accepted(accept(listener.fd, nullptr, nullptr));
  if (!give_loopback("lo:1", 0)) return refused;
  pacing.accepted(accepted.fd);
  return control_of(accepted.fd) == chosen ? 0 : 2;
}

TEST_P(TcpPacing, what_is_accepted_from_another_host_is_as_its_host_chose) {
  const pid_t child = fork();
  if (child == 0) _exit(accept_from_elsewhere(GetParam().chosen));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "no network namespace of its own, or no " << GetParam().chosen;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(HostChose, TcpPacing,
                         testing::Values(Case{"bbr", "reno"}, Case{"reno", "reno"}, Case{"cubic", "cubic"}),
                         [](const auto& row) { return std::string(row.param.chosen); });

}  // namespace
}  // namespace weir::transport
