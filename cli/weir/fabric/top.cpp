// `weir fabric top`: what the hosts send and receive, per second.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cli/client/standard_output.hpp"
#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "cli/weir/launch/in_host.hpp"
#include "cli/weir/stat/live_screen.hpp"
#include "cli/weir/stat/stat_text.hpp"
#include "twin/hosts/programs.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::command {
namespace {

using std::chrono::steady_clock;

struct Look {
  hosts::Listing listing;
  steady_clock::time_point when;
};

hosts::Result<Look> look(const std::string& folder) {
  auto listing = hosts::list_hosts(folder);
  if (!listing) return std::unexpected(listing.error());
  return Look{*std::move(listing), steady_clock::now()};
}

// Hosts are not added or removed: both looks have the same.
std::string rates(const Look& before, const Look& now) {
  const double seconds = std::chrono::duration<double>(now.when - before.when).count();
  const auto rate = [&](std::uint64_t earlier, std::uint64_t later) {
    return short_number(static_cast<double>(later - earlier) / seconds);
  };
  std::vector<std::size_t> programs(now.listing.hosts.size());
  for (const auto& program : hosts::programs_in(now.listing)) ++programs[program.host];
  std::vector<std::vector<std::string>> rows{
      {"HOST", "LINK", "SENT B/s", "PACKETS/s", "RECEIVED B/s", "PACKETS/s", "PROGRAMS"}};
  for (std::size_t index = 0; index < now.listing.hosts.size(); ++index) {
    const auto &was = before.listing.hosts[index], &is = now.listing.hosts[index];
    rows.push_back({is.name, is.plugged_in ? "up" : "down", rate(was.sent.bytes, is.sent.bytes),
                    rate(was.sent.packets, is.sent.packets), rate(was.received.bytes, is.received.bytes),
                    rate(was.received.packets, is.received.packets), std::to_string(programs[index])});
  }
  return table_of(rows);
}

}  // namespace

int fabric_top(std::span<const std::string> arguments) {
  std::string name, interval = "1", count;
  const FabricOption options[] = {{.name = "--fabric", .value = &name},
                                  {.name = "--interval", .value = &interval},
                                  {.name = "--count", .value = &count}};
  const auto words = read_fabric_words("top", arguments, options);
  if (!words) return words.error();
  if (words->size() > 1) return complain("fabric top", "it wants one name at most; see weir fabric --help");
  if (!words->empty()) name = words->front();
  char* end = nullptr;
  const double seconds = std::strtod(interval.c_str(), &end);
  if (*end != '\0' || !(seconds >= 0.1 && seconds <= 3600))
    return complain("fabric top", "--interval wants seconds, 0.1 to 3600, not '" + interval + "'");
  const long looks = std::strtol(count.c_str(), &end, 10);
  if (*end != '\0' || (!count.empty() && looks <= 0))
    return complain("fabric top", "--count wants how often, not '" + count + "'");

  const auto folder = find_fabric(name);
  if (!folder) return complain("fabric top", folder.error(), fabric_failed);
  auto before = look(*folder);
  if (!before) return complain("fabric top", before.error().what, fabric_failed);
  const std::chrono::milliseconds pause(static_cast<long>(seconds * 1000));
  std::optional<LiveScreen> screen;
  if (LiveScreen::possible() && count.empty()) screen.emplace();
  for (long shown = 0; count.empty() || shown < looks; ++shown) {
    if (screen) {
      for (const auto until = steady_clock::now() + pause; steady_clock::now() < until;)
        if (screen->key(std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now())) == 'q')
          return 0;
    } else {
      std::this_thread::sleep_for(pause);
    }
    auto now = look(*folder);
    if (!now) {
      screen.reset();
      return complain("fabric top", now.error().what, fabric_failed);
    }
    const std::string text = rates(*before, *now);
    if (screen)
      screen->draw(text);
    else if (const int failed = print_out("fabric top", text, 0, fabric_failed);
             failed != 0 || std::fflush(stdout) != 0)
      return fabric_failed;
    before = std::move(now);
  }
  return 0;
}

}  // namespace weir::command
