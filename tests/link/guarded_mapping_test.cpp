// Files that are truncated while they are mapped.
#include "link/memory/guarded_mapping.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

namespace weir::link {
namespace {

constexpr std::size_t page = 4096, file_size = 16 * page;

class GuardedMappingTest : public testing::Test {
 protected:
  GuardedMappingTest() : file(::memfd_create("guarded", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::ftruncate(file.get(), file_size) != 0) std::abort();
  }
  void cut_to(std::size_t bytes) const { ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0); }

  UniqueFd file;
};

TEST_F(GuardedMappingTest, is_the_file_while_that_is_whole) {
  const auto mapping = GuardedMapping::of_file(file.get(), file_size);
  ASSERT_TRUE(mapping);
  std::memset(mapping->data(), 'x', file_size);
  std::vector<char> read(file_size);
  ASSERT_EQ(::pread(file.get(), read.data(), read.size(), 0), static_cast<ssize_t>(file_size));
  EXPECT_EQ(read, std::vector<char>(file_size, 'x'));
  EXPECT_FALSE(mapping->lost());
}

TEST_F(GuardedMappingTest, takes_a_copy_beyond_the_end_and_says_that_it_is_lost) {
  const auto mapping = GuardedMapping::of_file(file.get(), file_size);
  ASSERT_TRUE(mapping);
  std::memset(mapping->data(), 'x', file_size);
  cut_to(4 * page);
  std::memset(mapping->data() + 3 * page, 'y', 13 * page);
  EXPECT_TRUE(mapping->lost());
  EXPECT_TRUE(GuardedMapping::any_lost());
  std::vector<char> read(4 * page);
  ASSERT_EQ(::pread(file.get(), read.data(), read.size(), 0), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read[3 * page - 1], 'x') << "the pages that the file still has are its own";
  EXPECT_EQ(read[3 * page], 'y');
}

TEST_F(GuardedMappingTest, reads_nothing_from_where_the_file_ended) {
  const auto mapping = GuardedMapping::of_file(file.get(), file_size);
  ASSERT_TRUE(mapping);
  std::memset(mapping->data(), 'x', file_size);
  cut_to(0);
  EXPECT_EQ(mapping->data()[5 * page], std::byte{0});
  EXPECT_TRUE(mapping->lost());
}

TEST_F(GuardedMappingTest, another_mapping_is_not_lost_with_it) {
  const UniqueFd whole(::memfd_create("whole", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(whole.get(), file_size), 0);
  const auto lost = GuardedMapping::of_file(file.get(), file_size);
  const auto kept = GuardedMapping::of_file(whole.get(), file_size);
  ASSERT_TRUE(lost && kept);
  cut_to(0);
  lost->data()[0] = kept->data()[0] = std::byte{1};
  EXPECT_TRUE(lost->lost());
  EXPECT_FALSE(kept->lost());
}

TEST_F(GuardedMappingTest, its_place_is_used_again) {
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(GuardedMapping::of_file(file.get(), file_size)) << i;
}

// A fault that is not ours ends the process as it would without us.
using GuardedMappingDeathTest = GuardedMappingTest;
TEST_F(GuardedMappingDeathTest, leaves_other_bus_errors_to_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch_cut_file = [&] {
    ::signal(SIGBUS, SIG_DFL);  // a sanitizer's, where there is one
    const auto guarded = GuardedMapping::of_file(file.get(), file_size);
    const auto plain = Mapping::of_file(file.get(), file_size, Mapping::Rights::read_write);
    cut_to(0);
    plain->data()[0] = std::byte{1};
  };
  EXPECT_EXIT(touch_cut_file(), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, [](int) { ::_exit(7); });
        const auto guarded = GuardedMapping::of_file(file.get(), file_size);
        ::raise(SIGBUS);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(GuardedMappingTest, a_file_never_shrinks_only_if_it_is_sealed) {
  EXPECT_FALSE(never_shrinks(file.get()));
  EXPECT_TRUE(never_shrinks(make_shared_file("sealed", file_size).get()));
}

}  // namespace
}  // namespace weir::link
