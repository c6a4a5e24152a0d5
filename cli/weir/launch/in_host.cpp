#include "cli/weir/launch/in_host.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cli/weir/command.hpp"
#include "twin/hosts/enter_host.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::command {
namespace {

constexpr int no_host = 125;  // as of programs that start others: env(1), timeout(1)

// Those that ask a program for something. SIGTSTP and the like stop this process too, as they should.
sigset_t passed_on() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCHLD})
    ::sigaddset(&signals, number);
  return signals;
}

int end_as(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  const rlimit no_core{0, 0};  // the program's is enough
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(number, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, number);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(number);
  return 128 + number;
}

int wait_for(pid_t program, const sigset_t& signals) {
  while (true) {
    int status = 0;
    if (::waitpid(program, &status, WNOHANG) == program) return end_as(status);
    siginfo_t info{};
    const int number = ::sigwaitinfo(&signals, &info);
    // What a terminal sends goes to the whole process group: the program has it already.
    if (number > 0 && number != SIGCHLD && info.si_code <= 0) ::kill(program, number);
  }
}

}  // namespace

std::expected<std::string, std::string> find_fabric(const std::string& name) {
  const char* const inside = std::getenv("WEIR_FABRIC");
  std::string meant = name.empty() && inside != nullptr ? inside : name;
  if (meant.empty()) {
    const auto running = hosts::running_networks();
    if (running.empty()) return std::unexpected("no fabric is up; begin with: weir fabric up --hosts 2");
    if (running.size() > 1) {
      std::string names = running.front();
      for (std::size_t index = 1; index < running.size(); ++index) names += ", " + running[index];
      return std::unexpected("several fabrics are up (" + names + "); name one with --fabric");
    }
    meant = running.front();
  }
  auto folder = hosts::folder_of(meant);
  if (!folder) return std::unexpected(folder.error().what);
  return *std::move(folder);
}

std::optional<int> go_on_in_host(std::string_view subcommand, const std::string& fabric,
                                 const std::string& host) {
  const auto folder = find_fabric(fabric);
  if (!folder) return complain(subcommand, folder.error(), no_host);
  const auto found = hosts::find_host(*folder, host);
  if (!found) return complain(subcommand, found.error().what, no_host);
  const auto variables = hosts::variables_of(*folder, host);
  if (!variables) return complain(subcommand, variables.error().what, no_host);

  // Before the program is there, so that no signal is lost in between.
  const sigset_t signals = passed_on();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  auto* const child_handler = ::signal(SIGCHLD, SIG_DFL);  // ignored, it would leave nothing to wait for
  const auto program = hosts::fork_into(*found);
  if (!program) return complain(subcommand, host + ": " + program.error().what, no_host);
  if (*program != 0) return wait_for(*program, signals);
  ::signal(SIGCHLD, child_handler);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  hosts::set_host_variables(*folder, host);
  for (const auto& [name, value] : *variables) ::setenv(name.c_str(), value.c_str(), 1);
  return std::nullopt;
}

}  // namespace weir::command
