// Five thousand connections in one epoll set: more members than the set's waiter has bits, and more ends in
// the process than its NIC has completion queues. Runs under the preloaded library; labelled slow.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/sockets/tcp_pair.hpp"

namespace weir::sockets::test {
namespace {

constexpr std::size_t connections = 5000, spare = 400;
constexpr std::chrono::seconds longest{400};

class ManyConnections : public ::testing::Test {
 protected:
  void SetUp() override {
    rlimit most{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &most), 0);
    most.rlim_cur = most.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &most), 0);
    // The library keeps the last eighth for itself.
    if (most.rlim_max - most.rlim_max / 8 < 2 * connections + spare)
      GTEST_SKIP() << "too few descriptors are allowed";
    set_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < connections; ++i) {
      pairs_.push_back(std::make_unique<TcpPair>());
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      ASSERT_EQ(::epoll_ctl(set_, EPOLL_CTL_ADD, pairs_.back()->server, &event), 0);
    }
  }
  void TearDown() override {
    if (set_ >= 0) ::close(set_);
  }

  // Each client sends a byte. Returns how many of these TCP did not carry.
  std::size_t send_to_each() const {
    std::size_t by_ring = 0;
    for (const auto& pair : pairs_) {
      const auto before = written_to_tcp(pair->client);
      EXPECT_TRUE(send_all(pair->client, "x"));
      by_ring += written_to_tcp(pair->client) == before ? 1 : 0;
    }
    return by_ring;
  }
  void read_what_the_set_reports() const {
    std::vector<epoll_event> found(connections);
    for (std::size_t read = 0; read < connections;) {
      const int count = ::epoll_wait(set_, found.data(), static_cast<int>(found.size()), longest_ms);
      ASSERT_GT(count, 0) << read << " of " << connections << " were reported";
      for (int i = 0; i < count; ++i) {
        char byte = 0;
        const ssize_t got =
            ::recv(pairs_[found[static_cast<std::size_t>(i)].data.u64]->server, &byte, 1, MSG_DONTWAIT);
        read += got == 1 ? 1 : 0;
        if (got < 0) {
          ASSERT_EQ(errno, EAGAIN);
        }
      }
    }
  }

  int set_ = -1;
  std::vector<std::unique_ptr<TcpPair>> pairs_;
};

// The files in which the library's rings lie.
std::size_t ring_files() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string file = std::filesystem::read_symlink(entry.path(), ignored).string();
    count += file.starts_with("/memfd:weir-sockets") ? 1 : 0;
  }
  return count;
}

TEST_F(ManyConnections, each_changes_and_one_epoll_set_reports_each) {
  const auto until = std::chrono::steady_clock::now() + longest;
  std::size_t changed = 0;
  while (changed < connections && !HasFailure() && std::chrono::steady_clock::now() < until) {
    for (const auto& pair : pairs_) ASSERT_NO_FATAL_FAILURE(exchange(*pair));
    changed = send_to_each();
    ASSERT_NO_FATAL_FAILURE(read_what_the_set_reports());
  }
  EXPECT_EQ(changed, connections) << "the others stayed on TCP";
  EXPECT_LE(ring_files(), 2 * 8u) << "eight of this library, which the NIC may hold a second time";
}

}  // namespace
}  // namespace weir::sockets::test
