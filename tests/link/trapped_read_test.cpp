// Reads of memory that is not there, tried without asking first.
#include "link/memory/trapped_read.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "link/memory/fault_signal.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {
namespace {

constexpr std::size_t page = 4096, pages = 4;
constexpr std::uint64_t a_while_ns = 10'000'000;

class TrappedRead : public testing::Test {
 protected:
  TrappedRead() { map(MAP_PRIVATE | MAP_ANONYMOUS, -1); }
  ~TrappedRead() override { ::munmap(memory, pages * page); }

  void map(int flags, int fd) const {
    ASSERT_EQ(::mmap(memory, pages * page, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0), memory);
    std::memset(memory, 'x', pages * page);
  }
  // Of `bytes` from `offset`. A new time each: what the program did to its signals since counts.
  bool copy(std::size_t offset, std::size_t bytes) {
    const iovec from{memory + offset, bytes};
    EXPECT_TRUE(can_trap_reads({&from, 1}, now_ns += a_while_ns));
    return try_reading({&from, 1}, [&] { std::memcpy(into.data(), from.iov_base, from.iov_len); });
  }
  bool can_read() {
    const iovec from{memory, page};
    return can_trap_reads({&from, 1}, now_ns += a_while_ns);
  }

  // Far from where the kernel puts what is mapped without an address, so that holes stay holes.
  char* const memory = static_cast<char*>(::mmap(reinterpret_cast<void*>(0x2100'0000'0000), pages* page,
                                                 PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::vector<char> into = std::vector<char>(pages * page);
  std::uint64_t now_ns = a_while_ns;
};

template <int>
bool mends_nothing(std::uintptr_t, const sigset_t&) {
  return false;
}

// In a process of its own, as they stay.
TEST(FaultMenders, whoever_comes_when_there_is_no_more_room_hears_so) {
  const auto fill = [] {
    bool room = mend_faults(SIGSEGV, mends_nothing<0>) && mend_faults(SIGSEGV, mends_nothing<1>) &&
                mend_faults(SIGSEGV, mends_nothing<2>) && mend_faults(SIGSEGV, mends_nothing<3>);
    room &= !mend_faults(SIGSEGV, mends_nothing<4>) && mend_faults(SIGSEGV, mends_nothing<0>);
    const char byte = 'x';
    const iovec from{const_cast<char*>(&byte), 1};
    room &= !can_trap_reads({&from, 1}, a_while_ns);
    std::_Exit(room ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // one that has mended nothing yet
  EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "");
}

TEST_F(TrappedRead, copies_what_is_there) {
  EXPECT_TRUE(copy(10, 2 * page));
  EXPECT_EQ(std::string(into.data(), 2 * page), std::string(2 * page, 'x'));
}

TEST_F(TrappedRead, says_of_each_way_in_which_a_page_can_be_missing_that_it_is) {
  UniqueFd file(::memfd_create("cut short", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), pages * page), 0);
  const struct {
    const char* what;
    std::function<void()> happens;
  } rows[] = {
      {"not mapped", [&] { ::munmap(memory + page, page); }},
      {"protected", [&] { ::mprotect(memory + page, page, PROT_NONE); }},
      {"cut off its file",
       [&] {
         map(MAP_SHARED, file.get());
         ASSERT_EQ(::ftruncate(file.get(), page), 0);
       }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    row.happens();
    EXPECT_FALSE(copy(0, 2 * page));
    EXPECT_FALSE(copy(page, 1));
    EXPECT_FALSE(copy(page - 1, 2)) << "again, and its signal is not left blocked";
    EXPECT_TRUE(copy(0, page));
  }
}

TEST_F(TrappedRead, each_thread_has_its_own) {
  ::munmap(memory + page, page);
  const auto read_often = [this](std::size_t offset, bool there) {
    std::vector<char> to(page);
    const iovec from{memory + offset, page};
    for (std::uint64_t i = 1; i <= 1000; ++i) {
      ASSERT_TRUE(can_trap_reads({&from, 1}, i));
      ASSERT_EQ(try_reading({&from, 1}, [&] { std::memcpy(to.data(), from.iov_base, page); }), there);
    }
  };
  std::thread other(read_often, 0, true);
  read_often(page, false);
  other.join();
}

TEST_F(TrappedRead, is_not_possible_where_the_program_is_in_the_way) {
  ASSERT_TRUE(can_read());
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  ::pthread_sigmask(SIG_BLOCK, &segv, nullptr);
  EXPECT_FALSE(can_read()) << "a blocked signal ends the process";
  ::pthread_sigmask(SIG_UNBLOCK, &segv, nullptr);
  EXPECT_TRUE(can_read());

  struct sigaction ours{};
  struct sigaction theirs{};
  theirs.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &theirs, &ours);
  EXPECT_FALSE(can_read()) << "a handler set later";
  ::sigaction(SIGBUS, &ours, nullptr);
  EXPECT_TRUE(can_read());

  const iovec nowhere{reinterpret_cast<void*>(0x8000'0000'0000'0000), 16};
#if defined(__x86_64__)
  EXPECT_FALSE(can_trap_reads({&nowhere, 1}, now_ns)) << "a fault without an address";
#endif
}

TEST_F(TrappedRead, looks_at_the_program_again_after_a_millisecond) {
  ASSERT_TRUE(can_read());
  const iovec from{memory, page};
  struct sigaction ours{};
  struct sigaction theirs{};
  theirs.sa_handler = SIG_DFL;
  ::sigaction(SIGSEGV, &theirs, &ours);
  EXPECT_TRUE(can_trap_reads({&from, 1}, now_ns + 999'999));
  EXPECT_FALSE(can_trap_reads({&from, 1}, now_ns + 1'000'000));
  ::sigaction(SIGSEGV, &ours, nullptr);
}

// What is none of our business ends the process as it would without us.
using TrappedReadDeathTest = TrappedRead;
TEST_F(TrappedReadDeathTest, leaves_faults_of_other_memory_to_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto write_nowhere = [this](void (*handler)(int)) {
    ::signal(SIGSEGV, handler);  // instead of a sanitizer's, where there is one
    ::mprotect(memory + page, page, PROT_NONE);
    const iovec from{memory, page};
    if (!can_trap_reads({&from, 1}, now_ns)) ::_exit(1);
    try_reading({&from, 1}, [&] { std::memcpy(memory + page, from.iov_base, page); });
  };
  EXPECT_EXIT(write_nowhere(SIG_DFL), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(write_nowhere([](int) { ::_exit(7); }), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace weir::link
