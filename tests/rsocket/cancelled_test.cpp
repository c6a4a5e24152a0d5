// Threads that are cancelled in a call of an rsocket: as with sockets, cancellation ends only the calls that
// wait for a peer, and leaves nothing behind.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "tests/cancelled_thread.hpp"
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

TEST(Cancelled, what_waits_for_nobody_is_done_whole) {
  const auto expect_whole = [](const char* name, const std::function<int()>& call) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(test::is_ended_in([&] { EXPECT_GE(call(), 0) << std::strerror(errno); }));
  };
  Rsocket listener, next;
  auto here = loopback(0);
  expect_whole("socket", [&] { return (listener = stream()).get(); });
  expect_whole("bind", [&] { return ::rbind(listener.get(), as_address(here), sizeof here); });
  expect_whole("listen", [&] { return ::rlisten(listener.get(), 4); });
  Pair pair;
  int value = 1;
  socklen_t size = sizeof value;
  expect_whole("option", [&] {
    return ::rsetsockopt(pair.client.get(), IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
  });
  expect_whole("error",
               [&] { return ::rgetsockopt(pair.client.get(), SOL_SOCKET, SO_ERROR, &value, &size); });
  expect_whole("shutdown", [&] { return ::rshutdown(pair.server.get(), SHUT_WR); });
  EXPECT_EQ(receive(pair.client), "");
  EXPECT_EQ(send(pair.client, "last"), 4);
  expect_whole("close", [&] { return ::rclose(pair.client.release()); });
  EXPECT_EQ(receive(pair.server), "last");
  EXPECT_EQ(receive(pair.server), "");
}

}  // namespace
}  // namespace weir::rsocket
