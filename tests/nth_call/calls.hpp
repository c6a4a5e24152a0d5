// Which calls of the system fail, and how: one list for weir-server (tests/kv/nth_call_test.cpp) and for the
// programs of programs_test.cpp.
#pragma once

#include <cerrno>
#include <string>

namespace weir::test {

struct FailingCall {
  const char* function;
  int error;
  int calls;  // each of the first so many fails once
  bool all;   // and all from there on

  // The order for failing_call.cpp: the n-th call fails.
  std::string order(int n) const {
    return std::string(function) + ' ' + std::to_string(n) + ' ' + std::to_string(error) +
           (all ? " 1000000" : " 1");
  }
  std::string name() const { return std::string(function) + (all ? "_and_later" : ""); }
};

inline constexpr FailingCall failing_calls[] = {
    {"mmap", ENOMEM, 3, false},          {"mmap", ENOMEM, 2, true},
    {"epoll_create1", EMFILE, 2, false}, {"epoll_ctl", ENOSPC, 6, false},
    {"fcntl", EINVAL, 3, false},         {"read", EIO, 4, false},
    {"signalfd", EMFILE, 1, false},      {"pthread_create", EAGAIN, 2, false},
    {"pthread_create", EAGAIN, 1, true}};

}  // namespace weir::test
