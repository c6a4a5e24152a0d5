#include "link/own_thread.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>

namespace weir::link {
namespace {

// Of glibc's allocator: each thread makes one with its first allocation.
std::size_t arenas() {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* const into = ::open_memstream(&text, &length);
  EXPECT_EQ(::malloc_info(0, into), 0);
  std::fclose(into);
  const std::string all(text, length);
  std::free(text);
  std::size_t count = 0;
  for (std::size_t at = 0; (at = all.find("<heap ", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(OwnThread, has_allocated_when_it_is_made) {
  const std::size_t at_first = arenas();
  std::promise<void> ready, end;
  std::shared_future<void> ended(end.get_future());
  std::thread any([&] {
    void* volatile held = std::malloc(1);
    ready.set_value();
    ended.wait();
    std::free(held);
  });
  ready.get_future().wait();
  const std::size_t before = arenas();
  std::thread ours = own_thread([&] { ended.wait(); });
  const std::size_t with_ours = arenas();
  end.set_value();
  any.join();
  ours.join();
  if (before == at_first) GTEST_SKIP() << "this allocator, a sanitizer's perhaps, has no arenas";
  EXPECT_EQ(with_ours, before + 1);
}

TEST(OwnThread, blocks_all_signals_but_those_of_a_fault) {
  sigset_t creator, theirs;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &creator);
  own_thread([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &theirs); }).join();
  for (const int each : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGPIPE})
    EXPECT_EQ(::sigismember(&theirs, each), 1) << each;
  for (const int each : {SIGSEGV, SIGBUS}) EXPECT_EQ(::sigismember(&theirs, each), 0) << each;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int each = 1; each < SIGRTMIN; ++each)
    EXPECT_EQ(::sigismember(&after, each), ::sigismember(&creator, each)) << each;
}

}  // namespace
}  // namespace weir::link
