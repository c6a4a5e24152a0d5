// Another user who holds the names of all slots keeps our processes from being reached by other users, and
// not from each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "link/abstract_socket.hpp"
#include "tests/link/fixture.hpp"
#include "tests/link/own_network.hpp"

namespace weir::link {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t squatters_user = 1001;

class Squatter {
 public:
  Squatter() {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const rlimit files{4096, 4096};
      ::setrlimit(RLIMIT_NOFILE, &files);
      if (::setresuid(squatters_user, squatters_user, squatters_user) != 0) ::_exit(1);
      std::vector<UniqueFd> held;
      for (unsigned slot = 1; slot < max_slots; ++slot) {
        auto name = hold_name(name_of_slot(slot));
        if (!name || ::listen(name->get(), 1) != 0) ::_exit(2);
        held.push_back(std::move(*name));
      }
      (void)!::write(ready[1], "", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~Squatter() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Squatter(const Squatter&) = delete;
  Squatter& operator=(const Squatter&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

class SquattedSlots : public LinkTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !own_network())
      GTEST_SKIP() << "needs root: another user, and a network namespace";
  }
};

TEST_F(SquattedSlots, leave_our_own_processes_to_each_other_and_name_the_squatter) {
  const Squatter squatter;
  testing::internal::CaptureStderr();
  const auto one = attach();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, AllOf(HasSubstr("user 1001, process " + std::to_string(squatter.pid()) + " holds 1023"),
                          HasSubstr("programs of other users cannot")));
  const auto other = attach();
  EXPECT_NE(one->slot(), other->slot());
  EXPECT_EQ(one->number_descriptor(), -1);
  EXPECT_EQ(connect(*one, other->slot())->slot(), other->slot());
}

TEST_F(SquattedSlots, are_no_matter_where_a_name_is_left) {
  std::optional<Squatter> squatter(std::in_place);
  squatter.reset();
  EXPECT_GE(attach()->number_descriptor(), 0);
  EXPECT_FALSE(largest_other_holder(::geteuid(), slot_name_prefix));
}

}  // namespace
}  // namespace weir::link
