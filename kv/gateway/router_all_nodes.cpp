// The router's side of commands that more than one node answers: those to all primaries, whose replies are
// joined into one (joined_replies.hpp), and SCAN, which visits one primary after another (scan_cursor.hpp).
#include <utility>

#include "kv/clients/client.hpp"
#include "kv/gateway/joined_replies.hpp"
#include "kv/gateway/router.hpp"
#include "kv/gateway/scan_cursor.hpp"
#include "kv/resp/request_text.hpp"

namespace weir::kv::cluster {

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
    std::vector<NodesReply> replies;
  };
  const auto gathered = std::make_shared<Gathered>();
  gathered->waited.lane = client.lane;
  gathered->waited.number = client.lane->enter(next_.muted);
  for (const NodeLink* link : next_.links) gathered->nodes.push_back(link->address().text());
  // A lane without a client puts the replies into the order of the nodes.
  const auto lane = std::make_shared<Lane>(nullptr, [this, gathered, &command](std::string_view reply) {
    std::vector<NodesReply>& replies = gathered->replies;
    replies.push_back({gathered->nodes[replies.size()], std::string(reply)});
    if (replies.size() == gathered->nodes.size())
      answer(gathered->waited, joined_reply(command, replies, server_.random()));
  });
  request_.clear();
  append_request(request_, words);
  for (NodeLink* link : next_.links) {
    if (may_write(command)) client.lane->writes.note(link->number);
    Request waited;
    waited.lane = lane;
    waited.number = lane->enter(false);
    link->send(std::move(waited), request_, false);
    will_send(*link);
  }
}

// The reply's cursor is the node's own; the client gets one that names the node as well, or the next node.
void Router::send_scan(Client& client, Arguments words) {
  const ScanCursor cursor = *ScanCursor::read(words[1].text);
  const std::uint16_t number = map_.node(next_.link->address())->number;
  if (number != cursor.node && cursor.at != 0) {
    client.reply.error("ERR the node that this cursor belongs to has no slots any more: start again from 0");
    return;
  }
  const auto to_client = std::make_shared<Request>();
  to_client->lane = client.lane;
  to_client->number = client.lane->enter(next_.muted);
  Request waited;
  waited.lane = std::make_shared<Lane>(nullptr, [this, number, to_client](std::string_view reply) {
    const Node* const next = map_.from(static_cast<std::uint16_t>(number + 1));
    answer(*to_client, scan_reply(reply, number, next == nullptr ? std::uint16_t{0} : next->number));
  });
  waited.number = waited.lane->enter(false);
  const std::string at = std::to_string(cursor.at);
  request_.clear();
  append_request_head(request_, words.size());
  append_request_word(request_, words[0].text);
  append_request_word(request_, at);
  for (const Argument& word : words.subspan(2)) append_request_word(request_, word.text);
  next_.link->send(std::move(waited), request_, false);
  will_send(*next_.link);
}

}  // namespace weir::kv::cluster
