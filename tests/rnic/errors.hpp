// What the tests of completion errors have in common.
#pragma once

#include "two_nics.hpp"

namespace weir::rnic::test {

class Errors : public TwoNics {
 protected:
  // After an error both further work requests and what was behind it are flushed.
  static void expect_flushes_sends(Endpoint& e, const Sge& sge) {
    EXPECT_EQ(e.qp().state(), QpState::err);
    ASSERT_EQ(e.send(99, sge, 0), PostResult::ok);
    EXPECT_TRUE(completed(e.poll_send(), 99, WcStatus::wr_flush_err));
  }
};

}  // namespace weir::rnic::test
