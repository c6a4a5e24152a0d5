// A program that a test runs and talks to line by line: its standard input and output are pipes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::test {

class PipedChild {
 public:
  // The program's path, then its arguments.
  explicit PipedChild(std::vector<std::string> words) {
    int in[2], out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_.reset(in[1]);
    out_.reset(out[0]);
  }
  ~PipedChild() { kill(); }
  PipedChild(const PipedChild&) = delete;
  PipedChild& operator=(const PipedChild&) = delete;

  pid_t pid() const { return pid_; }  // 0 once it was waited for
  // Its next line, without the end of it; empty when it ended.
  std::string line() const {
    std::string said;
    for (char c; ::read(out_.get(), &c, 1) == 1 && c != '\n';) said += c;
    return said;
  }
  // One line for it. Nothing, if it ended: whoever reads its lines hears of that.
  void say(std::string line) const {
    line += '\n';
    struct sigaction ignore{}, before{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &before);
    for (std::size_t said = 0; said < line.size();) {
      const ssize_t count = ::write(in_.get(), line.data() + said, line.size() - said);
      if (count <= 0) break;
      said += static_cast<std::size_t>(count);
    }
    ::sigaction(SIGPIPE, &before, nullptr);
  }
  void end_input() { in_.reset(); }
  // Waits for its end; what waitpid(2) says of that. 0: it was waited for before.
  int wait() {
    int status = 0;
    if (pid_ != 0) ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  // With SIGKILL, unless it has been waited for.
  void kill() {
    if (pid_ != 0) ::kill(pid_, SIGKILL);
    wait();
  }

 private:
  pid_t pid_ = 0;
  link::UniqueFd in_, out_;
};

}  // namespace weir::test
