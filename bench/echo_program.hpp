// What the echo programs share: their options, and a server in its own process on its own core.
#pragma once

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/echo_row.hpp"
#include "bench/pin.hpp"

namespace weir::bench {

struct EchoOptions {
  std::size_t bytes = 128;
  std::vector<int> in_flight = {1, 4, 16, 64, 256};
  bool each = false;  // a connection for each call in flight
  double seconds = 1.0;
  std::string client_network;  // a namespace's file; empty: the server's

  void add_to(CLI::App& app) {
    app.add_option("--bytes", bytes);
    app.add_option("--in-flight", in_flight)->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option_function<std::string>(
           "--connections", [this](const std::string& how) { each = how == "each"; },
           "one for all calls in flight, or each has its own; one if not given")
        ->check(CLI::IsMember({"one", "each"}));
    app.add_option("--seconds", seconds);
    app.add_option("--client-network", client_network,
                   "the client enters this network namespace, such as /proc/123/ns/net");
  }
};

inline bool enter_network(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0;
  if (!entered) fmt::print(stderr, "cannot enter {}: {}\n", file, std::strerror(errno));
  if (fd >= 0) ::close(fd);
  return entered;
}

// serve(tell) runs in a child process, which reports its address with tell() once it serves, or "! ..." if it
// cannot, and is finally killed. measure(line, in_flight, child) runs here, for each number of calls in
// flight. Returns the exit status.
template <class Serve, class Measure>
int run_echo(const EchoOptions& options, Serve serve, Measure measure) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(0);
    serve([tell = pipe_ends[1]](const std::string& line) {
      const std::string whole = line + "\n";
      if (write(tell, whole.data(), whole.size()) < 0 || line.front() == '!') _exit(1);
    });
    _exit(0);
  }
  close(pipe_ends[1]);
  pin(1);
  if (!options.client_network.empty() && !enter_network(options.client_network)) return 1;
  std::string line;
  for (char c = 0; read(pipe_ends[0], &c, 1) == 1 && c != '\n';) line += c;
  const bool serves = !line.empty() && line.front() != '!';
  if (serves)
    for (const int in_flight : options.in_flight) measure(line, in_flight, child);
  else
    fmt::print(stderr, "the server: {}\n", line);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return serves ? 0 : 1;
}

// Runs a short phase to warm up, then the phase that is measured and printed. phase(until, nanoseconds) makes
// calls until `until`, records how long each took, and returns how many failed.
template <class Phase>
void print_echo(std::string_view name, const EchoOptions& options, int in_flight, pid_t server, Phase phase) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::uint64_t> warm, nanoseconds;
  nanoseconds.reserve(20'000'000);
  const auto in = [](double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  phase(in(options.seconds / 5), warm);
  const double used = processor_seconds(server);
  const auto begin = Clock::now();
  const std::uint64_t failed = phase(in(options.seconds), nanoseconds);
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  EchoRow row{.name = name,
              .bytes = options.bytes,
              .in_flight = in_flight,
              .each = options.each,
              .seconds = took,
              .server_seconds = processor_seconds(server) - used,
              .nanoseconds = nanoseconds,
              .failed = failed};
  row.print();
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace weir::bench
