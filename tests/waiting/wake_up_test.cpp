// The kernel refuses to watch a descriptor that an io_context needs for itself: the io_context cannot be
// used, and says so, instead of sleeping through what is posted to it.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <string>
#include <system_error>

namespace {
int refused = 0;  // the next registration but so many; 0: none
}

// In front of the C library's.
extern "C" int epoll_ctl(int set, int what, int descriptor, epoll_event* event) noexcept {
  if (what == EPOLL_CTL_ADD && refused != 0 && --refused == 0) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_epoll_ctl, set, what, descriptor, event));
}

namespace weir::waiting {
namespace {

class WakeUp : public testing::TestWithParam<int> {
 protected:
  void TearDown() override { refused = 0; }
};

TEST_P(WakeUp, that_is_refused_is_an_error) {
  asio::io_context io;
  refused = GetParam();
  try {
    const asio::steady_timer timer(io);
    ADD_FAILURE() << "an io_context that cannot be woken";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOSPC);
    EXPECT_NE(std::string(error.what()).find("wake-up descriptor"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Of, WakeUp, testing::Values(1, 2), [](const auto& instance) {
  return std::string(instance.param == 1 ? "threads" : "timers");
});

// The user's own descriptors are the business of Asio.
TEST_F(WakeUp, of_a_users_descriptor_is_its_own_error) {
  asio::io_context io;
  const asio::steady_timer timer(io);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  refused = 1;
  asio::posix::stream_descriptor descriptor(io);
  std::error_code error;
  descriptor.assign(ends[0], error);
  EXPECT_EQ(error.value(), ENOSPC);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace weir::waiting
