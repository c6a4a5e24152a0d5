// A program that this test starts in its own process group, and whose output it reads.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace weir::bystander {

class Child {
 public:
  // The program's path, then its arguments.
  explicit Child(std::vector<std::string> words) {
    // When an attacker is killed its children become ours, so that their ends can be waited for.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    int output[2];
    if (::pipe2(output, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    output_ = output[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int failed = ::posix_spawn(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(output[1]);
    if (failed != 0) throw std::runtime_error("cannot start " + words[0]);
  }
  ~Child() {
    kill();
    ::close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for its next line, and returns it without the line end. Throws if there is none.
  std::string line() {
    for (;;) {
      if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
        std::string first = text_.substr(0, end);
        text_.erase(0, end + 1);
        return first;
      }
      if (read() == 0) throw std::runtime_error("a program ended before it said enough: " + text_);
    }
  }
  // How many bytes it has written since the last call; does not wait.
  std::size_t count() {
    ::fcntl(output_, F_SETFL, O_NONBLOCK);
    std::size_t all = 0;
    while (const std::size_t some = read()) all += some;
    text_.clear();
    return all;
  }
  // Whether it is still running; reaps it otherwise.
  bool alive() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) kill();
    return pid_ > 0;
  }
  pid_t pid() const { return pid_; }
  std::size_t resident_bytes() const {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/" + std::to_string(pid_) + "/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  // Kills it and its children, and waits until all have ended.
  void kill() {
    const pid_t group = std::exchange(pid_, -1);
    if (group <= 0) return;
    ::kill(-group, SIGKILL);
    while (::waitpid(-group, nullptr, 0) > 0) {
    }
  }

 private:
  std::size_t read() {
    char bytes[4096];
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count > 0) text_.append(bytes, static_cast<std::size_t>(count));
    return count > 0 ? static_cast<std::size_t>(count) : 0;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;
};

}  // namespace weir::bystander
