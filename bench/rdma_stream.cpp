// Compares rdma::Stream with TCP in one program and run: round trips of small messages, and bytes one way.
//
// Two processes on this host are each pinned to their own core (or both to one: --same-core). Both
// transports run in an asio::io_context with callbacks. Usage: rdma_stream_bench [--seconds S] [--address A]
// [--no-tcp] [--same-core] [--csv]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/engine.hpp"
#include "bench/pin.hpp"
#include "rdma/acceptor.hpp"
#include "rdma/stream.hpp"

namespace {

namespace rdma = weir::rdma;
using weir::bench::open_engine;
using weir::bench::pin;
using Clock = std::chrono::steady_clock;

struct Plan {
  double seconds = 1.0;
  std::string address = "127.0.0.1";
  bool same_core = false;
  bool csv = false;
  std::string only;  // part of a case's name
  bool tcp = true;
};

// What both transports offer to the benchmark: bytes in, bytes out.
class Channel {
 public:
  virtual ~Channel() = default;
  // `on_bytes` runs with each piece that arrives; `on_room` when everything given to send() is on its way.
  virtual void start(std::function<void(std::span<const std::byte>)> on_bytes,
                     std::function<void()> on_room) = 0;
  virtual void send(std::span<const std::byte> bytes) = 0;  // one at a time; `bytes` stays until on_room
  virtual bool ended() const = 0;
};

class RdmaChannel final : public Channel {
 public:
  explicit RdmaChannel(rdma::Stream stream) : stream_(std::move(stream)) {}
  void start(std::function<void(std::span<const std::byte>)> on_bytes,
             std::function<void()> on_room) override {
    on_bytes_ = std::move(on_bytes);
    on_room_ = std::move(on_room);
    stream_.on_writable([this] { pump(); });
    stream_.on_readable([this] {
      while (!stream_.readable().empty()) {
        const auto bytes = stream_.readable();
        copy_.assign(bytes.begin(), bytes.end());  // as a careful reader does
        stream_.consume(bytes.size());
        on_bytes_(copy_);
      }
    });
  }
  void send(std::span<const std::byte> bytes) override {
    left_ = bytes;
    pump();
  }
  bool ended() const override { return static_cast<bool>(stream_.end()); }

 private:
  void pump() {
    left_ = left_.subspan(stream_.try_write(asio::const_buffer(left_.data(), left_.size())));
    if (left_.empty()) on_room_();
  }
  rdma::Stream stream_;
  std::function<void(std::span<const std::byte>)> on_bytes_;
  std::function<void()> on_room_;
  std::span<const std::byte> left_;
  std::vector<std::byte> copy_;
};

class TcpChannel final : public Channel {
 public:
  explicit TcpChannel(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    socket_.set_option(asio::ip::tcp::no_delay(true));
  }
  void start(std::function<void(std::span<const std::byte>)> on_bytes,
             std::function<void()> on_room) override {
    on_bytes_ = std::move(on_bytes);
    on_room_ = std::move(on_room);
    read();
  }
  void send(std::span<const std::byte> bytes) override {
    asio::async_write(socket_, asio::const_buffer(bytes.data(), bytes.size()),
                      [this](std::error_code failed, auto) {
                        if (failed)
                          ended_ = true;
                        else
                          on_room_();
                      });
  }
  bool ended() const override { return ended_; }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(data_), [this](std::error_code failed, std::size_t bytes) {
      if (failed) {
        ended_ = true;
        return;
      }
      on_bytes_(std::span(data_).first(bytes));
      read();
    });
  }
  asio::ip::tcp::socket socket_;
  std::vector<std::byte> data_ = std::vector<std::byte>(1 << 20);
  std::function<void(std::span<const std::byte>)> on_bytes_;
  std::function<void()> on_room_;
  bool ended_ = false;
};

struct Case {
  const char* name;
  std::size_t request_bytes;
  bool echo;
  int window;  // requests outstanding on a connection
  int connections = 1;
};

// The server's end: answers each `request_bytes` with as many (ping-pong), or with one byte (one way).
class Answering {
 public:
  Answering(std::unique_ptr<Channel> channel, const Case& what)
      : channel_(std::move(channel)),
        request_bytes_(what.request_bytes),
        answer_(what.echo ? what.request_bytes : 1) {
    channel_->start([this](std::span<const std::byte> bytes) { on_bytes(bytes.size()); },
                    [this] {
                      sending_ = false;
                      send_next();
                    });
  }
  bool ended() const { return channel_->ended(); }

 private:
  void on_bytes(std::size_t bytes) {
    pending_ += bytes;
    owed_ += pending_ / request_bytes_;
    pending_ %= request_bytes_;
    send_next();
  }
  void send_next() {
    if (sending_ || owed_ == 0) return;
    sending_ = true;
    --owed_;
    channel_->send(answer_);
  }

  std::unique_ptr<Channel> channel_;
  std::size_t request_bytes_;
  std::vector<std::byte> answer_;
  std::size_t pending_ = 0, owed_ = 0;
  bool sending_ = false;
};

