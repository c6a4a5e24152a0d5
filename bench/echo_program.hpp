// What the echo programs do alike: their options, and a server in a process of its own, on a core of its own.
#pragma once

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "bench/pin.hpp"

namespace weir::bench {

struct EchoOptions {
  std::size_t bytes = 128;
  std::vector<int> in_flight = {1, 4, 16, 64, 256};
  bool each = false;  // a connection for each call in flight
  double seconds = 1.0;

  void add_to(CLI::App& app) {
    app.add_option("--bytes", bytes);
    app.add_option("--in-flight", in_flight)->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option_function<std::string>(
           "--connections", [this](const std::string& how) { each = how == "each"; },
           "one for all calls in flight, or each has its own; one if not given")
        ->check(CLI::IsMember({"one", "each"}));
    app.add_option("--seconds", seconds);
  }
};

// serve(tell) runs in a child, which tells a line when it serves, "! ..." if it cannot, and then is killed;
// measure(line, in_flight, child) here, for each number. The exit status.
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

}  // namespace weir::bench
