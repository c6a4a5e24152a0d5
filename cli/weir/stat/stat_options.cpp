#include "cli/weir/stat/stat_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

#include "cli/weir/parse_words.hpp"
#include "cli/weir/stat/stat_text.hpp"

namespace weir::command {
namespace {

constexpr const char* stat_description =
    "Shows what the software NIC of each running program does: operations, bytes, doorbells, wake-ups, "
    "completions,\n"
    "RNRs, retries and errors, for each process and each queue pair. The programs are neither slowed nor "
    "changed.\n\n"
    "On a terminal it refreshes like top, with a history of the operations. Keys: q quits, h explains the "
    "columns,\n< and > choose the column to sort by, p hides queue pairs, arrows scroll.\n"
    "SERVE and the byte columns also count what peers do to a process: the target of an RDMA WRITE takes no "
    "part in it.\n";
constexpr const char* stat_footer =
    "Examples:\n"
    "  weir stat                                     a live table, busiest programs first\n"
    "  weir stat --sort rnr                          which program waits for receives?\n"
    "  weir stat --once --json                       totals so far, for a script\n"
    "  weir stat --listen 127.0.0.1:9106             for Prometheus\n\n"
    "Exit status: 0; 1 the counters cannot be reached, it cannot listen, or standard output cannot be "
    "written;\n"
    "2 the command line is invalid.";

// CLI11's own check has a range of 300 digits in its message.
std::string why_no_count(const std::string& text) {
  unsigned long count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool good = error == std::errc{} && end == text.data() + text.size() && count != 0;
  return good ? "" : "wants a whole number above 0, not '" + text + "'";
}

}  // namespace

std::expected<StatOptions, StatRefusal> read_stat_options(std::span<const std::string> arguments) {
  StatOptions options;
  CLI::App app(stat_description, "weir stat");
  app.footer(stat_footer);
  app.set_help_flag("-h,--help", "this text");
  std::string listen_at;
  std::vector<std::string> keys;
  for (const std::string_view key : sort_keys()) keys.emplace_back(key);
  std::string columns = "column to sort by (default ops):\n";
  for (const std::string& key : keys) columns += (&key == keys.data() ? "" : " ") + key;
  app.add_flag("-1,--once", options.once, "show the totals so far, and exit");
  app.add_option("-i,--interval", options.interval_s, "between refreshes, 0.05 or more (default 1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 86400.0).description(""));
  app.add_option("-n,--count", options.count, "exit after this many refreshes")
      ->type_name("COUNT")
      ->check(why_no_count);
  app.add_option("-s,--sort", options.sort, columns)
      ->type_name("COLUMN")
      ->check(CLI::IsMember(keys).description(""));
  app.add_option("-p,--pid", options.pids, "only these processes; may be repeated")
      ->type_name("PID")
      ->delimiter(',');
  app.add_flag("-P,--processes", options.processes_only, "no lines for queue pairs");
  auto* json = app.add_flag("-j,--json", options.json, "print one JSON object per refresh, for programs");
  auto* prometheus = app.add_flag("--prometheus", options.prometheus,
                                  "print the totals in Prometheus's text format, and exit");
  auto* listen = app.add_option("--listen", listen_at,
                                "serve /metrics there for Prometheus, until stopped (port 0: a free one)")
                     ->type_name("HOST:PORT");
  app.add_option("--lib-dir", options.library_directory,
                 "where Weir's libibverbs.so.1 is (default: found beside this program)")
      ->type_name("DIR");
  json->excludes(prometheus)->excludes(listen);
  prometheus->excludes(listen);
  std::vector<std::string> words(arguments.rbegin(), arguments.rend());
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    return std::unexpected(StatRefusal{0, app.help()});
  } catch (const CLI::ParseError& error) {
    return std::unexpected(StatRefusal{2, explain(app, error)});
  }
  if (listen->count() != 0) {
    const auto address = read_host_port(listen_at);
    if (!address)
      return std::unexpected(StatRefusal{2, "--listen " + address.error() + "; see weir stat --help"});
    options.listen = *address;
  }
  return options;
}

}  // namespace weir::command
