// weir-server: reads the options, opens the listeners, runs until told to stop.
// Exit status: 0 stopped as asked, 1 could not run, 2 wrong usage.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>

#include "kv/aof/append_only.hpp"
#include "kv/background.hpp"
#include "kv/core/memory.hpp"
#include "kv/cpu_list.hpp"
#include "kv/gateway/router.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/primary_link.hpp"
#include "kv/replication/replication.hpp"
#include "kv/server/server.hpp"
#include "kv/server/settings_check.hpp"
#include "kv/settings/options.hpp"
#include "kv/stack_limit.hpp"
#include "kv/stop_signals.hpp"
#include "kv/supervisor.hpp"
#include "screen/terminal.hpp"

// Read by jemalloc. It would make an arena for each new thread when that thread first allocates, and crash if
// there is no memory for it; the few threads beside the main one do not contend for one.
extern "C" {
extern const char* malloc_conf;
[[gnu::visibility("default")]] const char* malloc_conf = "narenas:1";
}

namespace {

using namespace weir::kv;

std::string log_path;  // empty: standard output

// Opened for each line, as Redis does, so that a new file replaces one that was moved away.
// Null: it cannot be written.
std::FILE* open_log() { return log_path.empty() ? stdout : std::fopen(log_path.c_str(), "ae"); }

void close_log(std::FILE* file) { file == stdout ? std::fflush(file) : std::fclose(file); }

void write_log(LogLevel level, std::string_view text) {
  std::FILE* const file = open_log();
  if (file == nullptr) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char stamp[64];
  std::strftime(stamp, sizeof stamp, "%d %b %Y %H:%M:%S", &parts);
  std::fprintf(file, "%d:M %s.%03ld %c %.*s\n", static_cast<int>(getpid()), stamp, now.tv_nsec / 1000000,
               ".-*#"[static_cast<int>(level)], static_cast<int>(text.size()), text.data());
  close_log(file);
}

std::int64_t read_clock_us(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

std::int64_t wall_clock_us() { return read_clock_us(CLOCK_REALTIME); }

std::int64_t steady_clock_us() {
  static const std::int64_t ahead_us = wall_clock_us() - read_clock_us(CLOCK_MONOTONIC);
  return ahead_us + read_clock_us(CLOCK_MONOTONIC);
}

// Asio ignores it when the kernel refuses to watch the descriptor of its timers: none would ever end.
void check_timers(asio::io_context& io) {
  bool ended = false;
  asio::steady_timer timer(io, std::chrono::seconds(0));
  timer.async_wait([&ended](const std::error_code&) { ended = true; });
  io.run_for(std::chrono::seconds(1));
  if (!ended) throw std::runtime_error("the system refuses a timer");
  io.restart();
}

// Asks for descriptors for so many clients and some for the server itself; returns how many clients fit.
std::int64_t make_way_for_clients(std::int64_t clients) {
  constexpr rlim_t for_the_server = 32;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return clients;
  const rlim_t wanted = static_cast<rlim_t>(clients) + for_the_server;
  if (limit.rlim_cur >= wanted) return clients;
  rlimit raised{wanted, std::max(limit.rlim_max, wanted)};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return clients;
  raised = {std::min(limit.rlim_max, wanted), limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return clients;
  return static_cast<std::int64_t>(limit.rlim_cur > for_the_server ? limit.rlim_cur - for_the_server : 1);
}

void fit_maxclients(Server& server) {
  std::int64_t& wanted = server.settings.maxclients;
  const std::int64_t possible = make_way_for_clients(wanted);
  if (possible == wanted) return;
  wanted = possible;
  server.log(LogLevel::warning, "the system does not allow more open files, so maxclients is lowered to " +
                                    std::to_string(possible) + "; raise ulimit -n for more");
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int complain(const std::string& text) {
  std::fprintf(stderr, "%s\n", weir::screen::message("weir-server: " + text).c_str());
  return 1;
}

// False: this server has not written one.
bool write_pidfile(const Server& server) {
  if (server.settings.pidfile.empty()) return false;
  std::ofstream file(server.settings.pidfile);
  file << getpid() << '\n';
  if (file.flush()) return true;
  server.log(LogLevel::warning, "cannot write the pid file " + server.settings.pidfile + ": " +
                                    std::strerror(errno) + ". Check --pidfile.");
  return false;
}

// Returns why the server cannot work in its directory; empty: it can.
std::string enter_directory(Settings& settings) {
  if (chdir(settings.dir.c_str()) != 0)
    return "cannot work in " + settings.dir + ": " + std::strerror(errno) + ". Check --dir.";
  std::error_code ignored;
  settings.dir = std::filesystem::current_path(ignored).string();
  return {};
}

// Enters the working directory and opens the log file. Returns what is wrong with them; empty: nothing.
std::string enter_surroundings(Settings& settings) {
  if (std::string wrong = enter_directory(settings); !wrong.empty()) return wrong;
  log_path = settings.logfile;
  std::FILE* const log_file = open_log();
  if (log_file == nullptr)
    return "cannot write the log file " + log_path + ": " + std::strerror(errno) + ". Check --logfile.";
  close_log(log_file);
  return {};
}

Surroundings surroundings_of(const StartOptions& options, const char* program) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::random_device entropy;
  return {wall_clock_us,
          steady_clock_us,
          write_log,
          (std::uint64_t{entropy()} << 32) | entropy(),
          length > 0 ? std::string(path, static_cast<std::size_t>(length)) : program,
          options.config_file,
          environment("LD_LIBRARY_PATH"),
          {},
          make_way_for_clients,
          {}};
}

// Reads the data of an earlier run: from the log if it is on, otherwise from the snapshot. Returns why the
// server cannot run; empty: it can.
std::string load_data(Server& server, const std::function<bool()>& go_on) {
  if (server.gateway != nullptr) return {};
  const auto loaded =
      server.settings.appendonly ? server.append_only->start(go_on) : load_snapshot(server, go_on);
  return loaded ? "" : loaded.error();
}

// The given settings that have no effect here.
std::string without_effect(const Settings& settings) {
  std::string line;
  for (std::string_view name : settings.given_without_effect)
    line.append(line.empty() ? "" : ", ").append(name);
  return line;
}

// Opens the listeners and logs their addresses. Returns why the server cannot run; empty: it can.
std::string begin_listening(Server& server) {
  if (auto passes_on = cluster::pass_on_to_cluster(server); !passes_on) return passes_on.error();
  if (auto listening = server.listen(); !listening) return listening.error();
  if (server.listeners.where().empty()) return std::string(nothing_to_listen_on);
  if (const std::string names = without_effect(server.settings); !names.empty())
    server.log(LogLevel::warning, "without effect here: " + names);
  if (server.gateway != nullptr) {
    server.log(LogLevel::notice,
               "keeps no data: passes commands on to the cluster of " + server.gateway->facts().seed);
  } else if (!server.snapshots->has_save_points() && !server.settings.appendonly) {
    server.log(LogLevel::notice,
               "nothing is saved by itself: give --appendonly yes or --save, or ask with SAVE, BGSAVE or "
               "SHUTDOWN SAVE");
  }
  for (const std::string& where : server.listeners.where())
    server.log(LogLevel::notice, "listening on " + where);
  return {};
}

// --check-config: prints all errors in the options, and those that the server
// would report at its start.
int check_config(StartOptions options, const char* program) {
  std::vector<std::string> wrong = std::move(options.wrong);
  if (std::string why = enter_directory(options.settings); !why.empty()) {
    wrong.push_back(std::move(why));
  } else {
    asio::io_context io(1);
    Surroundings surroundings = surroundings_of(options, program);
    surroundings.log = [](LogLevel, std::string_view) {};
    Server server(io, options.settings, std::move(surroundings));
    std::ranges::move(wrong_with_settings(server), std::back_inserter(wrong));
  }
  for (const std::string& what : wrong) {
    const char* who = what.starts_with("weir-server: ") ? "" : "weir-server: ";
    std::fprintf(stderr, "%s%s\n", who, what.c_str());
  }
  if (const std::string names = without_effect(options.settings); !names.empty())
    std::printf("without effect here: %s\n", names.c_str());
  if (wrong.empty()) std::puts("the settings are right");
  if (std::fflush(stdout) != 0)
    return complain(std::string("cannot write to standard output: ") + std::strerror(errno));
  return wrong.empty() ? 0 : 1;
}

int run(StartOptions options, const char* program) {
  if (const std::string wrong = enter_surroundings(options.settings); !wrong.empty()) return complain(wrong);
  std::optional<Background> background;
  if (options.settings.daemonize) {
    background.emplace();
    if (const auto ended = background->begin()) return *ended;
  }
  std::string not_bound;
  if (const std::string& cpus = options.settings.server_cpulist; !cpus.empty()) not_bound = run_on_cpus(cpus);
  asio::io_context io(1);
  check_timers(io);
  Surroundings surroundings = surroundings_of(options, program);
  Server server(io, std::move(options.settings), std::move(surroundings));
  bool stopping = false;
  StopSignals signals(io, [&](int number) {
    if (stopping) return;
    server.log(LogLevel::warning,
               std::string("received ") + (number == SIGINT ? "SIGINT" : "SIGTERM") + ", stopping");
    server.handle([&] {
      // The second SIGINT comes from somebody who waits at a terminal.
      repl::Shutdown& shutdown = server.replication->shutdown();
      const bool insists = shutdown.waits() && number == SIGINT;
      shutdown.begin({.now = insists});
    });
  });
  server.surroundings.stop = [&] {
    if (std::exchange(stopping, true)) return;
    signals.cancel();
    io.stop();
  };
  fit_maxclients(server);
  if (!not_bound.empty()) server.log(LogLevel::warning, not_bound);
  server.log(LogLevel::notice, "weir-server " WEIR_VERSION " starts, pid " + std::to_string(getpid()));
  if (const std::string wrong = begin_listening(server); !wrong.empty()) {
    server.log(LogLevel::warning, wrong);
    return log_path.empty() ? 1 : complain(wrong);
  }
  if (const std::string wrong = load_data(server, [&] { return io.poll(), !stopping; }); !wrong.empty()) {
    server.log(LogLevel::warning, wrong);
    return log_path.empty() ? 1 : complain(wrong);
  }
  const bool has_pidfile = write_pidfile(server);
  repl::follow_configured_primary(server);
  if (!stopping) server.log(LogLevel::notice, "Ready to accept connections");
  if (background) background->ready();
  const std::string supervisor = environment("NOTIFY_SOCKET");
  if (!stopping) notify_supervisor(supervisor, "READY=1");
  io.run();
  notify_supervisor(supervisor, "STOPPING=1");
  server.shut_down();
  server.append_only->end_as_planned();
  if (has_pidfile) unlink(server.settings.pidfile.c_str());
  server.log(LogLevel::warning, "stopped: weir-server is ready to exit, bye bye...");
  return 0;
}

}  // namespace

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // as in Redis, the server outlives its terminal
  keep_freed_memory();
  if (const std::string wrong = widen_stack(); !wrong.empty()) return complain(wrong);
  const std::vector<std::string> arguments(words + 1, words + count);
  // An option overrides the environment variable.
  const std::string provider = environment("WEIR_RDMA_PROVIDER");
  auto options = parse_options(arguments);
  if (!options) {
    std::fprintf(stderr, "%s\n", weir::screen::message(options.error()).c_str());
    return 2;
  }
  if (!options->answer.empty()) {
    weir::screen::print_wrapped(stdout, options->answer);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    return complain(std::string("cannot write to standard output: ") + std::strerror(errno));
  }
  if (!provider.empty() && options->settings.rdma_provider == 0) {
    if (auto set = assign_setting(options->settings, *find_setting("rdma-provider"), std::array{provider});
        !set) {
      const std::string what = "weir-server: WEIR_RDMA_PROVIDER: " + set.error();
      options->wrong.push_back(what);
      if (!options->check) return std::fprintf(stderr, "%s\n", weir::screen::message(what).c_str()), 2;
    }
  }
  try {
    if (options->check) return check_config(std::move(*options), words[0]);
    return run(std::move(*options), words[0]);
  } catch (const std::exception& problem) {
    const std::string why = std::string("the server cannot go on: ") + problem.what();
    if (!log_path.empty()) write_log(LogLevel::warning, why);
    return complain(why);
  }
}
