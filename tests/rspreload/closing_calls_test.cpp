// Under librspreload.so: calls that close a descriptor, and calls that give its number to another file.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>

#include "tests/rspreload/preloaded.hpp"

namespace weir::rspreload {
namespace {

// Each way to close one descriptor.
struct Closing {
  const char* how;
  long (*close)(int fd);
};
const Closing closings[] = {
    {"close", [](int fd) -> long { return ::close(fd); }},
    {"syscall", [](int fd) { return ::syscall(SYS_close, fd); }},
    {"close_range",
     [](int fd) -> long { return ::close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0); }},
    {"dup2",
     [](int fd) -> long {
       const Fd event(::eventfd(7, EFD_CLOEXEC));
       return ::dup2(event.get(), fd) == fd && ::close(fd) == 0 ? 0 : -1;
     }},
    {"dup3",
     [](int fd) -> long {
       const Fd event(::eventfd(7, EFD_CLOEXEC));
       return ::dup3(event.get(), fd, O_CLOEXEC) == fd && ::close(fd) == 0 ? 0 : -1;
     }},
};

class Closes : public Calls, public testing::WithParamInterface<Closing> {};
INSTANTIATE_TEST_SUITE_P(By, Closes, testing::ValuesIn(closings),
                         [](const auto& closing) { return std::string(closing.param.how); });

TEST_P(Closes, tell_the_peer_and_give_the_number_to_others) {
  const int number = server.release();
  EXPECT_EQ(GetParam().close(number), 0);
  wait_for(from(), POLLIN);
  char byte;
  EXPECT_EQ(::read(from(), &byte, 1), 0) << "the peer sees the end";
  const Fd event(::fcntl(Fd(::eventfd(7, EFD_CLOEXEC)).get(), F_DUPFD, number));
  EXPECT_EQ(event.get(), number);
  std::uint64_t value = 0;
  EXPECT_EQ(::read(event.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
  EXPECT_EQ(value, 7U);
}

// A child of vfork() has descriptors of its own in its parent's memory, until it executes something.
TEST_P(Closes, leave_a_parent_what_a_child_of_vfork_closes) {
  const pid_t child = ::vfork();
  if (child == 0) ::_exit(GetParam().close(to()) == 0 ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  send_and_wait("still here");
  EXPECT_EQ(received(10), "still here");
}

TEST_F(Calls, keep_what_close_range_only_marks) {
  const auto fd = static_cast<unsigned>(to());
  EXPECT_EQ(::close_range(fd, fd, CLOSE_RANGE_CLOEXEC), 0);
  send_and_wait("still here");
  EXPECT_EQ(received(10), "still here");
}

TEST_F(Calls, close_in_a_child_all_from_a_number_on) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::closefrom(STDERR_FILENO + 1);
    const int at = ::fcntl(::eventfd(7, EFD_CLOEXEC), F_DUPFD, client.get());
    std::uint64_t value = 0;
    ::_exit(at == client.get() && ::read(at, &value, sizeof value) == sizeof value && value == 7 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  send_and_wait("still here");
  EXPECT_EQ(received(10), "still here");
}

TEST_F(Calls, refuse_copies_of_an_rsocket) {
  for (const int copy : {::dup(from()), ::dup2(from(), 100), ::dup3(from(), 100, O_CLOEXEC)}) {
    EXPECT_EQ(copy, -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(::fcntl(from(), F_DUPFD, 0), -1);
}

TEST_F(Calls, let_a_child_close_what_is_its_parent_s) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::close(client.get()) == 0 && ::close(listener.get()) == 0 ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  send_and_wait("still here");
  EXPECT_EQ(received(10), "still here");
}

}  // namespace
}  // namespace weir::rspreload
