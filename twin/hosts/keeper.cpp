#include "twin/hosts/keeper.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <optional>

#include "twin/hosts/first_process.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/user_namespace.hpp"

namespace weir::hosts {
namespace {

struct Pipe {
  link::UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure_errno(errno, "a pipe");
  return Pipe{link::UniqueFd(ends[0]), link::UniqueFd(ends[1])};
}

void send_line(int fd, std::string_view text) {
  [[maybe_unused]] const auto sent = ::write(fd, text.data(), text.size());
}

// Up to the end of the pipe.
std::string read_all(int fd) {
  std::string text;
  std::array<char, 512> part{};
  while (true) {
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

bool read_byte(int fd) {
  char byte = 0;
  ssize_t count = 0;
  do count = ::read(fd, &byte, 1);
  while (count < 0 && errno == EINTR);
  return count == 1;
}

// An error as text: its cause's number, then what.
std::string report_of(const Error& error) {
  return std::to_string(static_cast<int>(error.cause)) + " " + error.what;
}

std::optional<Error> read_report(const std::string& text) {
  if (text == "made") return std::nullopt;
  if (text.size() < 3 || text[0] < '0' || text[0] > '5')
    return Error{Cause::system, "the keeper of the hosts was killed before they stood"};
  return Error{static_cast<Cause>(text[0] - '0'), text.substr(2)};
}

void take_signals_to_default() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < SIGRTMIN; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
}

// Standard input, output and error lead nowhere, and no descriptor stays open but `kept`, which become
// 3, 4...
template <std::size_t N>
void keep_only(std::array<int, N>& kept) {
  constexpr int above = 64;  // out of the way of the numbers that they are to get
  for (int& fd : kept)
    if (fd >= 0) fd = ::fcntl(fd, F_DUPFD_CLOEXEC, above);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int number = 0; number < 3; ++number) ::dup2(nowhere, number);
  int next = 3;
  for (int& fd : kept) {
    if (fd < 0) continue;
    ::dup3(fd, next, O_CLOEXEC);
    fd = next++;
  }
  ::close_range(static_cast<unsigned>(next), ~0U, 0);
}

// The first process: never returns.
[[noreturn]] void keep(const NetworkPlan& plan, const std::string& folder, std::array<int, 5> fds) {
  take_signals_to_default();
  ::setsid();
  keep_only(fds);
  auto& [listening, report, lifeline, ready, mapped] = fds;
  ::prctl(PR_SET_NAME, "weir-fabric");
  [[maybe_unused]] const int root = ::chdir("/");
  const auto give_up = [&](const Error& error) {
    send_line(report, report_of(error));
    vacate(folder);
    ::_exit(1);
  };
  if (const auto left = unshare_users(); !left) give_up(left.error());
  send_line(ready, "u");
  if (!read_byte(mapped)) {  // the starter has the reason, or is gone
    vacate(folder);
    ::_exit(1);
  }
  if (::unshare(CLONE_NEWPID) != 0) give_up(refused_namespace(errno));
  auto life = make_pipe();
  if (!life) give_up(life.error());
  const pid_t first = ::fork();
  if (first < 0) give_up(failure_errno(errno, "cannot start the first process of the hosts").error());
  if (first == 0) {
    life->write.reset();
    keep_hosts(plan, folder,
               {.listening = listening, .report = report, .keeper = life->read.get(), .lifeline = lifeline});
  }
  for (const int fd : fds)
    if (fd >= 0) ::close(fd);
  // SIGTERM and the like end this process, and with it the pipe, and so the other.
  int status = 0;
  while (::waitpid(first, &status, 0) < 0 && errno == EINTR) {
  }
  // If it ended by itself, it has removed the folder, and there may be another network of this name by now.
  if (!WIFEXITED(status)) vacate(folder);
  ::_exit(0);
}

}  // namespace

Result<Keeper> start_network(const NetworkPlan& plan, const std::string& folder, Lifetime lifetime) {
  if (const auto checked = check(plan); !checked) return std::unexpected(checked.error());
  auto listening = occupy(folder);
  if (!listening) return std::unexpected(listening.error());
  const auto give_up = [&](Error error) -> Result<Keeper> {
    vacate(folder);
    return std::unexpected(std::move(error));
  };
  if (!(std::ofstream(hosts_file_in(folder)) << hosts_file(plan)).flush())
    return give_up({Cause::system, "cannot write " + hosts_file_in(folder)});
  auto report = make_pipe(), life = make_pipe(), ready = make_pipe(), mapped = make_pipe();
  for (auto* const made : {&report, &life, &ready, &mapped})
    if (!*made) return give_up(made->error());

  Keeper keeper;
  keeper.pid_ = ::fork();
  if (keeper.pid_ < 0) return give_up(failure_errno(errno, "cannot start the keeper").error());
  if (keeper.pid_ == 0)
    keep(plan, folder,
         {listening->get(), report->write.get(),
          lifetime == Lifetime::with_this_process ? life->read.get() : -1, ready->write.get(),
          mapped->read.get()});
  listening->reset();
  report->write.reset();
  ready->write.reset();
  mapped->read.reset();
  std::optional<Error> error;
  if (read_byte(ready->read.get())) {
    if (const auto done = map_users(keeper.pid_); done)
      send_line(mapped->write.get(), "m");
    else
      error = done.error();
  }
  mapped->write.reset();
  const std::string reported = read_all(report->read.get());
  if (!error) error = read_report(reported);
  if (error) {
    while (::waitpid(keeper.pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    return give_up(*error);
  }
  if (lifetime == Lifetime::with_this_process) keeper.lifeline_ = std::move(life->write);
  return keeper;
}

}  // namespace weir::hosts
