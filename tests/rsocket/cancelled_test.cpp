// Threads that are cancelled in a call of an rsocket: they leave nothing behind.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

// A thread that is cancelled in its call. None of its memory is left then, so that what still points there is
// found out.
class CancelledAsleep {
 public:
  explicit CancelledAsleep(std::function<void()> call) : call_(std::move(call)) {
    void* const stack =
        ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(stack, MAP_FAILED);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstack(&attributes, stack, stack_bytes);
    pthread_t thread;
    EXPECT_EQ(::pthread_create(&thread, &attributes, run, this), 0);
    ::pthread_attr_destroy(&attributes);
    while (number_ == 0 || !sleeps(number_)) ::sched_yield();
    ::pthread_cancel(thread);
    void* result = nullptr;
    ::pthread_join(thread, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    ::munmap(stack, stack_bytes);
  }

 private:
  static constexpr std::size_t stack_bytes = 8 << 20;
  static void* run(void* self) {
    auto& ours = *static_cast<CancelledAsleep*>(self);
    ours.number_ = ::gettid();
    ours.call_();
    return nullptr;
  }
  const std::function<void()> call_;
  std::atomic<pid_t> number_ = 0;
};

TEST(Cancelled, who_slept_in_a_receive_is_woken_no_more) {
  const Pair pair;
  const CancelledAsleep reader([&] { (void)receive(pair.client); });
  EXPECT_EQ(send(pair.server, "text"), 4);
  EXPECT_EQ(poll(pair.client, POLLIN), POLLIN);
  EXPECT_EQ(receive(pair.client), "text");
}

TEST(Cancelled, who_slept_in_a_poll_is_woken_no_more) {
  const Pair pair;
  const CancelledAsleep poller([&] { (void)poll(pair.client, POLLIN); });
  EXPECT_EQ(send(pair.server, "text"), 4);
  EXPECT_EQ(receive(pair.client), "text");
}

TEST(Cancelled, who_slept_in_an_accept_is_woken_no_more) {
  const Rsocket listener = listening(), client = stream();
  const CancelledAsleep server([&] { (void)::raccept(listener.get(), nullptr, nullptr); });
  EXPECT_EQ(connect(client, name_of(listener)), 0) << std::strerror(errno);
  const Rsocket accepted(::raccept(listener.get(), nullptr, nullptr));
}

}  // namespace
}  // namespace weir::rsocket
