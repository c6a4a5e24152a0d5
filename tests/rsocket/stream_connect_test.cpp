// connect() on a stream that is already connecting or has failed: as connect(2) does for TCP.
#include <gmock/gmock.h>

#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

// Connecting to an address without a listener; the error comes some time later.
class RefusedConnect : public testing::Test {
 protected:
  RefusedConnect() {
    {
      Rsocket gone = listening();
      nowhere = name_of(gone);
    }
    set_blocking(client, false);
    EXPECT_EQ(connect(client, nowhere), -1);
    EXPECT_EQ(errno, EINPROGRESS);
  }
  Rsocket client = stream();
  sockaddr_in nowhere{};
};

TEST_F(RefusedConnect, is_told_by_the_next_connect_too_and_the_one_after_begins_anew) {
  EXPECT_NE(poll(client, POLLOUT) & POLLERR, 0);
  EXPECT_EQ(connect(client, nowhere), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(value_of(client, SOL_SOCKET, SO_ERROR), 0) << "it was told";
  const Rsocket listener = listening();
  set_blocking(client, true);
  EXPECT_EQ(connect(client, name_of(listener)), 0) << std::strerror(errno);
}

TEST_F(RefusedConnect, is_told_once_by_whatever_call_comes_first) {
  EXPECT_NE(poll(client, POLLOUT) & POLLERR, 0);
  EXPECT_EQ(value_of(client, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
  const Rsocket listener = listening();
  set_blocking(client, true);
  EXPECT_EQ(connect(client, name_of(listener)), 0) << std::strerror(errno);
}

TEST_F(RefusedConnect, is_waited_for_by_a_connect_that_blocks) {
  EXPECT_EQ(connect(client, nowhere), -1);
  EXPECT_EQ(errno, EALREADY);
  set_blocking(client, true);
  EXPECT_EQ(connect(client, nowhere), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

}  // namespace
}  // namespace weir::rsocket
