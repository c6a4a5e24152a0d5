#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "cli/shell/key_scan.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

constexpr std::size_t shown_most = 16;  // as in redis-cli

struct HotKey {
  int counter;
  std::string name;
};

// How often each key is used, by the server's LFU counters; 0 for a key that has gone meanwhile.
client::Result<std::vector<int>> counters_of(client::Session& session, const std::vector<std::string>& keys) {
  std::vector<client::Arguments> questions;
  for (const auto& key : keys) questions.push_back({"OBJECT", "FREQ", key});
  auto replies = session.ask_all(questions);
  if (!replies) return std::unexpected(std::move(replies.error()));
  std::vector<int> counters;
  for (const auto& reply : *replies) {
    // Without an LFU policy all keys get this error.
    if (reply.is_error()) return client::fail(client::ErrorKind::refused, "Error: " + reply.text);
    int counter = 0;
    std::from_chars(reply.text.data(), reply.text.data() + reply.text.size(), counter);
    counters.push_back(counter);
  }
  return counters;
}

// Keeps the hottest keys; among equals the first ones stay in front.
void note(std::vector<HotKey>& hottest, int counter, const std::string& key) {
  const auto at = std::ranges::upper_bound(hottest, counter, std::ranges::greater{}, &HotKey::counter);
  if (counter == 0 || static_cast<std::size_t>(at - hottest.begin()) == shown_most) return;
  fmt::print("Hot key '{}' found so far with counter {}\n", quoted(key), counter);
  hottest.insert(at, {counter, key});
  if (hottest.size() > shown_most) hottest.pop_back();
}

}  // namespace

int find_hot_keys(client::Session& session, const Options& options) {
  fmt::print(
      "\n# Scanning the entire keyspace to find hot keys: those with the highest access frequency. "
      "With -i 0.1 it waits between scans.\n\n");
  KeyScan scan(session, options.pattern, options.scan_count);
  std::uint64_t sampled = 0;
  std::vector<HotKey> hottest;
  while (!scan.done()) {
    const auto keys = scan.next();
    if (!keys) return failed(keys.error());
    const auto counters = counters_of(session, *keys);
    if (!counters) return failed(counters.error());
    sampled += keys->size();
    for (std::size_t i = 0; i < keys->size(); ++i) note(hottest, (*counters)[i], (*keys)[i]);
    if (options.interval_s > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
  }
  fmt::print("\n-------- summary -------\n\nSampled {} keys in the keyspace!\n", sampled);
  for (const auto& key : hottest)
    fmt::print("hot key found with counter: {}\tkeyname: {}\n", key.counter, quoted(key.name));
  return 0;
}

}  // namespace weir::shell
