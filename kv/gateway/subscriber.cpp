#include "kv/gateway/subscriber.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kv/gateway/error_reply.hpp"
#include "kv/gateway/reply_reader.hpp"
#include "kv/resp/request_text.hpp"

namespace weir::kv::cluster {

namespace {

using Kind = Subscriber::Kind;

struct Verbs {
  std::string_view subscribe, unsubscribe, message;
  std::string_view asks, ends;
};
// Indexed by Kind.
constexpr Verbs verbs[] = {
    {"subscribe", "unsubscribe", "message", "SUBSCRIBE", "UNSUBSCRIBE"},
    {"psubscribe", "punsubscribe", "pmessage", "PSUBSCRIBE", "PUNSUBSCRIBE"},
    {"ssubscribe", "sunsubscribe", "smessage", "SSUBSCRIBE", "SUNSUBSCRIBE"},
};
const Verbs& verbs_of(Kind kind) { return verbs[static_cast<std::size_t>(kind)]; }

}  // namespace

bool Subscriber::subscribe(std::uint64_t client, Kind kind, const NodeAddress& node,
                           const std::vector<std::string_view>& topics) {
  Waiting waiting;
  for (const std::string_view text : topics) {
    Topic topic(kind, text);
    const auto [at, is_new] = topics_.try_emplace(topic);
    Place& place = at->second;
    if (!place.waiting.insert(client).second) continue;  // the request names the topic twice
    if (!place.confirmed) ++waiting.missing;
    waiting.topics.push_back(topic);
    if (!is_new) continue;
    place.node = kind == Kind::shard || !ears_.contains(home_) ? node : home_;
    if (kind != Kind::shard) home_ = place.node;
    ask(topic, place);
  }
  const bool all_confirmed = waiting.missing == 0;
  if (all_confirmed) {
    for (const Topic& topic : waiting.topics) topics_.at(topic).waiting.erase(client);
    return true;
  }
  waiting_[client] = std::move(waiting);
  return false;
}

void Subscriber::end_round() {
  while (!saying_.empty()) {
    for (const NodeAddress& node : std::exchange(saying_, {})) {
      const auto found = ears_.find(node);
      if (found == ears_.end()) continue;
      NodeLink& link = *found->second.link;
      link.begun() ? link.flush() : link.dial();
    }
  }
}

void Subscriber::ask(const Topic& topic, Place& place) {
  const auto [at, is_new] = ears_.try_emplace(place.node);
  Ear& ear = at->second;
  if (is_new) ear.link = make_link(place.node, Protocol::resp3);
  ++ear.topics;
  place.number = ++last_number_;
  say(ear, true, topic, place.number);
}

void Subscriber::say(Ear& ear, bool subscribes, const Topic& topic, std::uint64_t number) {
  const Verbs& words = verbs_of(topic.first);
  const std::array<RequestWord, 2> request{subscribes ? words.asks : words.ends, topic.second};
  std::string text;
  append_request(text, request);
  Request waited;
  waited.number = number;
  ear.asked.push_back({topic, number, subscribes});
  ear.link->send(std::move(waited), text, false);
  saying_.insert(ear.link->address());
}

void Subscriber::replied(NodeLink& link, Request waited, std::string_view, std::string_view reply) {
  if (waited.number == 0) return;  // a reply to PING
  const auto found = ears_.find(link.address());
  if (reply.front() != '-' || found->second.asked.empty())
    return link.break_off("it does not confirm subscriptions as RESP3 requires");
  const Asked asked = std::move(found->second.asked.front());
  found->second.asked.pop_front();
  if (asked.subscribes) refused(asked, reply, link.address().host);
}

void Subscriber::refused(const Asked& asked, std::string_view error, std::string_view host) {
  const auto found = topics_.find(asked.topic);
  if (found == topics_.end() || found->second.number != asked.number) return;
  Place& place = found->second;
  --ears_.at(place.node).topics;
  const auto redirect = weir::cluster::read_redirect(error, host);
  const NodeAddress* const to = redirect && !redirect->once && place.redirections < most_redirections
                                    ? user_.redirected(*redirect)
                                    : nullptr;
  if (to != nullptr) {
    ++place.redirections;
    place.node = *to;
    return ask(asked.topic, place);
  }
  const std::set<std::uint64_t> clients = std::move(place.waiting);
  topics_.erase(found);
  fail(clients, error);
}

bool Subscriber::pushed(NodeLink& link, std::string_view push) {
  const auto found = ears_.find(link.address());
  if (found == ears_.end()) return false;
  ReplyReader reader(push);
  const auto fields = reader.push();
  const auto what = fields ? reader.text() : std::nullopt;
  const auto topic = what ? reader.text() : std::nullopt;
  if (!topic) return false;
  for (const Kind kind : {Kind::channel, Kind::pattern, Kind::shard}) {
    const Verbs& words = verbs_of(kind);
    if (*what == words.message) {
      const auto channel = kind == Kind::pattern ? reader.text() : topic;
      const auto message = channel ? reader.text() : std::nullopt;
      if (message) user_.published(kind, *topic, *channel, *message);
      return false;
    }
    if (*what == words.subscribe) return confirmed(found->second, true, kind, *topic);
    if (*what == words.unsubscribe) return confirmed(found->second, false, kind, *topic);
  }
  return false;
}

bool Subscriber::confirmed(Ear& ear, bool subscribes, Kind kind, std::string_view text) {
  Topic topic(kind, text);
  const bool is_answer =
      !ear.asked.empty() && ear.asked.front().topic == topic && ear.asked.front().subscribes == subscribes;
  if (!is_answer && (subscribes || kind != Kind::shard)) {
    ear.link->break_off("it confirmed a subscription without a request");
    return false;
  }
  const auto found = topics_.find(topic);
  if (!is_answer) {
    // If a new SSUBSCRIBE is in flight, it reaches the node after this push was sent, so ignore the push.
    if (found == topics_.end() || !found->second.confirmed || found->second.node != ear.link->address())
      return false;
    --ear.topics;
    topics_.erase(found);
    user_.slot_moves(text);
    return false;
  }
  const std::uint64_t number = ear.asked.front().number;
  ear.asked.pop_front();
  if (!subscribes || found == topics_.end() || found->second.number != number) return true;
  found->second.confirmed = true;
  const std::set<std::uint64_t> clients = found->second.waiting;
  for (const std::uint64_t client : clients) {
    const auto waits = waiting_.find(client);
    if (waits == waiting_.end() || --waits->second.missing != 0) continue;
    user_.subscribed(client);
    release(client);
  }
  settle(topic);
  return true;
}

void Subscriber::release(std::uint64_t client) {
  const auto found = waiting_.find(client);
  if (found == waiting_.end()) return;
  const std::vector<Topic> topics = std::move(found->second.topics);
  waiting_.erase(found);
  for (const Topic& topic : topics) {
    if (const auto place = topics_.find(topic); place != topics_.end()) place->second.waiting.erase(client);
    settle(topic);
  }
}

void Subscriber::fail(const std::set<std::uint64_t>& clients, std::string_view error) {
  for (const std::uint64_t client : clients) {
    release(client);
    user_.not_subscribed(client, error);
  }
}

// Unsubscribes from a topic that has no listeners left and none waiting.
void Subscriber::settle(const Topic& topic) {
  const auto found = topics_.find(topic);
  if (found == topics_.end() || !found->second.waiting.empty()) return;
  if (user_.anybody_listens(topic.first, topic.second)) return;
  Ear& ear = ears_.at(found->second.node);
  --ear.topics;
  topics_.erase(found);
  say(ear, false, topic, ++last_number_);
}

void Subscriber::forget(std::uint64_t client) { release(client); }

void Subscriber::nobody_listens(Kind kind, std::string_view topic) { settle(Topic(kind, topic)); }

void Subscriber::link_ended(NodeLink& link, const std::string& why, std::deque<Request>, bool sent) {
  const NodeAddress node = link.address();
  const auto ear = ears_.find(node);
  if (ear == ears_.end()) return;
  over_.push_back(std::move(ear->second.link));
  ears_.erase(ear);
  std::vector<Topic> lost;
  std::set<std::uint64_t> waited;
  for (auto at = topics_.begin(); at != topics_.end();) {
    if (at->second.node != node) {
      ++at;
      continue;
    }
    waited.insert(at->second.waiting.begin(), at->second.waiting.end());
    if (at->second.confirmed) lost.push_back(at->first);
    at = topics_.erase(at);
  }
  const std::string where = node.text() + ": " + why;
  fail(waited, error_reply((sent ? "NODEDOWN " : "CLUSTERDOWN ") + where + "; nothing was subscribed to"));
  for (const Topic& topic : lost)
    user_.deaf(topic.first, topic.second,
               "NODEDOWN " + where + "; messages may have been missed: connect and subscribe again");
}

void Subscriber::nodes_are(const std::vector<NodeAddress>& nodes) {
  std::vector<NodeLink*> strange;
  for (const auto& [address, ear] : ears_)
    if (std::ranges::find(nodes, address) == nodes.end()) strange.push_back(ear.link.get());
  for (NodeLink* link : strange) link->break_off("it is no longer part of the cluster");
}

bool Subscriber::hurried() const {
  return std::ranges::any_of(ears_, [](const auto& entry) { return entry.second.link->hurried(); });
}

void Subscriber::look_at_clock() {
  std::erase_if(over_, [](const auto& link) { return link->finished(); });
  const std::int64_t now = now_ms();
  std::vector<NodeAddress> nodes;
  for (const auto& [address, ear] : ears_) nodes.push_back(address);
  for (const NodeAddress& address : nodes) {
    const auto found = ears_.find(address);
    if (found == ears_.end()) continue;
    Ear& ear = found->second;
    if (ear.topics == 0 && ear.asked.empty() && ear.link->idle()) {
      ear.link->close();
      over_.push_back(std::move(ear.link));
      ears_.erase(found);
      continue;
    }
    // A node that is dead or cut off is as silent as one whose topics nobody publishes to, so ping it.
    const std::int64_t age = now - ear.pinged_ms;
    if (ear.link->ready() && ear.link->idle() && (age >= between_pings_ms || age < 0)) {
      ear.pinged_ms = now;
      ear.link->send({}, "*1\r\n$4\r\nPING\r\n", false);
      ear.link->flush();
    }
    ear.link->look_at_clock();
  }
}

void Subscriber::shut_down() {
  for (auto& [address, ear] : ears_) {
    ear.link->close();
    over_.push_back(std::move(ear.link));
  }
  ears_.clear();
  topics_.clear();
  waiting_.clear();
}

}  // namespace weir::kv::cluster