struct Outcome {
  double per_second = 0, p50_us = 0, p99_us = 0;
};

// What all connections of a client measure together; the first tenth of a second does not count.
struct Measurement {
  Clock::time_point warm = Clock::now() + std::chrono::milliseconds(100);
  Clock::time_point from = Clock::now();
  std::vector<float> latencies_us;

  void answered(Clock::time_point started, Clock::time_point now) {
    if (now < warm)
      from = now;
    else
      latencies_us.push_back(std::chrono::duration<float, std::micro>(now - started).count());
  }
  Outcome outcome() {
    const double elapsed = std::chrono::duration<double>(Clock::now() - from).count();
    std::ranges::sort(latencies_us);
    const auto at = [&](double q) {
      const auto last = static_cast<double>(latencies_us.size()) - 1;
      return latencies_us.empty() ? 0.0 : latencies_us[static_cast<std::size_t>(q * last)];
    };
    return {static_cast<double>(latencies_us.size()) / elapsed, at(0.5), at(0.99)};
  }
};

// The client's end: keeps `window` requests outstanding.
class Asking {
 public:
  Asking(std::unique_ptr<Channel> channel, const Case& what, Measurement& measurement)
      : channel_(std::move(channel)),
        request_(what.request_bytes, std::byte{'r'}),
        answer_bytes_(what.echo ? what.request_bytes : 1),
        started_(static_cast<std::size_t>(what.window)),
        measurement_(measurement) {
    channel_->start([this](std::span<const std::byte> bytes) { on_bytes(bytes.size()); },
                    [this] {
                      sending_ = false;
                      send_next();
                    });
    send_next();
  }

 private:
  void on_bytes(std::size_t bytes) {
    answered_ += bytes;
    const auto now = Clock::now();
    for (; answered_ >= answer_bytes_; answered_ -= answer_bytes_)
      measurement_.answered(started_[finished_++ % started_.size()], now);
    send_next();
  }
  void send_next() {
    if (sending_ || next_ - finished_ >= started_.size()) return;
    sending_ = true;
    started_[next_++ % started_.size()] = Clock::now();
    channel_->send(request_);
  }

  std::unique_ptr<Channel> channel_;
  std::vector<std::byte> request_;
  std::size_t answer_bytes_;
  std::vector<Clock::time_point> started_;
  Measurement& measurement_;
  std::size_t answered_ = 0, finished_ = 0, next_ = 0;
  bool sending_ = false;
};

// Serves `what.connections` clients until they leave; tells its port through `port_fd`.
int serve(const Plan& plan, const Case& what, bool over_rdma, int port_fd) {
  pin(0);
  asio::io_context io(1);
  const rdma::Endpoint any(asio::ip::make_address(plan.address), 0);
  const auto tell = [&](std::uint16_t port) { return write(port_fd, &port, sizeof port) == sizeof port; };
  std::vector<std::unique_ptr<Answering>> sessions;
  const auto wanted = static_cast<std::size_t>(what.connections);
  if (over_rdma) {
    auto acceptor = rdma::Acceptor::listen(open_engine(io), any);
    if (!acceptor || !tell(acceptor->local_endpoint().port())) return 1;
    std::function<void()> accept = [&] {
      acceptor->async_accept([&](std::error_code failed, rdma::Stream stream) {
        if (failed) return;
        sessions.push_back(
            std::make_unique<Answering>(std::make_unique<RdmaChannel>(std::move(stream)), what));
        accept();
      });
    };
    accept();
    while (sessions.size() < wanted) io.run_one();
    acceptor->close();
    while (!sessions.front()->ended()) io.run_one();
  } else {
    asio::ip::tcp::acceptor acceptor(io, any);
    if (!tell(acceptor.local_endpoint().port())) return 1;
    while (sessions.size() < wanted)
      sessions.push_back(std::make_unique<Answering>(std::make_unique<TcpChannel>(acceptor.accept()), what));
    while (!sessions.front()->ended()) io.run_one();
  }
  return 0;
}

std::unique_ptr<Channel> connect_rdma(asio::io_context& io, rdma::Engine& engine,
                                      const rdma::Endpoint& server) {
  rdma::Stream stream(engine);
  bool connected = false;
  rdma::async_connect(stream, server, {}, [&](std::error_code failed) {
    if (failed) {
      std::fprintf(stderr, "%s\n", stream.error().what.c_str());
      _exit(1);
    }
    connected = true;
  });
  while (!connected) io.run_one();
  return std::make_unique<RdmaChannel>(std::move(stream));
}

std::unique_ptr<Channel> connect_tcp(asio::io_context& io, const rdma::Endpoint& server) {
  asio::ip::tcp::socket socket(io);
  socket.connect(server);
  return std::make_unique<TcpChannel>(std::move(socket));
}

