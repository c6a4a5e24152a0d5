#include "link/progress_thread.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <csignal>
#include <future>

#include "tests/link/fixture.hpp"

namespace weir::link {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class Progress : public testing::Test {
 protected:
  Progress() {
    auto started = ProgressThread::start();
    EXPECT_TRUE(started);
    thread_ = *started;
  }
  void run(const std::function<void()>& what) {
    std::promise<void> done;
    thread_->post([&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }
  std::shared_ptr<ProgressThread> thread_;
};

TEST_F(Progress, timers_run_by_time_and_equal_times_in_the_order_given) {
  std::vector<int> order;
  std::promise<void> last;
  run([&] {  // on the thread itself: none runs before all are set, however late we are
    const auto base = Clock::now();
    thread_->at(base + 2ms, [&] { order.push_back(4); });
    thread_->at(base, [&] { order.push_back(2); });
    thread_->at(base, [&] { order.push_back(3); });
    thread_->at(base + 4ms, [&] { last.set_value(); });
    thread_->at(base - 1h, [&] { order.push_back(1); });
  });
  last.get_future().wait();
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST_F(Progress, a_timer_never_runs_early) {
  for (const auto delay : {0us, 50us, 1000us, 5000us}) {
    std::promise<Clock::time_point> ran;
    const auto due = Clock::now() + delay;
    thread_->at(due, [&] { ran.set_value(Clock::now()); });
    EXPECT_GE(ran.get_future().get(), due);
  }
}

TEST_F(Progress, a_cancelled_timer_does_not_run_and_one_that_ran_cannot_be_cancelled) {
  int runs = 0;
  std::promise<void> over;
  ProgressThread::TimerId second{};
  run([&] {  // on the thread itself: the first cannot run before it is cancelled, however late we are
    const auto base = Clock::now();
    const auto first = thread_->at(base, [&] { ++runs; });
    second = thread_->at(base + 1ms, [&] { over.set_value(); });
    EXPECT_TRUE(thread_->cancel(first));
    EXPECT_FALSE(thread_->cancel(first));
  });
  over.get_future().wait();
  EXPECT_FALSE(thread_->cancel(second));
  EXPECT_FALSE(thread_->cancel(12345));
  EXPECT_EQ(runs, 0);
}

TEST_F(Progress, a_timer_may_set_and_cancel_others) {
  std::vector<int> order;
  std::promise<void> over;
  const auto base = Clock::now();
  ProgressThread::TimerId victim = thread_->at(base + 1h, [&] { order.push_back(-1); });
  thread_->at(base + 1ms, [&] {
    order.push_back(1);
    EXPECT_TRUE(thread_->cancel(victim));
    thread_->at(base, [&] {
      order.push_back(2);
      over.set_value();
    });
  });
  over.get_future().wait();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_F(Progress, posted_functions_run_in_order_on_the_thread) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) thread_->post([&, i] { order.push_back(i); });
  run([&] { EXPECT_TRUE(thread_->is_current()); });
  EXPECT_FALSE(thread_->is_current());
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(Progress, the_thread_takes_no_signals_and_has_a_name) {
  run([] {
    sigset_t blocked;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM})
      EXPECT_EQ(::sigismember(&blocked, signal), 1);
    char name[16] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "weir-link");
  });
  sigset_t ours;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &ours), 0);
  EXPECT_EQ(::sigismember(&ours, SIGINT), 0);
}

TEST_F(Progress, a_removed_descriptor_is_silent_even_when_a_copy_of_it_stays_open) {
  const UniqueFd copy(::eventfd(0, EFD_NONBLOCK));
  UniqueFd event(::dup(copy.get()));
  int runs = 0;
  const auto key = thread_->add(event.get(), EPOLLIN, [&](std::uint32_t) {
    ++runs;
    event_count(copy.get());
  });
  ASSERT_TRUE(key);
  signal_event(copy.get());
  while (event_count(copy.get()) != 0) {
  }
  thread_->remove(*key);
  const int before = runs;
  event.reset();
  signal_event(copy.get());
  run([] {});
  EXPECT_EQ(runs, before);
}

TEST_F(Progress, a_descriptor_that_cannot_be_watched_is_an_error) {
  const UniqueFd file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  const UniqueFd regular(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(thread_->add(regular.get(), EPOLLIN, [](std::uint32_t) {}));
  EXPECT_FALSE(thread_->add(-1, EPOLLIN, [](std::uint32_t) {}));
}

TEST_F(Progress, stopping_drops_what_has_not_run) {
  auto token = std::make_shared<int>(0);
  thread_->at(Clock::now() + 1h, [token] {});
  thread_->stop();
  thread_.reset();
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace weir::link
