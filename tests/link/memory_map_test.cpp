// What is mapped where: asking the kernel for one mapping after another agrees with its text.
#include "link/memory/memory_map.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::link {
namespace {

constexpr std::size_t page = 4096;

class MemoryMap : public ::testing::TestWithParam<MapSource> {
 protected:
  UniqueFd file{::memfd_create("memory_map_test", MFD_CLOEXEC)};
  // Pages: read-write, read-only, none, a hole, shared (the file's second page), private.
  std::byte* base = nullptr;

  void SetUp() override {
    if (!each_mapped_range(
            address_of(this), address_of(this) + 1, [](const MappedRange&) { return true; }, GetParam()))
      GTEST_SKIP() << "this kernel answers no PROCMAP_QUERY (Linux 6.11 does)";
    ASSERT_EQ(::ftruncate(file.get(), 4 * page), 0);
    void* const at = ::mmap(nullptr, 8 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    base = static_cast<std::byte*>(at) + page;  // nothing to be merged with before and behind
    put(0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    put(1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
    put(2, PROT_NONE, MAP_SHARED, page);
    ASSERT_EQ(::munmap(base + 3 * page, page), 0);
    put(4, PROT_READ | PROT_WRITE, MAP_SHARED, page);
    put(5, PROT_READ | PROT_WRITE, MAP_PRIVATE, 2 * page);
  }
  void TearDown() override {
    if (base != nullptr) ::munmap(base - page, 8 * page);
  }

  static std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
  void put(int which, int protection, int flags, off_t offset = 0) {
    const int from = (flags & MAP_ANONYMOUS) != 0 ? -1 : file.get();
    ASSERT_NE(
        ::mmap(base + which * static_cast<long>(page), page, protection, flags | MAP_FIXED, from, offset),
        MAP_FAILED);
  }
  std::vector<MappedRange> ranges(std::size_t from, std::size_t to) {
    std::vector<MappedRange> seen;
    EXPECT_TRUE(each_mapped_range(
        address_of(base) + from, address_of(base) + to,
        [&](const MappedRange& range) {
          seen.push_back(range);
          return true;
        },
        GetParam()));
    return seen;
  }
};

TEST_P(MemoryMap, tells_of_each_range_up_to_a_hole) {
  const std::vector<MappedRange> seen = ranges(100, 6 * page);
  ASSERT_EQ(seen.size(), 3u);
  const bool readable[] = {true, true, false}, writable[] = {true, false, false},
             shared[] = {false, false, true};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen[i].start, address_of(base) + i * page);
    EXPECT_EQ(seen[i].end, address_of(base) + (i + 1) * page);
    EXPECT_EQ(seen[i].readable, readable[i]);
    EXPECT_EQ(seen[i].writable, writable[i]);
    EXPECT_EQ(seen[i].shared, shared[i]);
  }
}

TEST_P(MemoryMap, tells_of_which_file_a_range_is_and_where_in_it) {
  const std::vector<MappedRange> seen = ranges(4 * page, 6 * page);
  ASSERT_EQ(seen.size(), 2u);
  struct stat st{};
  ASSERT_EQ(::fstat(file.get(), &st), 0);
  for (const MappedRange& range : seen) EXPECT_EQ(range.file, (FileIdentity{st.st_dev, st.st_ino}));
  EXPECT_EQ(seen[0].offset, page);
  EXPECT_EQ(seen[1].offset, 2 * page);
  EXPECT_TRUE(seen[0].shared);
  EXPECT_FALSE(seen[1].shared);
  EXPECT_EQ(ranges(0, 1)[0].file.inode, 0u);
}

TEST_P(MemoryMap, tells_nothing_of_a_hole_or_of_nothing) {
  EXPECT_TRUE(ranges(3 * page, 5 * page).empty());
  EXPECT_TRUE(ranges(page, page).empty());
}

TEST_P(MemoryMap, tells_the_path_of_a_file_and_none_of_anonymous_memory) {
  EXPECT_EQ(path_mapped_at(address_of(base) + 4 * page, GetParam()), "/memfd:memory_map_test (deleted)");
  EXPECT_EQ(path_mapped_at(address_of(base), GetParam()), "");
}

TEST_P(MemoryMap, goes_no_further_than_asked_or_wanted) {
  EXPECT_EQ(ranges(0, 1).size(), 1u);
  EXPECT_EQ(ranges(page - 1, page + 1).size(), 2u);
  int visits = 0;
  const auto once = [&](const MappedRange&) { return ++visits < 1; };
  each_mapped_range(address_of(base), address_of(base) + 2 * page, once, GetParam());
  EXPECT_EQ(visits, 1);
}

TEST_P(MemoryMap, is_a_childs_own_behind_a_fork) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::munmap(base, page);
    ::_exit(ranges(0, 1).empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ranges(0, 1).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(By, MemoryMap,
                         ::testing::Values(MapSource::query, MapSource::text, MapSource::whatever),
                         [](const auto& instance) {
                           return instance.param == MapSource::query  ? "query"
                                  : instance.param == MapSource::text ? "text"
                                                                      : "whatever";
                         });

TEST(PathMappedAt, is_the_programs_own_where_its_code_is) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): a function's address
  EXPECT_EQ(path_mapped_at(reinterpret_cast<std::uint64_t>(&path_mapped_at)),
            std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(path_mapped_at(1), "");
}

}  // namespace
}  // namespace weir::link
