#include "cli/check/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/weir/parse_words.hpp"
#include "screen/terminal.hpp"

namespace weir::check {
namespace {

constexpr const char* description =
    "Checks what a server left on the disk: whether snapshots (dump.rdb) and logs (appendonlydir) of\n"
    "weir-server, Redis or Valkey are whole, what they hold, and where a damaged part begins.\n";
constexpr const char* footer =
    "A FOLDER is a server's data folder, or its appendonlydir. Without --fix nothing is changed.\n\n"
    "Examples:\n"
    "  weir-check /var/lib/weir-server             all files there\n"
    "  weir-check --fix appendonlydir              cut off a last request that a crash left incomplete\n"
    "  weir-check --json dump.rdb | jq .whole      for scripts\n\n"
    "Exit status: 0 all is whole, or was repaired; 1 something is not; 2 the command line is invalid, or a\n"
    "file cannot be read.";

}  // namespace

std::optional<int> read_options(std::span<const std::string> arguments, Options& options) {
  CLI::App app(description, "weir-check");
  app.footer(footer);
  app.set_help_flag("-h,--help", "this text");
  app.add_flag_function(
      "--version", [](std::int64_t) { throw CLI::CallForVersion("weir-check " WEIR_VERSION "\n", 0); },
      "the version");
  app.add_option("FILE|FOLDER", options.path, "what to check")->required()->option_text(" ");
  CLI::Option* fix =
      app.add_flag("--fix", options.fix,
                   "cut a damaged end off a log, after asking; the cut part is kept in a file beside it");
  app.add_flag("-y,--yes", options.yes, "with --fix: do not ask")->needs(fix);
  app.add_flag("--json", options.json, "print JSON, for programs")->excludes(fix);
  std::vector<std::string> words(arguments.rbegin(), arguments.rend());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    screen::print_wrapped(stdout, app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::fputs(version.what(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "weir-check: {}\n", command::explain(app, error));
    return 2;
  }
  return std::nullopt;
}

}  // namespace weir::check
