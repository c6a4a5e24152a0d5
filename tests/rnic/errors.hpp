// What the tests of completion errors have in common.
#pragma once

#include "two_nics.hpp"

namespace weir::rnic::test {

// After an error both further work requests and what was behind it are flushed.
inline void expect_flushes_sends(Endpoint& e, const Sge& sge) {
  EXPECT_EQ(e.qp().state(), QpState::err);
  ASSERT_EQ(e.send(99, sge, 0), PostResult::ok);
  EXPECT_TRUE(completed(e.poll_send(), 99, WcStatus::wr_flush_err));
}

class Errors : public TwoNics {};

}  // namespace weir::rnic::test
