// Copies to and from another process's memory reach the process that is meant and no other, although the
// kernel takes a number: after its end or an exec another process may have that number.
#include "link/memory/process_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

namespace weir::link {
namespace {

constexpr std::uint64_t token = 0x1122334455667788;
constexpr std::uint64_t place = 0x2345'6789'0000;
constexpr std::size_t bytes = 1 << 20;

// A forked process that stands still once it has done its work.
class StillChild {
 public:
  explicit StillChild(const std::function<void()>& first) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      first();
      (void)!::write(ready[1], "", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]), ::close(ready[1]);
  }
  ~StillChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  StillChild(const StillChild&) = delete;
  StillChild& operator=(const StillChild&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

struct ProcessMemoryTest : ::testing::Test {
  // At the same address in us and in every child of ours, but only ours is shared with nobody.
  std::byte* const memory = static_cast<std::byte*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::byte* const local = static_cast<std::byte*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

  ProcessMemoryTest() { std::memset(local, 7, bytes); }
  ~ProcessMemoryTest() override { ::munmap(memory, bytes), ::munmap(local, bytes); }

  // What a debugger sees at the start of `memory` in that process.
  std::byte first_byte_in(pid_t pid) const {
    std::byte found{255};
    const iovec into{&found, 1}, from{memory, 1};
    EXPECT_EQ(::process_vm_readv(pid, &into, 1, &from, 1, 0), 1);
    return found;
  }
  bool write(const ProcessMemory& to) const {
    const iovec from{local, bytes}, there{memory, bytes};
    return to.write({&from, 1}, {&there, 1});
  }
  bool read(const ProcessMemory& of) const {
    const iovec into{local, bytes}, there{memory, bytes};
    return of.read({&into, 1}, {&there, 1});
  }
};

TEST_F(ProcessMemoryTest, write_and_read_reach_the_process_with_the_probe) {
  std::optional<ProbePage> page;
  int address[2];
  ASSERT_EQ(::pipe(address), 0);
  const StillChild child([&] {
    page.emplace(place, token);
    const std::uint64_t at = page->address();
    (void)!::write(address[1], &at, sizeof at);
  });
  std::uint64_t probe = 0;
  ASSERT_EQ(::read(address[0], &probe, sizeof probe), static_cast<ssize_t>(sizeof probe));
  const ProcessMemory theirs(child.pid(), probe, token);
  ASSERT_TRUE(theirs.reached()) << std::strerror(errno);
  EXPECT_TRUE(write(theirs)) << std::strerror(errno);
  EXPECT_EQ(first_byte_in(child.pid()), std::byte{7});
  std::memset(local, 9, bytes);
  EXPECT_TRUE(read(theirs)) << std::strerror(errno);
  EXPECT_EQ(local[bytes - 1], std::byte{7});
  ::close(address[0]), ::close(address[1]);
}

// As after the end of the process that is meant, when a process without its probe got the number.
TEST_F(ProcessMemoryTest, write_changes_nothing_in_a_process_without_the_probe) {
  const ProbePage page(place, token);
  const StillChild other([] {});  // forked from us, with our memory at our addresses
  const ProcessMemory ours(other.pid(), page.address(), token);
  EXPECT_FALSE(ours.reached());
  EXPECT_FALSE(write(ours));
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(first_byte_in(other.pid()), std::byte{0});
}

TEST_F(ProcessMemoryTest, read_fails_in_a_process_with_another_token) {
  const ProbePage page(place, token);
  const StillChild other([&] {
    void* const at = reinterpret_cast<void*>(page.address());  // NOLINT(performance-no-int-to-ptr)
    ::mmap(at, sizeof(MemoryProbe), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  });
  EXPECT_FALSE(read(ProcessMemory(other.pid(), page.address(), token)));
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(ProcessMemoryTest, missing_memory_of_the_right_process_is_a_fault) {
  std::optional<ProbePage> page;
  page.emplace(place, token);
  ::munmap(memory + bytes / 2, bytes / 2);
  const ProcessMemory own(::getpid(), page->address(), token);
  ASSERT_TRUE(own.reached());
  EXPECT_FALSE(write(own));
  EXPECT_EQ(errno, EFAULT);
  EXPECT_TRUE(own.reached());
}

TEST_F(ProcessMemoryTest, more_pieces_than_a_call_takes_are_copied) {
  const ProbePage page(place, token);
  std::vector<iovec> from, to;
  for (std::size_t i = 0; i < 200; ++i) {
    from.push_back({local + i * 64, 64});
    to.push_back({memory + i * 128, 64});
  }
  ASSERT_TRUE(ProcessMemory(::getpid(), page.address(), token).write(from, to)) << std::strerror(errno);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(memory[i * 128 + 63], std::byte{7}) << i;
}

TEST(ProbePage, pages_lie_where_their_numbers_say) {
  const ProbePage one(0x1234'5678'0000, token), two(0x3234'5678'0000, token);
  EXPECT_NE(one.address() >> 24, two.address() >> 24);
  EXPECT_EQ(one.probe()->token, token);
}

}  // namespace
}  // namespace weir::link
