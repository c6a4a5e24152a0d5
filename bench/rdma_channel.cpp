// The benefit of each technique of rdma::Channel: the same traffic with it and without it, in one run.
//
// Two processes on this host are each pinned to their own core. The client keeps a number of messages
// outstanding; the server answers each with the same number of bytes (round trip) or with one byte (one way).
// Medians of --repeat runs, alternating with and without. Usage: rdma_channel_bench [--seconds S] [--repeat
// N] [--address A] [--only CASE]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
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

struct Plan {
  double seconds = 0.3;
  int repeat = 5;
  std::string address = "127.0.0.1";
  std::string only;
};

enum class Answer { echo, short_one };
enum class Source { copied, own_buffer, in_parts };

struct Traffic {
  std::size_t bytes;
  int outstanding;
  Answer answer;
  Source source = Source::copied;
  rdma::ChannelSettings settings{};
};

struct Outcome {
  double per_second = 0, p50_us = 0, p99_us = 0;
  // From the client's channel and engine, per message.
  double frames = 0, signalled = 0, acks = 0, wake_ups = 0;
};

// Answers messages, which stay in their receive buffers until the answer can be sent.
class Answering {
 public:
  Answering(rdma::Channel channel, Answer answer) : channel_(std::move(channel)), answer_(answer) {
    channel_.on_readable([this] { go_on(); });
    channel_.on_writable([this] { go_on(); });
  }
  bool ended() const { return static_cast<bool>(channel_.end()); }

 private:
  void go_on() {
    for (;;) {
      if (!owed_) owed_ = channel_.try_receive();
      if (!owed_) return;
      const std::size_t bytes = answer_ == Answer::echo ? owed_->size() : 1;
      if (!channel_.try_send(asio::const_buffer(owed_->data(), bytes))) return;
      owed_.reset();
    }
  }
  rdma::Channel channel_;
  Answer answer_;
  std::optional<rdma::Message> owed_;
};

int serve(const Plan& plan, const Traffic& traffic, int port_fd) {
  pin(0);
  asio::io_context io(1);
  rdma::ChannelAcceptorSettings settings;
  settings.channel = traffic.settings;
  auto acceptor =
      rdma::ChannelAcceptor::listen(open_engine(io), {asio::ip::make_address(plan.address), 0}, settings);
  if (!acceptor) return 1;
  const std::uint16_t port = acceptor->local_endpoint().port();
  if (write(port_fd, &port, sizeof port) != sizeof port) return 1;
  std::optional<Answering> session;
  acceptor->async_accept([&](std::error_code failed, rdma::Channel channel) {
    if (failed) _exit(1);
    session.emplace(std::move(channel), traffic.answer);
  });
  while (!session || !session->ended()) io.run_one();
  return 0;
}

// Keeps messages outstanding; the first tenth of a second does not count.
class Asking {
 public:
  Asking(rdma::Channel& channel, const Traffic& traffic)
      : channel_(channel),
        traffic_(traffic),
        message_(traffic.bytes, std::byte{'m'}),
        started_(static_cast<std::size_t>(traffic.outstanding)) {
    channel_.on_readable([this] {
      take_answers();
      ask();
    });
    channel_.on_writable([this] { ask(); });
    ask();
  }
  Outcome outcome(const rdma::EngineStats& stats) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - from_).count();
    std::ranges::sort(latencies_us_);
    const auto at = [&](double q) {
      const auto last = static_cast<double>(latencies_us_.size()) - 1;
      return latencies_us_.empty() ? 0.0 : latencies_us_[static_cast<std::size_t>(q * last)];
    };
    const rdma::ChannelCounters counted = channel_.counters();
    const auto each = static_cast<double>(counted.messages_sent);
    return {.per_second = static_cast<double>(latencies_us_.size()) / elapsed,
            .p50_us = at(0.5),
            .p99_us = at(0.99),
            .frames = static_cast<double>(counted.frames_sent) / each,
            .signalled = static_cast<double>(counted.signalled) / each,
            .acks = static_cast<double>(counted.acks_sent) / each,
            .wake_ups = static_cast<double>(stats.wake_ups) / each};
  }
  bool ended() const { return static_cast<bool>(channel_.end()); }

 private:
  void take_answers() {
    const auto now = Clock::now();
    while (channel_.try_receive()) {
      const auto started = started_[finished_++ % started_.size()];
      if (now < warm_)
        from_ = now;
      else
        latencies_us_.push_back(std::chrono::duration<float, std::micro>(now - started).count());
    }
  }
  bool send_one() {
    if (traffic_.source == Source::in_parts) {
      begun_ += channel_.try_send_some(asio::buffer(message_) + begun_);
      if (begun_ < message_.size()) return false;
      begun_ = 0;
      return true;
    }
    if (traffic_.source == Source::copied) return channel_.try_send(asio::buffer(message_));
    if (!buffer_) {
      auto fresh = channel_.allocate(traffic_.bytes);
      if (!fresh) return false;
      buffer_ = std::move(*fresh);
    }
    return channel_.try_send(buffer_);
  }
  void ask() {
    while (next_ - finished_ < started_.size()) {
      started_[next_ % started_.size()] = Clock::now();
      if (!send_one()) return;
      ++next_;
    }
  }

  rdma::Channel& channel_;
  Traffic traffic_;
  std::vector<std::byte> message_;
  rdma::Buffer buffer_;
  std::vector<Clock::time_point> started_;
  std::size_t next_ = 0, finished_ = 0;
  std::size_t begun_ = 0;  // of a message sent in parts
  Clock::time_point warm_ = Clock::now() + std::chrono::milliseconds(100);
  Clock::time_point from_ = Clock::now();
  std::vector<float> latencies_us_;
};

