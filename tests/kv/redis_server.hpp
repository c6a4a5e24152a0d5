// Debian's redis-server as a program, for tests that compare with it; or another one (redis_program.hpp).
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/kv/redis_program.hpp"
#include "tests/kv/wire_client.hpp"
#include "tests/scratch_directory.hpp"

extern char** environ;

namespace weir::kv::testing {

inline pid_t spawn_redis(std::vector<std::string> words) {
  const std::string program = redis_program();
  words.insert(words.begin(), program);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  if (::posix_spawnp(&pid, program.c_str(), nullptr, nullptr, pointers.data(), environ) != 0)
    throw std::runtime_error(program + " is not installed");
  return pid;
}

// On a Unix socket in its own folder, which is also its working directory.
class RedisServer {
 public:
  explicit RedisServer(const std::vector<std::string>& more = {}) { start(more); }
  ~RedisServer() { kill(); }

  std::string path() const { return folder_.file("r"); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  WireClient connect() const { return WireClient::unix_socket(path()); }

  // Restarts it in the same folder, with the data saved there.
  void start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{
        "--port",       "0",  "--unixsocket", path(),           "--save",    "",
        "--appendonly", "no", "--dir",        folder_.file(""), "--logfile", folder_.file("log")};
    words.insert(words.end(), more.begin(), more.end());
    pid_ = spawn_redis(std::move(words));
    for (int i = 0; i < 1000 && !answers(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  void signal(int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  // Its socket file exists a moment before it listens, and it listens before it has loaded its data.
  bool answers() const {
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
