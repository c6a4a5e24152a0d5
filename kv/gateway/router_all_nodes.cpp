// The router's side of commands that go to every primary: it joins their replies into one. If one node's
// reply is an error so is the joined one, because the command was not carried out everywhere; it names the
// node.
#include <algorithm>
#include <array>
#include <utility>

#include "kv/effects/request_text.hpp"
#include "kv/gateway/error_reply.hpp"
#include "kv/gateway/reply_reader.hpp"
#include "kv/gateway/router.hpp"
#include "kv/server/client.hpp"

namespace weir::kv::cluster {

namespace {

struct NodesReply {
  std::string from;  // the node
  std::string reply;
};
using Replies = std::vector<NodesReply>;

// Nothing if the replies are not what the command returns.
using Joined = std::optional<std::string>;

Joined sum(const Replies& replies) {
  std::int64_t total = 0;
  for (const NodesReply& one : replies) {
    const auto number = ReplyReader(one.reply).integer();
    if (!number) return std::nullopt;
    total += *number;
  }
  return ":" + std::to_string(total) + "\r\n";
}

Joined the_same(const Replies& replies) {
  for (const NodesReply& one : replies)
    if (one.reply != replies.front().reply) return std::nullopt;
  return replies.front().reply;
}

// For lists of numbers of equal length: the minimum at each position.
Joined least(const Replies& replies) {
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

Joined join(const Command& command, const Replies& replies) {
  if (command.name == "dbsize") return sum(replies);
  if (command.container == "script" && command.name == "exists") return least(replies);
  return the_same(replies);
}

std::string one_reply(const Command& command, const Replies& replies) {
  const auto failed = std::ranges::find_if(replies, [](const auto& one) { return one.reply.front() == '-'; });
  if (failed != replies.end()) {
    std::string_view error = failed->reply;
    error.remove_prefix(1);
    error.remove_suffix(2);
    return error_reply(std::string(error) + " (from " + failed->from + "; other nodes may have run it)");
  }
  if (Joined joined = join(command, replies)) return *std::move(joined);
  return error_reply("ERR the nodes' replies to " + in_capitals(command) + " contradict each other");
}

}  // namespace

Router::Waits Router::find_all_links(Protocol protocol, Lane& lane) {
  std::string problem = map_.known() ? "some slots have no node" : "the slots' nodes are not known yet";
  bool all = map_.slots_covered() == slot_count;
  map_.each_node([&](Node& node) {
    if (!node.has_slots) return;
    std::string why;
    NodeLink* const link = link_to(node, protocol, why);
    if (link != nullptr && link->ready() && link->has_room()) return next_.links.push_back(link);
    all = false;
    if (link != nullptr) why = node.problem.empty() ? "it does not answer" : node.problem;
    problem = node.address.text() + ": " + why;
    if (!node.linked()) reader_.refresh_soon();
  });
  if (all) return Waits::no;
  next_.links.clear();
  reader_.refresh_soon();
  return wait_for_node(lane, std::move(problem));
}

void Router::send_to_all(Client& client, const Command& command, Arguments words) {
  struct Gathered {
    Request waited;  // the client's request
    std::vector<std::string> nodes;
    Replies replies;
  };
  const auto gathered = std::make_shared<Gathered>();
  gathered->waited.lane = client.lane;
  gathered->waited.number = client.lane->enter(next_.muted);
  for (const NodeLink* link : next_.links) gathered->nodes.push_back(link->address().text());
  // A lane without a client puts the replies into the order of the nodes.
  const auto lane = std::make_shared<Lane>(nullptr, [this, gathered, &command](std::string_view reply) {
    Replies& replies = gathered->replies;
    replies.push_back({gathered->nodes[replies.size()], std::string(reply)});
    if (replies.size() == gathered->nodes.size()) answer(gathered->waited, one_reply(command, replies));
  });
  request_.clear();
  append_request(request_, words);
  for (NodeLink* link : next_.links) {
    Request waited;
    waited.lane = lane;
    waited.number = lane->enter(false);
    link->send(std::move(waited), request_, false);
    will_send(*link);
  }
}

}  // namespace weir::kv::cluster
