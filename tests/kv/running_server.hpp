// The real server in this process, on a thread of its own.
//
// Tests talk to it only through its sockets; run() executes a function on its thread. Its clocks are those of
// the system plus an offset that tests change, until a test stops them.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "kv/aof/append_only.hpp"
#include "kv/gateway/router.hpp"
#include "kv/server/server.hpp"
#include "tests/kv/wire_client.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::kv::testing {

using ScratchFolder = test::ScratchDirectory;

inline Settings quiet_settings() {
  Settings settings;
  settings.port = 0;
  return settings;
}

class RunningServer {
 public:
  // Listens on a Unix socket in its own folder, and on whatever else `settings` ask for.
  explicit RunningServer(Settings settings = quiet_settings(), Disk disk = {}) : io_(1) {
    if (settings.unixsocket.empty()) settings.unixsocket = folder_.file("s");
    Surroundings surroundings;
    surroundings.steady_us = [this] { return steady_us(); };
    surroundings.clock_us = [this] { return steady_us() + set_by_us_.load(); };
    surroundings.log = [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(log_mutex_);
      log_.append(text).append(1, '\n');
    };
    surroundings.seed = 4711;
    surroundings.stop = [this] { asked_to_stop_ = true; };
    surroundings.disk = std::move(disk);
    server_ = std::make_unique<Server>(io_, std::move(settings), std::move(surroundings));
    path_ = server_->settings.unixsocket;
    if (server_->settings.appendonly) {
      if (auto done = server_->append_only->start([] { return true; }); !done)
        throw std::runtime_error(done.error());
    }
    if (auto done = cluster::pass_on_to_cluster(*server_); !done) throw std::runtime_error(done.error());
    if (auto done = server_->listen(); !done) throw std::runtime_error(done.error());
    thread_ = std::thread([this] { io_.run(); });
  }
  WireClient connect() { return WireClient::unix_socket(path_); }
  const std::string& path() const { return path_; }

  // Runs `work(server)` on the server's thread and returns what it returns.
  template <class Work>
  auto run(Work work) {
    using Result = decltype(work(*server_));
    std::promise<Result> done;
    asio::post(io_, [&] {
      if constexpr (std::is_void_v<Result>) {
        work(*server_);
        done.set_value();
      } else {
        done.set_value(work(*server_));
      }
    });
    return done.get_future().get();
  }
  ~RunningServer() {
    asio::post(io_, [this] { io_.stop(); });
    thread_.join();
    server_.reset();
  }

  // Whether the server has decided to end; here it goes on.
  bool asked_to_stop() const { return asked_to_stop_; }

  void advance_ms(std::int64_t ms) { offset_us_ += ms * 1000; }
  // Sets the clock of the system: time of the day jumps, and nothing else.
  void set_clock_by_ms(std::int64_t ms) { set_by_us_ += ms * 1000; }
  // From now on time passes only by advance_ms() and pass_ms(): for what must not expire because a test is
  // slow.
  void stop_clock() { stopped_us_ = running_us(); }
  std::string log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

 private:
  static std::int64_t read_us(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
  }
  static std::int64_t running_us() {
    static const std::int64_t ahead_us = read_us(CLOCK_REALTIME) - read_us(CLOCK_MONOTONIC);
    return ahead_us + read_us(CLOCK_MONOTONIC);
  }
  std::int64_t steady_us() const {
    const auto stopped = stopped_us_.load();
    return (stopped != 0 ? stopped : running_us()) + offset_us_.load();
  }

  ScratchFolder folder_;
  asio::io_context io_;
  std::atomic<std::int64_t> offset_us_ = 0;
  std::atomic<std::int64_t> stopped_us_ = 0;  // 0: it runs
  std::atomic<std::int64_t> set_by_us_ = 0;
  std::atomic<bool> asked_to_stop_ = false;
  std::mutex log_mutex_;
  std::string log_;
  std::unique_ptr<Server> server_;
  std::string path_;
  std::thread thread_;
};

// Waits until the server has that many clients.
inline void await_clients(RunningServer& server, std::size_t count) {
  while (server.run([](Server& s) { return s.clients.size(); }) != count) std::this_thread::yield();
}

// Advances the server's clocks and does what is due then.
inline void pass_ms(RunningServer& server, std::int64_t ms) {
  server.advance_ms(ms);
  server.run([](Server& s) { s.tick(); });
}

// Why a server with such settings cannot listen.
inline std::string listen_error(Settings settings) {
  try {
    const RunningServer server(std::move(settings));
  } catch (const std::exception& problem) {
    return problem.what();
  }
  return "it listens";
}

}  // namespace weir::kv::testing
