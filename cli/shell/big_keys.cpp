#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <thread>

#include "cli/shell/key_scan.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

struct TypeTotals {
  std::string_view type;     // as in TYPE's replies
  std::string_view measure;  // the command that counts its elements
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

// How to ask for the size of a key: in elements, or in bytes of the server's memory.
using AskSize = std::function<client::Arguments(const TypeTotals&, const std::string& key)>;

// The replies of TYPE for all keys.
client::Result<std::vector<client::Reply>> types_of(client::Session& session,
                                                    const std::vector<std::string>& keys) {
  std::vector<client::Arguments> questions;
  for (const auto& key : keys) questions.push_back({"TYPE", key});
  return session.ask_all(questions);
}

void note(TypeTotals& entry, const std::string& key, std::uint64_t size) {
  ++entry.keys;
  entry.total += size;
  if (size <= entry.biggest) return;
  entry.biggest = size;
  entry.biggest_key = key;
  fmt::print("Biggest {:<6} found so far '{}' with {} {}\n", entry.type, quoted(key), size, entry.unit);
}

// Asks about all keys of a SCAN at once: a round trip for each would dominate the time.
client::Result<void> measure(client::Session& session, const std::vector<std::string>& keys,
                             const AskSize& ask_size, std::span<TypeTotals> totals) {
  auto types = types_of(session, keys);
  if (!types) return std::unexpected(std::move(types.error()));
  std::vector<client::Arguments> questions;
  std::vector<std::pair<TypeTotals*, const std::string*>> asked;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto entry = std::ranges::find(totals, (*types)[i].text, &TypeTotals::type);
    if (entry == totals.end()) continue;  // the key has gone meanwhile
    questions.push_back(ask_size(*entry, keys[i]));
    asked.emplace_back(&*entry, &keys[i]);
  }
  auto sizes = session.ask_all(questions);
  if (!sizes) return std::unexpected(std::move(sizes.error()));
  for (std::size_t i = 0; i < asked.size(); ++i)
    note(*asked[i].first, *asked[i].second, number_in((*sizes)[i]));
  return {};
}

int find_biggest(client::Session& session, const Options& options, const AskSize& ask_size,
                 std::span<TypeTotals> totals) {
  fmt::print(
      "\n# Scanning the entire keyspace to find biggest keys as well as\n# average sizes per key type. "
      "With -i 0.1 it waits between scans.\n\n");
  KeyScan scan(session, options.pattern, options.scan_count);
  std::uint64_t sampled = 0;
  while (!scan.done()) {
    const auto keys = scan.next();
    if (!keys) return failed(keys.error());
    sampled += keys->size();
    if (auto measured = measure(session, *keys, ask_size, totals); !measured) return failed(measured.error());
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

}  // namespace

int find_big_keys(client::Session& session, const Options& options) {
  TypeTotals totals[] = {
      {"string", "STRLEN", "bytes", 0, 0, 0, {}}, {"list", "LLEN", "items", 0, 0, 0, {}},
      {"set", "SCARD", "members", 0, 0, 0, {}},   {"hash", "HLEN", "fields", 0, 0, 0, {}},
      {"zset", "ZCARD", "members", 0, 0, 0, {}},  {"stream", "XLEN", "entries", 0, 0, 0, {}}};
  const auto count = [](const TypeTotals& type, const std::string& key) {
    return client::Arguments{std::string(type.measure), key};
  };
  return find_biggest(session, options, count, totals);
}

int find_memory_keys(client::Session& session, const Options& options) {
  TypeTotals totals[] = {{"string", {}, "bytes", 0, 0, 0, {}}, {"list", {}, "bytes", 0, 0, 0, {}},
                         {"set", {}, "bytes", 0, 0, 0, {}},    {"hash", {}, "bytes", 0, 0, 0, {}},
                         {"zset", {}, "bytes", 0, 0, 0, {}},   {"stream", {}, "bytes", 0, 0, 0, {}}};
  const auto usage = [&](const TypeTotals&, const std::string& key) {
    client::Arguments question{"MEMORY", "USAGE", key};
    if (options.memory_samples)
      question.insert(question.end(), {"SAMPLES", std::to_string(*options.memory_samples)});
    return question;
  };
  return find_biggest(session, options, usage, totals);
}

}  // namespace weir::shell
