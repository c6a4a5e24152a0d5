// Signals during a call that waits: signal(7), "Interruption of system calls by signal handlers".
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <future>

#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

std::atomic<int> handled;
void count_it(int) { handled.fetch_add(1); }
constexpr int until_it_returns = INT_MAX;

// A handler for SIGUSR1, and a thread that receives.
class Signals : public testing::Test {
 protected:
  void handle(int flags) {
    struct sigaction ours{};
    ours.sa_handler = count_it;
    ours.sa_flags = flags;
    ASSERT_EQ(::sigaction(SIGUSR1, &ours, &before), 0);
    handled = 0;
  }
  ~Signals() override { ::sigaction(SIGUSR1, &before, nullptr); }

  template <class Call>
  std::future<std::string> begin(Call call) {
    auto result = std::async(std::launch::async, [this, call] {
      thread = ::pthread_self();
      number = ::gettid();
      std::string said = call();
      returned = true;
      return said;
    });
    while (number == 0) ::sched_yield();
    return result;
  }
  // Each finds the thread asleep, and has been handled when this returns; none comes behind the call.
  void interrupt(int times) {
    for (int i = 0; i < times && !returned; ++i) {
      while (!sleeps(number) && !returned) ::sched_yield();
      ::pthread_kill(thread, SIGUSR1);
      while (handled == i && !returned) ::sched_yield();
    }
  }

  struct sigaction before{};
  pthread_t thread{};
  std::atomic<pid_t> number = 0;
  std::atomic<bool> returned = false;
};

TEST_F(Signals, whose_handlers_restart_calls_do_not_end_a_receive) {
  Pair pair;
  handle(SA_RESTART);
  auto received = begin([&] { return receive(pair.client); });
  interrupt(3);
  EXPECT_EQ(send(pair.server, "behind"), 6);
  EXPECT_EQ(received.get(), "behind");
}

TEST_F(Signals, whose_handlers_do_not_restart_calls_end_a_receive) {
  Pair pair;
  handle(0);
  auto received = begin([&] { return receive(pair.client); });
  interrupt(until_it_returns);
  EXPECT_EQ(received.get(), words(EINTR));
}

TEST_F(Signals, end_a_poll_whatever_their_handlers_say) {
  Pair pair;
  handle(SA_RESTART);
  auto polled = begin([&] {
    pollfd one{.fd = pair.client.get(), .events = POLLIN, .revents = 0};
    return ::rpoll(&one, 1, -1) < 0 ? words(errno) : std::string("ready");
  });
  interrupt(until_it_returns);
  EXPECT_EQ(polled.get(), words(EINTR));
}

}  // namespace
}  // namespace weir::rsocket
