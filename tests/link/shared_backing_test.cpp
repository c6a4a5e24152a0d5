// Which descriptor is found for a file that is mapped.
#include "link/memory/shared_backing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace weir::link {
namespace {

constexpr std::size_t bytes = 4096;

FileIdentity identity_of(int fd) {
  struct stat st{};
  EXPECT_EQ(::fstat(fd, &st), 0);
  return {st.st_dev, st.st_ino};
}

class Mapped {
 public:
  explicit Mapped(int fd, int flags = MAP_SHARED)
      : at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0)) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Mapped() { ::munmap(at_, bytes); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(at_); }

 private:
  void* const at_;
};

UniqueFd unnamed_file() {
  UniqueFd file(::memfd_create("shared_backing_test", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(file.get(), bytes), 0);
  return file;
}

TEST(BackingFiles, a_file_is_opened_by_its_path_although_its_descriptor_is_closed) {
  std::string path = "shared_backing_test.XXXXXX";
  UniqueFd file(::mkstemp(path.data()));
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(file.get(), bytes), 0);
  const Mapped mapped(file.get());
  const FileIdentity identity = identity_of(file.get());
  file.reset();
  BackingFiles files;
  const UniqueFd found = files.open(identity, mapped.address());
  ::unlink(path.c_str());
  ASSERT_TRUE(found);
  EXPECT_EQ(identity_of(found.get()), identity);
}

TEST(BackingFiles, a_descriptor_is_found_again_where_it_has_moved) {
  UniqueFd file = unnamed_file();
  const Mapped mapped(file.get());
  const FileIdentity identity = identity_of(file.get());
  BackingFiles files;
  ASSERT_TRUE(files.open(identity, mapped.address()));
  EXPECT_TRUE(files.open(identity, mapped.address()));
  // Its number becomes another file's.
  const UniqueFd elsewhere(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)), other = unnamed_file();
  ASSERT_GE(::dup3(other.get(), file.get(), O_CLOEXEC), 0);
  const UniqueFd found = files.open(identity, mapped.address());
  ASSERT_TRUE(found);
  EXPECT_EQ(identity_of(found.get()), identity);
}

TEST(BackingFiles, a_descriptor_for_reading_alone_is_not_taken) {
  std::string path = "shared_backing_test.XXXXXX";
  UniqueFd file(::mkstemp(path.data()));
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(file.get(), bytes), 0);
  const Mapped mapped(file.get());
  const FileIdentity identity = identity_of(file.get());
  const UniqueFd reads(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink(path.c_str());
  file.reset();
  BackingFiles files;
  EXPECT_FALSE(files.open(identity, mapped.address()));
}

TEST(BackingFiles, what_no_descriptor_names_has_none) {
  UniqueFd file = unnamed_file();
  const Mapped closed(file.get());
  const FileIdentity identity = identity_of(file.get());
  file.reset();
  BackingFiles files;
  EXPECT_FALSE(files.open(identity, closed.address()));
  EXPECT_FALSE(files.open(identity, closed.address()));
  const Mapped anonymous(-1, MAP_SHARED | MAP_ANONYMOUS);
  const MemoryRange range = look_up_memory(anonymous.address(), bytes);
  if (range.shared) {
    EXPECT_FALSE(files.open(range.file, anonymous.address()));
  }
}

}  // namespace
}  // namespace weir::link
