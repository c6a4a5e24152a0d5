#include <fmt/core.h>

#include <charconv>
#include <thread>

#include "cli/client/standard_output.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

std::string_view field(std::string_view info, std::string_view name) {
  for (std::size_t at = 0; at < info.size();) {
    const auto end = std::min(info.find("\r\n", at), info.size());
    const auto line = info.substr(at, end - at);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':')
      return line.substr(name.size() + 1);
    at = end + 2;
  }
  return {};
}

long long number(std::string_view text) {
  long long value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The sum over all databases, from lines such as db0:keys=12,expires=0,avg_ttl=0
long long keys_in(std::string_view info) {
  long long keys = 0;
  for (auto at = info.find("keys="); at != std::string_view::npos; at = info.find("keys=", at + 1))
    keys += number(info.substr(at + 5));
  return keys;
}

std::string memory_text(long long bytes) {
  constexpr const char* units[] = {"B", "K", "M", "G", "T"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.2f}{}", value, units[unit]);
}

}  // namespace

int show_statistics(client::Session& session, const Options& options) {
  const std::vector<std::string> info{"INFO"};
  const auto interval = std::chrono::duration<double>(options.interval_s > 0 ? options.interval_s : 1);
  constexpr int lines_between_headings = 20;
  long long requests_before = -1;
  const auto rounds = options.repeat == 1 ? -1 : options.repeat;
  for (long long line = 0; rounds < 0 || line < rounds; ++line) {
    const auto reply = session.ask(info);
    if (!reply) return failed(reply.error());
    if (reply->is_error()) return failed({client::ErrorKind::refused, "ERROR: " + reply->text});
    const std::string_view text = reply->text;
    if (line % lines_between_headings == 0)
      fmt::print(
          "------- data ------ --------------------- load -------------------- - child -\n"
          "keys       mem      clients blocked requests            connections          \n");
    const auto requests = number(field(text, "total_commands_processed"));
    const auto more = fmt::format("{} (+{})", requests, requests_before < 0 ? 0 : requests - requests_before);
    requests_before = requests;
    fmt::print("{:<10} {:<8} {:<7} {:<7} {:<19} {:<12}\n", keys_in(text),
               memory_text(number(field(text, "used_memory"))), field(text, "connected_clients"),
               field(text, "blocked_clients"), more, field(text, "total_connections_received"));
    client::flush_output();
    std::this_thread::sleep_for(interval);
  }
  return 0;
}

}  // namespace weir::shell
