#include "sockets/table.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/scratch_directory.hpp"

namespace weir::sockets {
namespace {

[[noreturn]] void open_with_small_files_only(const std::string& directory) {
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string why;
  const bool refused = Table::open(directory, why) == nullptr && !why.empty();
  std::_Exit(refused ? 0 : 1);
}

TEST(Table, a_limit_of_file_sizes_makes_it_unavailable_and_ends_no_program) {
  const weir::test::ScratchDirectory scratch;
  EXPECT_EXIT(open_with_small_files_only(scratch.file("lasting-sockets")), ::testing::ExitedWithCode(0), "");
}

TEST(Table, a_folder_that_others_may_enter_is_refused_with_the_next_step) {
  const weir::test::ScratchDirectory scratch;
  const std::string directory = scratch.file("lasting-sockets");
  ASSERT_EQ(::mkdir(directory.c_str(), 0700), 0);
  EXPECT_EQ(why_not_private(directory), "");
  ASSERT_EQ(::chmod(directory.c_str(), 0755), 0);
  std::string why;
  EXPECT_EQ(Table::open(directory, why), nullptr);
  EXPECT_NE(why.find("open to other users; chmod 700 " + directory), std::string::npos) << why;
}

// The next process has the number of the one that was killed.
TEST(Table, an_end_of_a_killed_process_is_not_its_successors) {
  const weir::test::ScratchDirectory scratch;
  const std::string directory = scratch.file("lasting-sockets");
  const Key key{.low = {.port = 1}, .high = {.port = 2}};
  std::string why;
  const auto ours = Table::open(directory, why);
  ASSERT_NE(ours, nullptr) << why;
  const pid_t killed = ::fork();
  if (killed == 0) {
    const auto theirs = Table::open(directory, why);
    ::_exit(theirs != nullptr && theirs->claim(key, true) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(killed, &status, 0), killed);
  ASSERT_EQ(status, 0);
  auto place = ours->claim(key, false);
  ASSERT_TRUE(place);
  const std::uint32_t number = place->peer().process.load();
  EXPECT_FALSE(ours->alive(place->peer()));
  const auto successor = Table::open(directory, why);
  ASSERT_NE(successor, nullptr) << why;
  ASSERT_EQ(successor->process(), number);
  EXPECT_TRUE(ours->alive(number));
  EXPECT_FALSE(ours->alive(place->peer()));
  EXPECT_TRUE(ours->alive(place->mine()));
}

// As in containers, where the program has the same pid each time it is started.
TEST(Table, an_end_of_a_killed_process_is_not_its_namesakes) {
  const weir::test::ScratchDirectory scratch;
  const std::string directory = scratch.file("lasting-sockets");
  const Key key{.low = {.port = 1}, .high = {.port = 2}};
  std::string why;
  const auto ours = Table::open(directory, why);
  auto theirs = Table::open(directory, why);
  ASSERT_TRUE(ours && theirs) << why;
  const std::uint32_t number = theirs->process();
  ASSERT_TRUE(theirs->claim(key, true));
  theirs.reset();  // without leave(), as when it is killed
  const auto namesake = Table::open(directory, why);
  ASSERT_NE(namesake, nullptr) << why;
  ASSERT_EQ(namesake->process(), number);
  const auto place = ours->claim(key, false);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->peer().pid.load(), static_cast<std::uint32_t>(::getpid()));
  EXPECT_FALSE(ours->alive(place->peer()));
}

}  // namespace
}  // namespace weir::sockets
