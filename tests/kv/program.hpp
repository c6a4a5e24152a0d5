// weir-server as a program, for tests that kill it or restart it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace weir::kv::testing {

// One run of the program, whose output is collected until its end.
class Program {
 public:
  // `before` is for the shell, if it is not empty, which then becomes the program.
  explicit Program(std::vector<std::string> arguments, const std::string& variable = {},
                   const std::string& before = {}) {
    arguments.insert(arguments.begin(), WEIR_SERVER);
    if (!before.empty())
      arguments.insert(arguments.begin(), {"/bin/sh", "-c", before + "; exec \"$0\" \"$@\""});
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    std::vector<char*> variables;
    for (char** v = environ; *v != nullptr; ++v) variables.push_back(*v);
    std::string own = variable;
    if (!own.empty()) variables.push_back(own.data());
    variables.push_back(nullptr);
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    output_ = pipe[0];
    posix_spawn_file_actions_t streams;
    ::posix_spawn_file_actions_init(&streams);
    ::posix_spawn_file_actions_adddup2(&streams, pipe[1], 1);
    ::posix_spawn_file_actions_adddup2(&streams, pipe[1], 2);
    const int failed = ::posix_spawn(&pid_, words[0], &streams, nullptr, words.data(), variables.data());
    ::posix_spawn_file_actions_destroy(&streams);
    ::close(pipe[1]);
    if (failed != 0) throw std::runtime_error("cannot run " WEIR_SERVER);
  }
  Program(Program&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        output_(std::exchange(other.output_, -1)),
        text_(std::move(other.text_)) {}
  ~Program() {
    if (pid_ != 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(output_);
  }

  // Reads until it has printed that text.
  bool prints(const std::string& text) {
    while (text_.find(text) == std::string::npos) {
      if (!read()) return false;
    }
    return true;
  }
  // Its whole output, once no process holds its output any more.
  const std::string& output() {
    while (read()) {
    }
    return text_;
  }
  int exit_code() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void signal(int number) const { ::kill(pid_, number); }
  pid_t pid() const { return pid_; }

 private:
  bool read() {
    char bytes[4096];
    const ssize_t n = ::read(output_, bytes, sizeof bytes);
    if (n > 0) text_.append(bytes, static_cast<std::size_t>(n));
    return n > 0;
  }

  pid_t pid_ = 0;
  int output_ = -1;
  std::string text_;
};

}  // namespace weir::kv::testing
