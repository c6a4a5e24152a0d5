#include "kv/gateway/joined_replies.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "kv/gateway/error_reply.hpp"
#include "kv/gateway/reply_reader.hpp"
#include "kv/gateway/scan_cursor.hpp"

namespace weir::kv::cluster {

namespace {

using Replies = std::span<const NodesReply>;

// Nothing if the replies are not what the command returns.
using Joined = std::optional<std::string>;

Joined sum(Replies replies) {
  std::int64_t total = 0;
  for (const NodesReply& one : replies) {
    const auto number = ReplyReader(one.reply).integer();
    if (!number) return std::nullopt;
    total += *number;
  }
  return ":" + std::to_string(total) + "\r\n";
}

Joined the_same(Replies replies) {
  for (const NodesReply& one : replies)
    if (one.reply != replies.front().reply) return std::nullopt;
  return replies.front().reply;
}

// For lists of numbers of equal length: the minimum at each position.
Joined least(Replies replies) {
  std::vector<std::int64_t> smallest;
  for (const NodesReply& one : replies) {
    ReplyReader reader(one.reply);
    const auto count = reader.array();
    if (!count || *count < 0) return std::nullopt;
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < *count; ++i) {
      const auto number = reader.integer();
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    if (&one == &replies.front()) smallest = numbers;
    if (numbers.size() != smallest.size()) return std::nullopt;
    std::ranges::transform(smallest, numbers, smallest.begin(),
                           [](auto a, auto b) { return std::min(a, b); });
  }
  std::string text = "*" + std::to_string(smallest.size()) + "\r\n";
  for (const std::int64_t number : smallest) text += ":" + std::to_string(number) + "\r\n";
  return text;
}

// Lists, one behind the other.
Joined all_of(Replies replies) {
  std::int64_t total = 0;
  std::string items;
  for (const NodesReply& one : replies) {
    ReplyReader reader(one.reply);
    const auto count = reader.array();
    if (!count || *count < 0) return std::nullopt;
    total += *count;
    items += reader.rest();
  }
  return "*" + std::to_string(total) + "\r\n" + items;
}

// Any of the replies that are not null; null if all are.
Joined any_of(Replies replies, std::uint64_t random) {
  std::vector<const std::string*> found;
  for (const NodesReply& one : replies)
    if (one.reply.front() == '$' && !one.reply.starts_with("$-1")) found.push_back(&one.reply);
  return found.empty() ? replies.front().reply : *found[random % found.size()];
}

Joined join(const Command& command, Replies replies, std::uint64_t random) {
  if (command.name == "dbsize") return sum(replies);
  if (command.name == "keys") return all_of(replies);
  if (command.name == "randomkey") return any_of(replies, random);
  if (command.container == "script" && command.name == "exists") return least(replies);
  return the_same(replies);
}

}  // namespace

std::string joined_reply(const Command& command, std::span<const NodesReply> replies, std::uint64_t random) {
  const auto failed = std::ranges::find_if(replies, [](const auto& one) { return one.reply.front() == '-'; });
  if (failed != replies.end()) {
    std::string_view error = failed->reply;
    error.remove_prefix(1);
    error.remove_suffix(2);
    return error_reply(std::string(error) + " (from " + failed->from + "; other nodes may have run it)");
  }
  if (Joined joined = join(command, replies, random)) return *std::move(joined);
  return error_reply("ERR the nodes' replies to " + in_capitals(command) + " contradict each other");
}

std::string scan_reply(std::string_view reply, std::uint16_t number, std::uint16_t next) {
  ReplyReader reader(reply);
  if (reply.starts_with('-')) return std::string(reply);
  const auto parts = reader.array();
  const auto text = reader.text();
  const auto at = read_cursor(text.value_or("none"));
  if (parts != 2 || !at) return error_reply("ERR the node's reply to SCAN is not one");
  if (*at > ScanCursor::largest_at)
    return error_reply("ERR the node's cursor is too large to pass through a gateway: scan the node itself");
  const std::uint64_t cursor = *at == 0 ? next : ScanCursor{*at, number}.packed();
  const std::string digits = std::to_string(cursor);
  return "*2\r\n$" + std::to_string(digits.size()) + "\r\n" + digits + "\r\n" + std::string(reader.rest());
}

}  // namespace weir::kv::cluster
