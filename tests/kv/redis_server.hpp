// Debian's redis-server as a process of its own: the reference.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/kv/wire_client.hpp"
#include "tests/scratch_directory.hpp"

extern char** environ;

namespace weir::kv::testing {

// On a Unix socket in a folder of its own, which is also where it keeps its files unless `more` options name
// another.
class RedisServer {
 public:
  explicit RedisServer(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{
        "redis-server", "--port", "0",     "--unixsocket", path(),      "--save",           "",
        "--appendonly", "no",     "--dir", folder_.path(), "--logfile", folder_.file("log")};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    if (::posix_spawnp(&pid_, "redis-server", nullptr, nullptr, pointers.data(), environ) != 0) {
      throw std::runtime_error("redis-server is not installed");
    }
    for (int i = 0; i < 1000 && !serves(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string path() const { return folder_.file("r"); }
  WireClient connect() const { return WireClient::unix_socket(path()); }

 private:
  // Its socket file is there a moment before it listens, and it listens before it has loaded its data.
  bool serves() const {
    try {
      return connect().call({"PING"}) == "+PONG\r\n";
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  test::ScratchDirectory folder_;
  pid_t pid_ = 0;
};

}  // namespace weir::kv::testing
