#include "sockets/calls/kernel_events.hpp"

#include <gtest/gtest.h>

namespace weir::sockets {
namespace {

std::uint32_t bits(const KernelEvents& of) { return KernelEvents::bits(of.seen()); }

TEST(KernelEvents, a_reader_that_found_nothing_left_clears_a_report) {
  KernelEvents events;
  events.reported(EPOLLIN | EPOLLOUT);
  EXPECT_EQ(bits(events), unsigned{EPOLLIN});
  events.emptied(events.seen());
  EXPECT_EQ(bits(events), 0u);
}

TEST(KernelEvents, a_reader_does_not_clear_what_was_reported_meanwhile) {
  KernelEvents events;
  events.reported(EPOLLIN);
  const auto before_read = events.seen();
  events.reported(EPOLLIN);
  events.emptied(before_read);
  events.absent(before_read, EPOLLIN);
  EXPECT_EQ(bits(events), unsigned{EPOLLIN});
}

TEST(KernelEvents, a_short_read_proves_nothing_at_the_end_of_the_stream) {
  KernelEvents events;
  events.reported(EPOLLIN | EPOLLRDHUP);
  events.emptied(events.seen());
  EXPECT_EQ(bits(events), unsigned{EPOLLIN | EPOLLRDHUP});
  events.absent(events.seen(), EPOLLRDHUP);
  EXPECT_EQ(bits(events), unsigned{EPOLLIN});
}

TEST(KernelEvents, another_connection_does_not_get_the_reports_of_the_one_before) {
  KernelEvents events;
  const auto before = events.seen();
  events.reported(EPOLLIN);
  events.renew();
  EXPECT_EQ(bits(events), 0u);
  events.reported(EPOLLIN);
  events.emptied(before);
  EXPECT_EQ(bits(events), unsigned{EPOLLIN});
}

}  // namespace
}  // namespace weir::sockets
