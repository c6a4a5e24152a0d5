// When a link checks for late calls. Deadlines are long past or far away, so no test waits for one.
#include "rpc/link/deadline_timer.hpp"

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <vector>

namespace weir::rpc {
namespace {

constexpr Deadline over{};  // long past
const Deadline far_away = std::chrono::steady_clock::now() + std::chrono::hours(1);

class SilentTransport final : public Transport {
 public:
  void start(TransportUser&) override {}
  std::size_t write(std::span<const asio::const_buffer>) override { return 0; }
  void read_on(bool) override {}
  bool end_output() override { return true; }
  void close() override {}
  std::string peer() const override { return "silent"; }
};

class LookingLink final : public FrameLink {
 public:
  explicit LookingLink(asio::io_context& io) : FrameLink(io, std::make_shared<SilentTransport>(), {}) {}

  int looks = 0;
  Deadline next = no_deadline;         // the earliest deadline that is not over, as end_late reports it
  Deadline begins_late = no_deadline;  // the deadline of a call that starts while others end
  std::size_t calls = 1;               // number of calls
  std::vector<Deadline> looked;
  DeadlineTimer deadlines{*this, [this](Deadline now) {
                            ++looks;
                            looked.push_back(now);
                            if (begins_late != no_deadline)
                              deadlines.keep(std::exchange(begins_late, no_deadline));
                            return DeadlineTimer::Look{std::exchange(next, no_deadline), calls};
                          }};

 private:
  bool on_arrival(Frame&) override { return true; }
  void on_end(const Error&) override {}
};

class DeadlineTimerTest : public testing::Test {
 protected:
  asio::io_context io;
  std::shared_ptr<LookingLink> link = std::make_shared<LookingLink>(io);

  int looks_now() {
    io.restart();
    io.poll();
    return link->looks;
  }
};

TEST_F(DeadlineTimerTest, looks_once_for_all_that_are_late_and_not_before) {
  link->deadlines.keep(far_away);
  EXPECT_EQ(looks_now(), 0);
  link->deadlines.keep(over);
  link->deadlines.keep(over);
  link->deadlines.keep(far_away);
  EXPECT_EQ(looks_now(), 1);
  EXPECT_EQ(looks_now(), 1);
}

TEST_F(DeadlineTimerTest, looks_again_for_the_next_of_those_that_are_left) {
  link->next = over;
  link->deadlines.keep(over);
  EXPECT_EQ(looks_now(), 2);
}

TEST_F(DeadlineTimerTest, minds_calls_that_begin_while_others_end) {
  link->next = far_away;
  link->begins_late = over;
  link->deadlines.keep(over);
  EXPECT_EQ(looks_now(), 2);
}

TEST_F(DeadlineTimerTest, looks_at_nothing_when_all_have_ended) {
  link->deadlines.keep(over);
  link->deadlines.cancel();
  EXPECT_EQ(looks_now(), 0);
}

TEST_F(DeadlineTimerTest, does_not_keep_its_link) {
  link->deadlines.keep(far_away);
  const std::weak_ptr<LookingLink> gone = link;
  link.reset();
  EXPECT_TRUE(gone.expired());
  io.poll();
}

TEST_F(DeadlineTimerTest, looks_at_thousands_of_calls_no_more_often_than_it_pauses) {
  link->calls = 60'000;
  link->next = over;
  link->deadlines.keep(over);
  while (link->looks < 3) {
    io.restart();
    io.run_one();
    link->next = over;           // the next one is over already
    link->deadlines.keep(over);  // and there are more
  }
  for (std::size_t i = 1; i < link->looked.size(); ++i)
    EXPECT_GE(link->looked[i] - link->looked[i - 1], DeadlineTimer::most_pause);
}

}  // namespace
}  // namespace weir::rpc
