// `weir collector`: receives gNMI dial-out telemetry from `weir sim --telemetry` or from SONiC switches,
// writes it to a file, and shows the last values to Prometheus.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "cli/weir/command.hpp"
#include "cli/weir/metrics_server.hpp"
#include "cli/weir/module.hpp"
#include "cli/weir/network/collector_store.hpp"
#include "cli/weir/parse_words.hpp"

namespace weir::command {
namespace {

constexpr int collector_misused = 2, collector_not_there = 3, collector_not_written = 4;

constexpr const char* collector_description =
    "Receives the telemetry that switches push (gNMI dial-out, gnmi.sonic.gNMIDialOut). It writes a line of "
    "JSON for\n"
    "each update, and serves the last value of each counter to Prometheus.\n";
constexpr const char* collector_footer =
    "Examples:\n"
    "  weir collector -o counters.jsonl --metrics 127.0.0.1:9105 & sleep 1\n"
    "  weir sim incast.toml --telemetry 127.0.0.1:8081\n"
    "  curl -s http://127.0.0.1:9105/metrics | grep ECN_MARKED\n\n"
    "There is no TLS and no authentication: it listens on the loopback address by default.\n"
    "Ends with Ctrl-C. Exit status: 0; 2 the command line is invalid; 3 it cannot listen, or was built "
    "without\n"
    "gRPC; 4 the output cannot be written.";

class Collector {
 public:
  explicit Collector(int out) : out_(out) {}

  const CollectorStore& store() const { return store_; }

  static bool receive(void* self, const TelemetryNotification* notification) {
    return static_cast<Collector*>(self)->take(*notification);
  }

 private:
  // Called from gRPC's threads. Returns false if the lines were not written, so that the sender keeps them.
  bool take(const TelemetryNotification& notification) {
    const std::lock_guard lock(mutex_);
    if (!store_.is_new(notification)) return true;
    const std::string lines = json_lines(notification);
    for (std::size_t written = 0; written < lines.size();) {
      const ssize_t took = ::write(out_, lines.data() + written, lines.size() - written);
      if (took < 0 && errno == EINTR) continue;
      if (took < 0) {
        if (!failed_)
          complain("collector", fmt::format("cannot write: {}; refusing until it can", std::strerror(errno)));
        failed_ = true;
        return false;
      }
      written += static_cast<std::size_t>(took);
    }
    failed_ = false;
    store_.keep(notification);
    return true;
  }

  const int out_;
  std::mutex mutex_;  // keeps the lines of one notification together
  bool failed_ = false;
  CollectorStore store_;
};

struct CollectorCommand {
  std::string listen = "127.0.0.1:8081", metrics, output;
  std::optional<HostPort> metrics_at;
};

// Runs until Ctrl-C, or until the metrics page cannot be served. The signals are blocked in all threads.
int serve(const CollectorCommand& command, Collector& collector, const sigset_t& ends) {
  std::atomic<bool> no_page{false};  // the page's thread; release before its signal, acquire after the wait
  if (command.metrics_at)
    std::thread([&] {
      const auto trouble = serve_metrics(
          *command.metrics_at, [&] { return collector.store().metrics(); },
          [](const std::string& where) {
            fmt::print(stderr, "weir collector: metrics on http://{}/metrics\n", where);
          });
      complain("collector", trouble, collector_not_there);
      no_page.store(true, std::memory_order_release);
      ::kill(::getpid(), SIGTERM);
    }).detach();
  int signal = 0;
  sigwait(&ends, &signal);
  return no_page.load(std::memory_order_acquire) ? collector_not_there : 0;
}

int run_collector(const CollectorCommand& command) {
  int out = STDOUT_FILENO;
  if (!command.output.empty()) {
    out = ::open(command.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (out < 0)
      return complain("collector", fmt::format("cannot write {}: {}", command.output, std::strerror(errno)),
                      collector_not_written);
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const auto function = module_function(telemetry_module_file, telemetry_module_function);
  if (!function)
    return complain("collector", "cannot receive telemetry: " + function.error(), collector_not_there);
  const auto& module = *reinterpret_cast<TelemetryModuleFunction*>(*function)();

  Collector collector(out);
  char bound[256] = "", trouble[256] = "";
  void* receiver =
      module.listen(command.listen.c_str(), &collector, Collector::receive, bound, trouble, sizeof bound);
  if (receiver == nullptr) return complain("collector", trouble, collector_not_there);
  fmt::print(stderr, "weir collector: telemetry on {}\n", bound);
  const int status = serve(command, collector, ends);
  module.stop_listening(receiver);
  std::fflush(nullptr);
  ::_exit(status);  // the page's thread may be sending a response
}

}  // namespace

int collector(std::span<const std::string> arguments) {
  CollectorCommand command;
  CLI::App app(collector_description, "weir collector");
  app.footer(collector_footer);
  app.add_option("-l,--listen", command.listen, "address for telemetry; port 0: a free one, which is printed")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  auto* metrics =
      app.add_option("-m,--metrics", command.metrics, "address for Prometheus, GET /metrics; port 0 likewise")
          ->type_name("HOST:PORT");
  app.add_option("-o,--output", command.output, "append the lines to this file (default: standard output)")
      ->type_name("FILE");
  if (const auto ended = parse_words(app, "collector", arguments)) return *ended;
  const auto listen_at = read_host_port(command.listen), metrics_at = read_host_port(command.metrics);
  if (!listen_at) return complain("collector", "--listen " + listen_at.error(), collector_misused);
  if (metrics->count() != 0) {
    if (!metrics_at) return complain("collector", "--metrics " + metrics_at.error(), collector_misused);
    command.metrics_at = *metrics_at;
  }
  return run_collector(command);
}

}  // namespace weir::command
