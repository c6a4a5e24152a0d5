// Runs `weir` and reports how it ended.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/scratch_directory.hpp"

extern char** environ;

namespace weir::command {

namespace fs = std::filesystem;

class TemporaryDirectory {
 public:
  const fs::path& path() const { return path_; }
  void write(const fs::path& file, const std::string& text, ::mode_t mode = 0644) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
    ::chmod((path_ / file).c_str(), mode);
  }

 private:
  test::ScratchDirectory scratch_;
  fs::path path_ = scratch_.path();
};

struct Ended {
  int status;
  std::string out;  // both streams
};

// With `out`, standard output goes into that file.
inline Ended run_program(const std::string& program, std::vector<std::string> words,
                         const char* out = nullptr) {
  words.insert(words.begin(), program);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (out != nullptr)
    ::posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY, 0);
  else
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Ended ended{};
  char block[4096];
  for (ssize_t got; (got = ::read(ends[0], block, sizeof block)) > 0;)
    ended.out.append(block, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

inline Ended run_weir(const std::vector<std::string>& words, const char* out = nullptr) {
  return run_program(WEIR_PROGRAM, words, out);
}

}  // namespace weir::command
