// What a connection of rdma::Channel costs: memory, time to connect, and time of calls if only a few of many
// connections are busy; with a connection's own receives and with receives that all connections share.
//
// Server and client each run in their own process on their own core. Usage: channel_connections
// [--connections N]... [--calls N] [--receive-blocks N] [--send-blocks N]
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <asio/ip/address.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/engine.hpp"
#include "bench/pin.hpp"
#include "rdma/channel.hpp"

namespace {

namespace rdma = weir::rdma;
using weir::bench::open_engine;
using weir::bench::pin;
using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<int> connections = {1000};
  int calls = 200'000;
  rdma::ChannelSettings channel;
};

// The memory of this process, including shared memory.
double resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6));
  return 0;
}

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  _exit(1);
}

// The server's report on request, in one message.
struct Report {
  double resident_kib = 0;
  double posted_bytes = 0;
};

[[noreturn]] void serve(const Options& options, int tell) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(0);
  asio::io_context io(1);
  rdma::Engine& engine = open_engine(io);
  rdma::ChannelAcceptorSettings settings;
  settings.channel = options.channel;
  auto acceptor = rdma::ChannelAcceptor::listen(engine, {asio::ip::make_address("127.0.0.1"), 0}, settings);
  if (!acceptor) give_up(acceptor.error().what);
  const std::uint16_t port = acceptor->local_endpoint().port();
  if (write(tell, &port, sizeof port) != sizeof port) _exit(1);
  std::deque<rdma::Channel> channels;
  const auto answer = [&](rdma::Channel& channel) {
    while (auto message = channel.try_receive()) {
      if (message->size() > 1) {
        channel.try_send(asio::const_buffer(message->data(), message->size()));
        continue;
      }
      Report report{resident_kib(), static_cast<double>(engine.stats().shared.posted_bytes)};
      for (const rdma::Channel& each : channels)
        report.posted_bytes += static_cast<double>(each.memory().posted_bytes);
      channel.try_send(asio::const_buffer(&report, sizeof report));
    }
  };
  std::function<void()> accept = [&] {
    acceptor->async_accept([&](std::error_code failed, rdma::Channel channel) {
      if (failed) give_up("accept: " + failed.message());
      rdma::Channel& kept = channels.emplace_back(std::move(channel));
      kept.on_readable([&] { answer(kept); });
      accept();
    });
  };
  accept();
  io.run();
  _exit(0);
}

void measure(const Options& options, int count, std::uint16_t port) {
  asio::io_context io(1);
  rdma::Engine& engine = open_engine(io);
  rdma::ChannelSettings settings = options.channel;
  settings.shared_receives = true;  // the client's side is not what is measured
  std::deque<rdma::Channel> channels;
  const auto connect = [&](int until) {
    for (int next = static_cast<int>(channels.size()), under_way = 0; next < until || under_way > 0;) {
      while (next < until && under_way < 32) {
        rdma::Channel& channel = channels.emplace_back(engine);
        rdma::async_connect(channel, {asio::ip::make_address("127.0.0.1"), port}, settings,
                            [&](std::error_code failed) {
                              if (failed) give_up("connect: " + channel.error().what);
                              --under_way;
                            });
        ++next;
        ++under_way;
      }
      io.run_one();
    }
  };
  const auto ask = [&] {
    while (!channels.front().try_send(asio::const_buffer("?", 1))) io.run_one();
    std::optional<rdma::Message> message;
    while (!(message = channels.front().try_receive())) io.run_one();
    Report report;
    std::memcpy(&report, message->data(), sizeof report);
    return report;
  };
  connect(1);
  const Report before = ask();
  const auto begin = Clock::now();
  connect(count);
  const double connected = std::chrono::duration<double>(Clock::now() - begin).count();
  const Report idle = ask();

  const std::string text(128, 'x');
  const auto first = Clock::now();
  constexpr int at_a_time = 16;
  int asked = 0, answered = 0;
  for (rdma::Channel& each : channels)
    each.on_readable([&] {
      while (each.try_receive()) ++answered;
    });
  while (answered < options.calls) {
    while (asked < options.calls && asked - answered < at_a_time) {
      if (!channels[static_cast<std::size_t>(asked) % channels.size()].try_send(asio::buffer(text))) break;
      ++asked;
    }
    io.run_one();
  }
  const double took = std::chrono::duration<double>(Clock::now() - first).count();
  channels.front().on_readable(nullptr);
  const Report busy = ask();
  const double others = std::max(count - 1, 1);
  fmt::print("{:<7} {:>7} {:>12.1f} {:>14.1f} {:>14.1f} {:>16.1f} {:>12.0f}\n",
             options.channel.shared_receives ? "shared" : "own", count, connected / others * 1e6,
             (idle.resident_kib - before.resident_kib) / others,
             (busy.resident_kib - before.resident_kib) / others, busy.posted_bytes / 1024 / count,
             options.calls / took);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Memory and calls of many channels");
  app.add_option("--connections", options.connections)->delimiter(',');
  app.add_option("--calls", options.calls,
                 "128 bytes there and back, 16 at a time, a channel after the other");
  app.add_option("--receive-blocks", options.channel.receive_blocks);
  app.add_option("--send-blocks", options.channel.send_blocks);
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<7} {:>7} {:>12} {:>14} {:>14} {:>16} {:>12}\n", "", "", "us to", "KiB resident",
             "KiB resident", "KiB posted", "calls/s");
  fmt::print("{:<7} {:>7} {:>12} {:>14} {:>14} {:>16} {:>12}\n", "", "number", "connect", "each, idle",
             "each, used", "each", "");
  std::fflush(stdout);
  for (const int count : options.connections)
    for (const bool shared : {false, true}) {
      options.channel.shared_receives = shared;
      options.channel.keepalive = std::chrono::milliseconds(0);
      int ends[2];
      if (pipe(ends) != 0) return 1;
      const pid_t server = fork();
      if (server == 0) serve(options, ends[1]);
      const pid_t client = fork();
      if (client == 0) {
        pin(1);
        std::uint16_t port = 0;
        if (read(ends[0], &port, sizeof port) == sizeof port) measure(options, count, port);
        _exit(0);
      }
      int status = 0;
      waitpid(client, &status, 0);
      kill(server, SIGKILL);
      waitpid(server, nullptr, 0);
      for (const int fd : ends) close(fd);
      if (status != 0) return 1;
    }
}
