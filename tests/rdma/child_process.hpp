// The other process of a test: rdma_test_child, which does what its arguments say (child.cpp).
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "rdma/verbs/cm.hpp"

namespace weir::rdma::testing_support {

// The child program next to this one; killed at the end of the test, if not earlier.
class Child {
 public:
  Child(const Endpoint& server, const std::string& what) {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rdma_test_child";
    std::string address = server.address().to_string(), port = std::to_string(server.port()), task = what;
    std::string name = program;
    char* argv[] = {name.data(), address.data(), port.data(), task.data(), nullptr};
    if (posix_spawn(&pid_, program.c_str(), nullptr, nullptr, argv, environ) != 0)
      throw std::runtime_error("cannot start " + program);
  }
  ~Child() { kill_now(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill_now() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace weir::rdma::testing_support
