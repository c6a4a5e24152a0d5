#include "sockets/table.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

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

}  // namespace
}  // namespace weir::sockets
