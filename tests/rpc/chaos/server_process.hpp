// A server of the chaos test in its own process: started, killed, and restarted with the same journal.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace chaos {

class ServerProcess {
 public:
  ServerProcess(asio::io_context& io, std::string where, std::string journal)
      : io_(io), where_(std::move(where)), journal_(std::move(journal)) {}
  ~ServerProcess() { kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Returns once it listens.
  asio::awaitable<void> start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    asio::posix::stream_descriptor from(io_, ends[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = WEIR_CHAOS_SERVER;
    char* words[] = {program.data(), where_.data(), journal_.data(), nullptr};
    const int failed = posix_spawn(&pid_, program.c_str(), &actions, nullptr, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed != 0) throw std::runtime_error("cannot start " + program);
    std::string line;
    co_await asio::async_read_until(from, asio::dynamic_buffer(line), '\n', asio::use_awaitable);
    address_ = line.substr(0, line.find('\n'));
  }

  void kill() {
    address_.clear();
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  // Empty while it is not listening.
  const std::string& address() const { return address_; }

  std::vector<std::uint64_t> journal() const {
    std::ifstream file(journal_, std::ios::binary);
    std::vector<std::uint64_t> operations;
    std::uint64_t one = 0;
    while (file.read(reinterpret_cast<char*>(&one), sizeof one)) operations.push_back(one);
    if (file.gcount() != 0) throw std::runtime_error("part of a record in " + journal_);
    return operations;
  }

 private:
  asio::io_context& io_;
  std::string where_;
  std::string journal_;
  std::string address_;
  pid_t pid_ = -1;
};

}  // namespace chaos
