// The programs of a run as processes on their hosts: started so that two runs are alike, reaped, ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <expected>
#include <string>
#include <vector>

#include "link/fabric/arena.hpp"
#include "twin/hosts/keeper.hpp"
#include "twin/scenario.hpp"

namespace weir::twin {

struct Ended {
  std::uint32_t program = 0;
  pid_t pid = 0;
  int status = 0;  // as of waitpid
};

class Processes {
 public:
  struct Options {
    std::string folder;  // of this run: hosts, outputs, runtime directories
    int arena = -1;      // the descriptor of its memory
    std::string weir;    // the program `weir`
    std::uint32_t mtu_bytes = 4096;
  };
  // Makes the hosts. The error is text to print.
  static std::expected<Processes, std::string> make(const Scenario& scenario, Options options);
  Processes(Processes&&) = default;
  ~Processes();

  // The program waits for its first grant, once it has begun.
  std::expected<void, std::string> start(const Scenario& scenario, std::uint32_t program);
  // Those that have ended since the last call.
  std::vector<Ended> reap();
  pid_t pid(std::uint32_t program) const { return pids_[program]; }
  // Those of the hosts, by the numbers that they have there; 0: it is not found.
  pid_t number_of(std::uint32_t inside) const;
  static pid_t thread_of(pid_t process, std::int32_t inside);
  // Whether it runs or waits for a processor, and has had less of one than that.
  static bool is_starved(pid_t process, pid_t thread, std::chrono::seconds limit);
  // Also if its parent has not heard of it yet.
  static bool has_ended(pid_t pid);
  std::string output(std::uint32_t program) const;
  const std::vector<link::fabric::Address>& addresses() const { return addresses_; }

 private:
  Processes(hosts::Keeper keeper, Options options)
      : keeper_(std::move(keeper)), options_(std::move(options)) {}
  [[noreturn]] void become(const Scenario& scenario, std::uint32_t program);
  std::string output_file(std::uint32_t program) const;

  hosts::Keeper keeper_;
  Options options_;
  std::string space_;                             // their PID namespace, as the kernel names it
  std::vector<pid_t> pids_;                       // by program; 0: it has ended or not begun
  std::vector<link::fabric::Address> addresses_;  // by host
};

}  // namespace weir::twin
