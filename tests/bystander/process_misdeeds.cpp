// Misdeeds that need processes: honest clients are stopped and killed.
//
// Each client is forked before this process has opened an engine, because a child has its own.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "tests/bystander/honest_client.hpp"
#include "tests/bystander/misdeeds.hpp"

namespace weir::bystander::processes {
namespace {

void sleep_us(std::uint64_t us) {
  const timespec time{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
  ::nanosleep(&time, nullptr);
}

// Writes large texts and reads them, so that it is usually stopped in the middle of one.
asio::awaitable<void> work(asio::io_context& io, Protocol protocol, std::string address, std::string key) {
  auto client = co_await meet(io, protocol, address);
  const std::string text = check_text(key, 0, 300'000);
  for (;;) {
    co_await client->put(key, text);
    co_await client->get(key);
  }
}
asio::awaitable<void> only_connect(asio::io_context& io, Protocol protocol, std::string address) {
  for (;;) co_await meet(io, protocol, address);
}

using Life = void (*)(asio::io_context&, Protocol, const std::string&);
void busy(asio::io_context& io, Protocol protocol, const std::string& address) {
  for (int i = 0; i < 4; ++i) {
    std::string key = "attacker-" + std::to_string(::getpid()) + "-" + std::to_string(i);
    asio::co_spawn(io, work(io, protocol, address, key), [](const std::exception_ptr&) {});
  }
}
void connecting(asio::io_context& io, Protocol protocol, const std::string& address) {
  for (int i = 0; i < 4; ++i)
    asio::co_spawn(io, only_connect(io, protocol, address), [](const std::exception_ptr&) {});
}

pid_t start(Attack& attack, Life life) {
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  asio::io_context io(1);
  life(io, attack.protocol, attack.address);
  io.run();
  ::_exit(0);
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void keep_killing(Attack& attack, Life life, std::uint64_t most_us) {
  constexpr std::size_t at_once = 2;
  std::vector<pid_t> clients;
  for (;;) {
    while (clients.size() < at_once) clients.push_back(start(attack, life));
    sleep_us(attack.below(most_us));
    const std::size_t which = attack.below(clients.size());
    end(clients[which]);
    clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(which));
    attack.did();
  }
}

}  // namespace

// Some stay stopped until the end: a client that waits for one of them waits that long.
void stop_clients(Attack& attack) {
  constexpr std::size_t stopped_at_once = 4;
  std::vector<pid_t> stopped;
  for (;;) {
    const pid_t client = start(attack, busy);
    sleep_us(20'000 + attack.below(40'000));
    ::kill(client, SIGSTOP);
    attack.did();
    stopped.push_back(client);
    if (stopped.size() < stopped_at_once) continue;
    const std::size_t which = attack.below(stopped.size());
    if (attack.below(2) == 0) {
      ::kill(stopped[which], SIGCONT);
      sleep_us(attack.below(20'000));
    }
    end(stopped[which]);
    stopped.erase(stopped.begin() + static_cast<std::ptrdiff_t>(which));
  }
}

void kill_clients(Attack& attack) { keep_killing(attack, busy, 60'000); }

void kill_connecting(Attack& attack) { keep_killing(attack, connecting, 20'000); }

}  // namespace weir::bystander::processes
