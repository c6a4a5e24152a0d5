#include <fmt/core.h>

#include <charconv>
#include <thread>

#include "cli/shell/key_scan.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

struct TypeTotals {
  std::string_view type;     // as TYPE names it
  std::string_view measure;  // the command that tells the size
  std::string_view unit;
  std::uint64_t keys = 0;
  std::uint64_t total = 0;
  std::uint64_t biggest = 0;
  std::string biggest_key;
};

std::uint64_t number_in(const client::Reply& reply) {
  std::uint64_t number = 0;
  std::from_chars(reply.text.data(), reply.text.data() + reply.text.size(), number);
  return number;
}

client::Result<void> measure(client::Session& session, const std::vector<std::string>& keys,
                             std::span<TypeTotals> totals) {
  for (const auto& key : keys) {
    const std::vector<std::string> ask_type{"TYPE", key};
    auto type = session.ask(ask_type);
    if (!type) return std::unexpected(std::move(type.error()));
    for (auto& entry : totals) {
      if (entry.type != type->text) continue;
      const std::vector<std::string> ask_size{std::string(entry.measure), key};
      auto size = session.ask(ask_size);
      if (!size) return std::unexpected(std::move(size.error()));
      ++entry.keys;
      entry.total += number_in(*size);
      if (number_in(*size) <= entry.biggest) continue;
      entry.biggest = number_in(*size);
      entry.biggest_key = key;
      fmt::print("Biggest {:<6} found so far '{}' with {} {}\n", entry.type, quoted(key), entry.biggest,
                 entry.unit);
    }
  }
  return {};
}

}  // namespace

int find_big_keys(client::Session& session, const Options& options) {
  fmt::print(
      "\n# Scanning the entire keyspace to find biggest keys as well as\n# average sizes per key type. "
      "With -i 0.1 it waits between scans.\n\n");
  TypeTotals totals[] = {
      {"string", "STRLEN", "bytes", 0, 0, 0, {}}, {"list", "LLEN", "items", 0, 0, 0, {}},
      {"set", "SCARD", "members", 0, 0, 0, {}},   {"hash", "HLEN", "fields", 0, 0, 0, {}},
      {"zset", "ZCARD", "members", 0, 0, 0, {}},  {"stream", "XLEN", "entries", 0, 0, 0, {}}};
  KeyScan scan(session, options.pattern, options.scan_count);
  std::uint64_t sampled = 0;
  while (!scan.done()) {
    const auto keys = scan.next();
    if (!keys) return failed(keys.error());
    sampled += keys->size();
    if (auto measured = measure(session, *keys, totals); !measured) return failed(measured.error());
    if (options.interval_s > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
  }
  fmt::print("\n-------- summary -------\n\nSampled {} keys in the keyspace!\n\n", sampled);
  for (const auto& entry : totals)
    if (entry.keys)
      fmt::print("Biggest {:>6} found '{}' has {} {}\n", entry.type, quoted(entry.biggest_key), entry.biggest,
                 entry.unit);
  fmt::print("\n");
  for (const auto& entry : totals)
    fmt::print("{} {}s with {} {} ({:.2f}% of keys, avg size {:.2f})\n", entry.keys, entry.type, entry.total,
               entry.unit,
               sampled ? 100.0 * static_cast<double>(entry.keys) / static_cast<double>(sampled) : 0.0,
               entry.keys ? static_cast<double>(entry.total) / static_cast<double>(entry.keys) : 0.0);
  return 0;
}

}  // namespace weir::shell
