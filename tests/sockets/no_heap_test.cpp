// poll(), select() and what reads and writes may be called by a signal handler that interrupted malloc(), so
// they must not call it. Runs under the preloaded library; this program's functions are in front of the
// heap's.
#include <gtest/gtest.h>
#include <sys/select.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/sockets/change_fixture.hpp"

namespace {
constinit std::atomic<int> calls_of_heap{0};
constinit thread_local bool counts_calls = false;

void note_call() {
  if (counts_calls) ++calls_of_heap;
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void __libc_free(void* old);

void* malloc(size_t bytes) {
  note_call();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note_call();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  note_call();
  return __libc_realloc(old, bytes);
}
void free(void* old) {
  if (old != nullptr) note_call();
  __libc_free(old);
}
}

namespace weir::sockets::test {
namespace {

using NoHeap = Change;

struct Waiting {
  const char* what;
  int (*wait)(int fd, int timeout_ms);
};

constexpr std::size_t many = 300;

constexpr Waiting waiting_calls[] = {{"poll",
                                      [](int fd, int timeout_ms) {
                                        pollfd one{fd, POLLIN, 0};
                                        return ::poll(&one, 1, timeout_ms);
                                      }},
                                     {"poll with many descriptors",
                                      [](int fd, int timeout_ms) {
                                        std::array<pollfd, many> all{};
                                        all.fill({-1, 0, 0});
                                        all.back() = {fd, POLLIN, 0};
                                        return ::poll(all.data(), all.size(), timeout_ms);
                                      }},
                                     {"ppoll",
                                      [](int fd, int timeout_ms) {
                                        pollfd one{fd, POLLIN, 0};
                                        const timespec limit{.tv_sec = timeout_ms / 1000, .tv_nsec = 0};
                                        sigset_t none;
                                        ::sigemptyset(&none);
                                        return ::ppoll(&one, 1, &limit, &none);
                                      }},
                                     {"select", [](int fd, int timeout_ms) {
                                        fd_set set;
                                        FD_ZERO(&set);
                                        FD_SET(fd, &set);
                                        timeval limit{.tv_sec = timeout_ms / 1000, .tv_usec = 0};
                                        return ::select(fd + 1, &set, nullptr, nullptr, &limit);
                                      }}};

TEST_F(NoHeap, no_call_that_waits_allocates) {
  for (const Waiting& row : waiting_calls) {
    SCOPED_TRACE(row.what);
    std::atomic<bool> looked{false};
    // A thread of its own: its first call must not allocate either.
    std::thread waits([&] {
      counts_calls = true;
      const int none = row.wait(pair_.server, 0);
      looked = true;
      const int one = row.wait(pair_.server, longest_ms);
      counts_calls = false;
      EXPECT_EQ(none, 0);
      EXPECT_EQ(one, 1);
    });
    while (!looked) std::this_thread::yield();
    ASSERT_TRUE(send_all(pair_.client, "x"));
    waits.join();
    EXPECT_EQ(receive(pair_.server, 1), "x");
    EXPECT_EQ(calls_of_heap.exchange(0), 0);
  }
}

TEST_F(NoHeap, a_select_of_others_descriptors_allocates_nothing) {
  counts_calls = true;
  fd_set set;
  FD_ZERO(&set);
  FD_SET(STDERR_FILENO, &set);
  timeval at_once{};
  ::select(FD_SETSIZE, nullptr, &set, nullptr, &at_once);
  counts_calls = false;
  EXPECT_EQ(calls_of_heap.exchange(0), 0);
}

TEST_F(NoHeap, no_call_that_reads_or_writes_allocates) {
  std::thread talks([&] {
    counts_calls = true;
    std::array<char, 24> bytes{};
    ssize_t sent = 0, got = 0;
    for (int i = 0; i < 100; ++i) {
      sent += ::send(pair_.client, bytes.data(), bytes.size(), 0);
      got += ::recv(pair_.server, bytes.data(), bytes.size(), MSG_WAITALL);
    }
    counts_calls = false;
    EXPECT_EQ(sent, 2400);
    EXPECT_EQ(got, 2400);
  });
  talks.join();
  EXPECT_EQ(calls_of_heap.exchange(0), 0);
}

}  // namespace
}  // namespace weir::sockets::test
