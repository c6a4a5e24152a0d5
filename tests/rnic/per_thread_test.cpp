#include "rnic/memory/per_thread.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace weir::rnic {
namespace {

std::atomic<int> made, freed;

struct Sample {
  ~Sample() { ++freed; }
  int number = ++made;
};

TEST(PerThread, is_one_object_until_the_thread_ends) {
  const int freed_before = freed;
  int first = 0, second = 0;
  std::thread([&] {
    first = per_thread<Sample>().number;
    second = per_thread<Sample>().number;
    EXPECT_EQ(freed, freed_before);
  }).join();
  EXPECT_EQ(first, second);
  EXPECT_EQ(freed, freed_before + 1);
}

TEST(PerThread, differs_between_threads) {
  int other = 0;
  std::thread([&] { other = per_thread<Sample>().number; }).join();
  EXPECT_NE(per_thread<Sample>().number, other);
}

TEST(PerThread, is_a_new_object_in_a_handler_of_exit) {
  constexpr int is_new = 7, is_destroyed = 8;
  EXPECT_EXIT(
      {
        static const int before = per_thread<Sample>().number;
        static const int freed_before = freed;
        std::atexit([] {
          const bool old_is_gone = freed == freed_before + 1;
          ::_exit(old_is_gone && per_thread<Sample>().number != before ? is_new : is_destroyed);
        });
        std::exit(0);
      },
      testing::ExitedWithCode(is_new), "");
}

}  // namespace
}  // namespace weir::rnic