Outcome ask(const Plan& plan, const Traffic& traffic, std::uint16_t port) {
  pin(1);
  asio::io_context io(1);
  rdma::Engine& engine = open_engine(io);
  rdma::Channel channel(engine);
  bool connected = false;
  rdma::async_connect(channel, {asio::ip::make_address(plan.address), port}, traffic.settings,
                      [&](std::error_code failed) {
                        if (failed) {
                          std::fprintf(stderr, "%s\n", channel.error().what.c_str());
                          _exit(1);
                        }
                        connected = true;
                      });
  while (!connected) io.run_one();
  Asking session(channel, traffic);
  const auto until = Clock::now() + std::chrono::milliseconds(100) +
                     std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan.seconds));
  for (int i = 0; i % 64 != 0 || Clock::now() < until; ++i) io.run_one_for(std::chrono::milliseconds(100));
  if (session.ended()) {
    std::fprintf(stderr, "%s\n", channel.error().what.c_str());
    _exit(1);
  }
  return session.outcome(engine.stats());
}

// Both halves of one measurement, a process each; the port goes from the server to the client through a pipe.
Outcome measure(const Plan& plan, const Traffic& traffic) {
  int port_pipe[2], result_pipe[2];
  if (pipe(port_pipe) != 0 || pipe(result_pipe) != 0) _exit(1);
  const pid_t server = fork();
  if (server == 0) {
    close(result_pipe[1]);
    _exit(serve(plan, traffic, port_pipe[1]));
  }
  close(port_pipe[1]);  // so that a server that fails is the end of the pipe
  const pid_t client = fork();
  if (client == 0) {
    std::uint16_t port = 0;
    if (read(port_pipe[0], &port, sizeof port) != sizeof port) _exit(1);
    const Outcome outcome = ask(plan, traffic, port);
    _exit(write(result_pipe[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
  }
  close(result_pipe[1]);
  Outcome outcome{};
  if (read(result_pipe[0], &outcome, sizeof outcome) != sizeof outcome) outcome = {};
  for (const int fd : {port_pipe[0], result_pipe[0]}) close(fd);
  waitpid(client, nullptr, 0);
  waitpid(server, nullptr, 0);
  return outcome;
}

Outcome median(std::vector<Outcome> outcomes) {
  std::ranges::sort(outcomes, {}, &Outcome::per_second);
  return outcomes[outcomes.size() / 2];
}

struct Case {
  std::string name;
  Traffic with;
  std::optional<Traffic> without = std::nullopt;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto sized = [](std::size_t bytes, int outstanding, Answer answer,
                        const rdma::ChannelSettings& settings, Source source = Source::copied) {
    return Traffic{bytes, outstanding, answer, source, settings};
  };
  const rdma::ChannelSettings usual;
  for (const std::size_t bytes : {128u, 4096u, 32u << 10, 256u << 10, 1u << 20}) {
    const std::string size =
        bytes < 1024 ? std::to_string(bytes) + " B" : std::to_string(bytes >> 10) + " KiB";
    all.push_back({"round trip, " + size, sized(bytes, 1, Answer::echo, usual)});
    all.push_back({"one way, " + size + ", 64 out", sized(bytes, 64, Answer::short_one, usual)});
  }
  rdma::ChannelSettings off = usual;
  off.inline_bytes = 0;
  all.push_back(
      {"inline: 128 B round trip", sized(128, 1, Answer::echo, usual), sized(128, 1, Answer::echo, off)});
  off = usual;
  off.merge = false;
  all.push_back(
      {"merging: 128 B, 256 out", sized(128, 256, Answer::echo, usual), sized(128, 256, Answer::echo, off)});
  off = usual;
  off.signal_interval = 1;
  all.push_back({"selective signals: 128 B, 16 out", sized(128, 16, Answer::echo, usual),
                 sized(128, 16, Answer::echo, off)});
  off = usual;
  off.solicited_only = false;
  all.push_back({"solicited: 4 KiB, 256 out", sized(4096, 256, Answer::short_one, usual),
                 sized(4096, 256, Answer::short_one, off)});
  all.push_back({"own buffers: 8 KiB, 8 out", sized(8 << 10, 8, Answer::short_one, usual, Source::own_buffer),
                 sized(8 << 10, 8, Answer::short_one, usual)});
  all.push_back({"own buffers: 1 MiB, 4 out", sized(1 << 20, 4, Answer::short_one, usual, Source::own_buffer),
                 sized(1 << 20, 4, Answer::short_one, usual)});
  off = usual;
  off.rendezvous_bytes = 0;
  rdma::ChannelSettings early = usual;
  early.rendezvous_bytes = 16 << 10;
  for (const std::size_t bytes : {32u << 10, 64u << 10, 256u << 10, 1u << 20}) {
    const std::string size = std::to_string(bytes >> 10) + " KiB";
    all.push_back({"rendezvous, not split: " + size + ", 4 out", sized(bytes, 4, Answer::short_one, early),
                   sized(bytes, 4, Answer::short_one, off)});
  }
  off = usual;
  off.piece_bytes = 0;
  for (const std::size_t bytes : {std::size_t{4} << 20, std::size_t{8} << 20})
    for (const int out : {1, 4})
      all.push_back({"in pieces: " + std::to_string(bytes >> 20) + " MiB, " + std::to_string(out) + " out",
                     sized(bytes, out, Answer::short_one, usual, Source::in_parts),
                     sized(bytes, out, Answer::short_one, off, Source::in_parts)});
  off = usual;
  off.credits_ride = false;
  all.push_back({"credits ride: 4 KiB, 16 out", sized(4096, 16, Answer::echo, usual),
                 sized(4096, 16, Answer::echo, off)});
  off = usual;
  off.keep_blocks = false;
  for (const std::size_t bytes : {4096u, 256u << 10})
    all.push_back({"blocks kept: " + std::to_string(bytes >> 10) + " KiB, 4 out",
                   sized(bytes, 4, Answer::echo, usual), sized(bytes, 4, Answer::echo, off)});
  rdma::ChannelSettings sharing = usual;
  sharing.shared_receives = true;
  for (const std::size_t bytes : {128u, 4096u})
    all.push_back({"receives shared: " + std::to_string(bytes) + " B, 16 out",
                   sized(bytes, 16, Answer::echo, sharing), sized(bytes, 16, Answer::echo, usual)});
  rdma::ChannelSettings brpc_like = usual;
  brpc_like.receive_blocks = 9;  // a window of two
  all.push_back({"window of 25, not 2: 4 KiB, 64 out", sized(4096, 64, Answer::short_one, usual),
                 sized(4096, 64, Answer::short_one, brpc_like)});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--seconds" && more) {
      plan.seconds = std::atof(argv[++i]);
    } else if (word == "--repeat" && more) {
      plan.repeat = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--only" && more) {
      plan.only = argv[++i];
    } else if (word == "--address" && more) {
      plan.address = argv[++i];
    } else {
      std::fprintf(stderr,
                   "usage: rdma_channel_bench [--seconds S] [--repeat N] [--address A] [--only CASE]\n");
      return 2;
    }
  }
  std::printf("%-38s %10s %9s %9s %9s   %s\n", "", "msg/s", "p50 us", "p99 us", "MB/s",
              "a message: frames, signals, acks, wake-ups");
  const auto show = [](const std::string& name, const Traffic& traffic, const Outcome& got) {
    std::printf("%-38s %10.0f %9.2f %9.2f %9.0f   %.3f %.3f %.3f %.4f\n", name.c_str(), got.per_second,
                got.p50_us, got.p99_us, got.per_second * static_cast<double>(traffic.bytes) / 1e6, got.frames,
                got.signalled, got.acks, got.wake_ups);
  };
  for (const Case& each : cases()) {
    if (each.name.find(plan.only) == std::string::npos) continue;
    std::vector<Outcome> with, without;
    for (int i = 0; i < plan.repeat; ++i) {
      with.push_back(measure(plan, each.with));
      if (each.without) without.push_back(measure(plan, *each.without));
    }
    const Outcome usual = median(with);
    show(each.name, each.with, usual);
    if (each.without) {
      const Outcome plain = median(without);
      show("  without it", *each.without, plain);
      std::printf("%-38s %9.2fx %8.2fx\n", "  it buys", usual.per_second / plain.per_second,
                  plain.p50_us / usual.p50_us);
    }
    std::fflush(stdout);
  }
}
