// Copies of unmapped memory, tried without checking first.
#include "rnic/memory/trapped_copy.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "link/memory/fault_signal.hpp"
#include "link/unique_fd.hpp"

namespace weir::rnic {
namespace {

using link::faults_are_caught, link::mend_faults, link::UniqueFd;

constexpr std::size_t page = 4096, pages = 4;
constexpr std::uint64_t a_while_ns = 10'000'000;

class TrappedCopy : public testing::Test {
 protected:
  TrappedCopy() {
    EXPECT_TRUE(mend_faults(SIGBUS, leave_copy) && mend_faults(SIGSEGV, leave_copy));
    map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  }
  ~TrappedCopy() override { ::munmap(memory, pages * page); }

  void map(int flags, int fd) const {
    ASSERT_EQ(::mmap(memory, pages * page, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0), memory);
    std::memset(memory, 'x', pages * page);
  }
  // Of `bytes` from `offset`, and back.
  Trapped copy(std::size_t offset, std::size_t bytes) {
    const iovec from{memory + offset, bytes};
    return try_copy({&from, 1}, {}, [&] { std::memcpy(into.data(), from.iov_base, from.iov_len); });
  }
  Trapped copy_back(std::size_t offset, std::size_t bytes) {
    const iovec from{into.data(), bytes};
    std::byte* const to = reinterpret_cast<std::byte*>(memory) + offset;
    return try_copy({&from, 1}, {to, bytes}, [&] { std::memcpy(to, from.iov_base, from.iov_len); });
  }
  // A new time each: what the program did to its signals since counts.
  bool caught() { return faults_are_caught(now_ns += a_while_ns); }

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

// In a separate process, because the handlers stay.
TEST(FaultMenders, whoever_comes_when_there_is_no_more_room_hears_so) {
  const auto fill = [] {
    bool room = mend_faults(SIGSEGV, mends_nothing<0>) && mend_faults(SIGSEGV, mends_nothing<1>) &&
                mend_faults(SIGSEGV, mends_nothing<2>) && mend_faults(SIGSEGV, mends_nothing<3>);
    room &= !mend_faults(SIGSEGV, mends_nothing<4>) && mend_faults(SIGSEGV, mends_nothing<0>);
    room &= !mend_faults(SIGSEGV, leave_copy);
    std::_Exit(room ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // one that has mended nothing yet
  EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "");
}

TEST_F(TrappedCopy, copies_what_is_there) {
  EXPECT_EQ(copy(10, 2 * page), Trapped::no);
  EXPECT_EQ(std::string(into.data(), 2 * page), std::string(2 * page, 'x'));
}

TEST_F(TrappedCopy, says_of_each_way_in_which_a_page_can_be_missing_that_it_is) {
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
    EXPECT_EQ(copy(0, 2 * page), Trapped::pieces);
    EXPECT_EQ(copy(page, 1), Trapped::pieces);
    EXPECT_EQ(copy(page - 1, 2), Trapped::pieces) << "again, and its signal is not left blocked";
    EXPECT_EQ(copy(0, page), Trapped::no);
    EXPECT_EQ(copy_back(page, 1), Trapped::target);
    EXPECT_EQ(copy_back(0, page), Trapped::no);
  }
}

// A few instructions, no call: the way back must lead through them all the same.
TEST_F(TrappedCopy, is_left_in_the_middle_of_one_instruction) {
  ::munmap(memory + page, page);
  auto& word = *reinterpret_cast<std::uint64_t*>(memory + page);
  const std::span target(reinterpret_cast<std::byte*>(&word), sizeof word);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(try_copy({}, target, [&] { std::atomic_ref(word).fetch_add(1); }), Trapped::target);
    EXPECT_EQ(try_copy({}, target, [&] { std::atomic_ref(word).store(1); }), Trapped::target);
  }
}

TEST_F(TrappedCopy, knows_a_place_that_no_signal_names) {
  const iovec nowhere{reinterpret_cast<void*>(0x8000'0000'0000'0000), 16};
  EXPECT_EQ(try_copy({&nowhere, 1}, {}, [&] { std::memcpy(into.data(), nowhere.iov_base, 16); }),
            Trapped::pieces);
}

// As a handler of the program's may make one.
TEST_F(TrappedCopy, one_inside_another_leaves_itself_alone) {
  ::munmap(memory + page, page);
  const iovec from{memory, 1};
  auto inner = Trapped::no;
  const Trapped outer = try_copy({&from, 1}, {}, [&] {
    inner = copy(page, 1);
    std::memcpy(into.data(), memory, 1);
  });
  EXPECT_EQ(inner, Trapped::pieces);
  EXPECT_EQ(outer, Trapped::no);
}

TEST_F(TrappedCopy, each_thread_has_its_own) {
  ::munmap(memory + page, page);
  const auto read_often = [this](std::size_t offset, bool there) {
    std::vector<char> to(page);
    const iovec from{memory + offset, page};
    for (std::uint64_t i = 1; i <= 1000; ++i) {
      const Trapped trapped = try_copy({&from, 1}, {}, [&] { std::memcpy(to.data(), from.iov_base, page); });
      ASSERT_EQ(trapped == Trapped::no, there) << i;
    }
  };
  std::thread other(read_often, 0, true);
  read_often(page, false);
  other.join();
}

TEST_F(TrappedCopy, says_where_the_program_is_in_the_way) {
  ASSERT_TRUE(caught());
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  ::pthread_sigmask(SIG_BLOCK, &segv, nullptr);
  EXPECT_FALSE(caught()) << "a blocked signal ends the process";
  ::pthread_sigmask(SIG_UNBLOCK, &segv, nullptr);
  EXPECT_TRUE(caught());

  struct sigaction ours{};
  struct sigaction theirs{};
  theirs.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &theirs, &ours);
  EXPECT_FALSE(caught()) << "a handler set later";
  ::sigaction(SIGBUS, &ours, nullptr);
  EXPECT_TRUE(caught());
}

TEST_F(TrappedCopy, looks_at_the_program_again_after_a_millisecond) {
  ASSERT_TRUE(caught());
  struct sigaction ours{};
  struct sigaction theirs{};
  theirs.sa_handler = SIG_DFL;
  ::sigaction(SIGSEGV, &theirs, &ours);
  EXPECT_TRUE(faults_are_caught(now_ns + 999'999));
  EXPECT_FALSE(faults_are_caught(now_ns + 1'000'000));
  ::sigaction(SIGSEGV, &ours, nullptr);
}

// A fault that is not ours ends the process as it would without us.
using TrappedCopyDeathTest = TrappedCopy;
TEST_F(TrappedCopyDeathTest, leaves_faults_of_other_memory_to_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto write_nowhere = [this](void (*handler)(int)) {
    ::signal(SIGSEGV, handler);  // instead of a sanitizer's, where there is one
    ::mprotect(memory + page, page, PROT_NONE);
    const iovec from{memory, page};
    (void)try_copy({&from, 1}, {}, [&] { std::memcpy(memory + page, from.iov_base, page); });
  };
  EXPECT_EXIT(write_nowhere(SIG_DFL), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(write_nowhere([](int) { ::_exit(7); }), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace weir::rnic