Outcome ask(const Plan& plan, const Case& what, bool over_rdma, std::uint16_t port) {
  pin(plan.same_core ? 0 : 1);
  asio::io_context io(1);
  const rdma::Endpoint server(asio::ip::make_address(plan.address), port);
  rdma::Engine* engine = over_rdma ? &open_engine(io) : nullptr;
  std::vector<std::unique_ptr<Channel>> channels;
  for (int i = 0; i < what.connections; ++i)
    channels.push_back(over_rdma ? connect_rdma(io, *engine, server) : connect_tcp(io, server));
  Measurement measurement;
  std::vector<std::unique_ptr<Asking>> sessions;
  for (auto& channel : channels)
    sessions.push_back(std::make_unique<Asking>(std::move(channel), what, measurement));
  const auto until = measurement.warm +
                     std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan.seconds));
  for (int i = 0; i % 64 != 0 || Clock::now() < until; ++i) io.run_one_for(std::chrono::milliseconds(100));
  return measurement.outcome();
}

// Both halves of one measurement, a process each; the port goes from the server to the client through a pipe.
Outcome measure(const Plan& plan, const Case& what, bool over_rdma) {
  int port_pipe[2], result_pipe[2];
  if (pipe(port_pipe) != 0 || pipe(result_pipe) != 0) _exit(1);
  const pid_t server = fork();
  if (server == 0) {
    close(result_pipe[1]);
    _exit(serve(plan, what, over_rdma, port_pipe[1]));
  }
  close(port_pipe[1]);  // so that a server that fails is the end of the pipe
  const pid_t client = fork();
  if (client == 0) {
    std::uint16_t port = 0;
    if (read(port_pipe[0], &port, sizeof port) != sizeof port) _exit(1);
    const Outcome outcome = ask(plan, what, over_rdma, port);
    const bool told = write(result_pipe[1], &outcome, sizeof outcome) == sizeof outcome;
    _exit(told ? 0 : 1);
  }
  close(result_pipe[1]);
  Outcome outcome{};
  if (read(result_pipe[0], &outcome, sizeof outcome) != sizeof outcome) outcome = {};
  for (const int fd : {port_pipe[0], result_pipe[0]}) close(fd);
  waitpid(client, nullptr, 0);
  waitpid(server, nullptr, 0);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--same-core") {
      plan.same_core = true;
    } else if (word == "--no-tcp") {
      plan.tcp = false;
    } else if (word == "--csv") {
      plan.csv = true;
    } else if (word == "--seconds" && more) {
      plan.seconds = std::atof(argv[++i]);
    } else if (word == "--only" && more) {
      plan.only = argv[++i];
    } else if (word == "--address" && more) {
      plan.address = argv[++i];
    } else {
      std::fprintf(stderr,
                   "usage: rdma_stream_bench [--seconds S] [--address A] [--only CASE] [--no-tcp] "
                   "[--same-core] [--csv]\n");
      return 2;
    }
  }
  constexpr std::array cases = {
      Case{"ping-pong 16 B", 16, true, 1},           Case{"ping-pong 1 KiB", 1 << 10, true, 1},
      Case{"ping-pong 64 KiB", 64 << 10, true, 1},   Case{"16 B, 16 outstanding", 16, true, 16},
      Case{"16 B, 50 connections", 16, true, 1, 50}, Case{"one way, 64 KiB", 64 << 10, false, 8},
      Case{"one way, 1 MiB", 1 << 20, false, 4},
  };
  std::printf(
      plan.csv
          ? "case,tcp_per_s,rdma_per_s,ratio,tcp_p50_us,rdma_p50_us,tcp_p99_us,rdma_p99_us,rdma_MB_per_s\n"
          : "%-22s %12s %12s %7s %11s %11s %11s\n",
      "", "TCP /s", "RDMA /s", "ratio", "TCP p50 us", "RDMA p50", "RDMA MB/s");
  for (const Case& each : cases) {
    if (std::string(each.name).find(plan.only) == std::string::npos) continue;
    const Outcome tcp = plan.tcp ? measure(plan, each, false) : Outcome{};
    const Outcome rdma_outcome = measure(plan, each, true);
    const double ratio = tcp.per_second > 0 ? rdma_outcome.per_second / tcp.per_second : 0;
    const double mb = rdma_outcome.per_second * static_cast<double>(each.request_bytes) / 1e6;
    if (plan.csv)
      std::printf("%s,%.0f,%.0f,%.2f,%.2f,%.2f,%.2f,%.2f,%.0f\n", each.name, tcp.per_second,
                  rdma_outcome.per_second, ratio, tcp.p50_us, rdma_outcome.p50_us, tcp.p99_us,
                  rdma_outcome.p99_us, mb);
    else
      std::printf("%-22s %12.0f %12.0f %7.2f %11.2f %11.2f %11.0f\n", each.name, tcp.per_second,
                  rdma_outcome.per_second, ratio, tcp.p50_us, rdma_outcome.p50_us, mb);
    std::fflush(stdout);
  }
}
