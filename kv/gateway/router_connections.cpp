// The router's side of commands that need more than a reply: WATCH and the EXEC after it, blocking commands,
// and subscriptions. Decision 0029 gives the reasons.
//
// Each of them starts when all earlier replies are delivered, and nothing else of the client's is sent until
// it is answered. So the client's requests stay in order, whichever connections they use.
#include <array>
#include <utility>

#include "kv/acl/user.hpp"
#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/gateway/error_reply.hpp"
#include "kv/gateway/router.hpp"
#include "kv/resp/request_text.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::cluster {

namespace {
constexpr std::int64_t between_pings_ms = 1000;
constexpr std::string_view ping_request = "*1\r\n$4\r\nPING\r\n";

std::string_view null_array(Protocol protocol) { return protocol == Protocol::resp3 ? "_\r\n" : "*-1\r\n"; }
}  // namespace

Router::Waits Router::waits_to_hold(Client& client, Lane& lane) {
  const Route::Where where = next_.route.where;
  const bool sends =
      where == Route::Where::slot || where == Route::Where::any_node || where == Route::Where::written_node;
  if (!sends) return waits(client, lane);
  if (!lane.idle()) return Waits::for_all_replies;
  // The shared link proves that the node is alive, and watches over it while the client waits there.
  return find_link(client.reply.protocol, lane);
}

bool Router::hold_connection(Client& client, const Command& command, Arguments words) {
  Lane& lane = *client.lane;
  switch (next_.route.needs) {
    case Route::Needs::subscription:
      subscribe(client, command, words);
      break;
    case Route::Needs::own_link_for_watch:
      // A key that was watched before has changed, or may have, so EXEC fails whatever else is watched.
      if (client.transaction.broken) {
        client.reply.ok();
        break;
      }
      if (lane.watching_at == nullptr) {
        lane.watching_at = take_own_link(client, command);
        lane.watched_slot = next_.route.slot;
        lane.watches = false;
      }
      if (lane.watching_at != nullptr) send_by_own_link(client, *lane.watching_at, command, words);
      break;
    case Route::Needs::own_link_to_wait:
      lane.waiting_at = take_own_link(client, command);
      if (lane.waiting_at != nullptr) send_by_own_link(client, *lane.waiting_at, command, words);
      break;
    case Route::Needs::nothing:
      return false;
  }
  return true;
}

// Returns null after replying with the reason.
NodeLink* Router::take_own_link(Client& client, const Command& command) {
  NodeLink* const link = borrow_link(next_.link->address(), client);
  if (link != nullptr) return link;
  const Settings& settings = server_.settings;
  const std::string& user = client.user->name();
  const auto has = static_cast<std::int64_t>(own_links_.taken_by(user));
  const bool user_has_all =
      settings.cluster_gateway_own_links_per_user > 0 && has >= settings.cluster_gateway_own_links_per_user;
  client.reply.error("NOTROUTED " + in_capitals(command) + " needs a connection of its own to a node, and " +
                     (user_has_all ? "the clients of user " + user + " have all " +
                                         std::to_string(settings.cluster_gateway_own_links_per_user) +
                                         " that cluster-gateway-own-links-per-user allows"
                                   : "all " + std::to_string(settings.cluster_gateway_own_links) +
                                         " that cluster-gateway-own-links allows are in use") +
                     ": try again, or allow more");
  return nullptr;
}

NodeLink* Router::borrow_link(const NodeAddress& address, const Client& client) {
  const Settings& settings = server_.settings;
  const std::int64_t of_user = settings.cluster_gateway_own_links_per_user;
  const OwnLinks::Limits limits{static_cast<std::size_t>(settings.cluster_gateway_own_links),
                                of_user == 0 ? SIZE_MAX : static_cast<std::size_t>(of_user)};
  return own_links_.take(address, client.reply.protocol, {client.lane, client.user->name()}, limits);
}

void Router::send_by_own_link(Client& client, NodeLink& link, const Command& command, Arguments words) {
  Lane& lane = *client.lane;
  Request waited;
  waited.lane = client.lane;
  waited.number = lane.enter(next_.muted);
  waited.slot = next_.route.slot;
  waited.has_slot = next_.route.where == Route::Where::slot;
  waited.may_wait = &link == lane.waiting_at;
  waited.writes = may_write(command);
  request_.clear();
  if (next_.route.where == Route::Where::written_node) {
    request_ = ping_request;
    waited.parts_before = 1;
  }
  append_request(request_, words);
  lane.alone = true;
  link.send(std::move(waited), request_, false);
  OwnLinks::go(link);
  server_.arm_timer();
}

void Router::own_link_replied(NodeLink& link, Request waited, std::string_view request,
                              std::string_view reply) {
  Lane& lane = *waited.lane;
  if (lane.waiting_at != &link)
    return waited.parts_before > 0 ? exec_replied(link, waited, reply)
                                   : watch_replied(link, std::move(waited), request, reply);
  lane.waiting_at = nullptr;
  own_links_.give_back(link);
  // Without the PING a node counts the replicas that have nothing.
  if (waited.parts_before > 0 && waited.error_before != nullptr) return answer(waited, *waited.error_before);
  // The command has not run: a node that gives up a slot redirects the clients that wait for its keys.
  const auto redirect = weir::cluster::read_redirect(reply, link.address().host);
  if (redirect && redirect->slot == waited.slot &&
      follow_by_own_link(waited, request, *redirect, lane.waiting_at))
    return;
  note_write(waited, link);
  answer(waited, reply);
}

// Sends the request to the node that the redirection names, over another connection of the client's. Returns
// false if that is not possible.
bool Router::follow_by_own_link(Request& waited, std::string_view request, const Redirect& redirect,
                                NodeLink*& place) {
  if (waited.redirections >= most_redirections) return false;
  const Node* const node = learn(redirect);
  if (node == nullptr) return false;
  Client& client = *waited.lane->client;
  place = borrow_link(node->address, client);
  if (place == nullptr) return false;
  ++waited.redirections;
  NodeLink& link = *place;
  const std::string again(request);
  link.send(std::move(waited), again, redirect.once);
  OwnLinks::go(link);
  return true;
}

void Router::watch_replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply) {
  Lane& lane = *waited.lane;
  if (reply.front() != '-') {
    lane.watches = true;
    return answer(waited, reply);
  }
  const auto redirect = weir::cluster::read_redirect(reply, link.address().host);
  const bool elsewhere = redirect && redirect->slot == waited.slot;
  if (elsewhere && lane.watches) {
    // The earlier WATCHes are lost with the slot; treat that as if a key had changed.
    learn(*redirect);
    end_watching(lane);
    lane.client->transaction.broken = true;
    return answer(waited, "+OK\r\n");
  }
  if (!lane.watches) end_watching(lane);
  if (elsewhere && redirect->once)
    return answer(waited, error_reply("TRYAGAIN slot " + std::to_string(waited.slot) +
                                      " is on its way to another node, and a key cannot be watched "
                                      "meanwhile: try again"));
  if (elsewhere && follow_by_own_link(waited, request, *redirect, lane.watching_at)) return;
  answer(waited, reply);
}

void Router::exec_replied(NodeLink& link, const Request& waited, std::string_view reply) {
  Lane& lane = *waited.lane;
  lane.watching_at = nullptr;
  own_links_.give_back(link);
  note_write(waited, link);
  if (!reply.starts_with("-EXECABORT") || waited.error_before == nullptr) return answer(waited, reply);
  const auto redirect = weir::cluster::read_redirect(*waited.error_before, link.address().host);
  if (!redirect)
    return answer(waited, error_reply("EXECABORT Transaction discarded because of: " +
                                      waited.error_before->substr(1, waited.error_before->size() - 3)));
  // The slot has moved, so the watch is lost; answer as if a key had changed.
  learn(*redirect);
  answer(waited, null_array(lane.client->reply.protocol));
}

void Router::own_link_ended(NodeLink& link, const std::shared_ptr<Lane>& lane, const std::string& why,
                            std::deque<Request> unanswered, bool sent) {
  const bool runs_transaction = !unanswered.empty() && unanswered.front().parts_before > 0;
  if (lane->waiting_at == &link) lane->waiting_at = nullptr;
  if (lane->watching_at == &link) {
    lane->watching_at = nullptr;
    // A key may have changed without our knowing.
    if (lane->watches && !runs_transaction && !lane->abandoned()) lane->client->transaction.broken = true;
    lane->watches = false;
  }
  ++counts_.broken_links;
  const std::string where = link.address().text() + ": " + why;
  const std::string reply =
      sent ? error_reply("NODEDOWN " + where + "; the command may have run: look before you repeat it")
           : error_reply("CLUSTERDOWN the command did not run: " + where);
  for (const Request& request : unanswered) {
    if (sent) note_write(request, link);
    answer(request, reply);
  }
}

void Router::end_watching(Lane& lane) {
  if (NodeLink* const link = std::exchange(lane.watching_at, nullptr)) own_links_.drop(*link);
  lane.watches = false;
}

// A connection on which a client waits is silent even if its node is dead. So the shared link pings the node,
// and when that link ends so do the connections that wait there.
void Router::look_after_waiting() {
  const std::int64_t age = server_.steady_ms - pinged_ms_;
  if (age >= 0 && age < between_pings_ms) return;
  pinged_ms_ = server_.steady_ms;
  for (const NodeAddress& address : own_links_.waited_at()) {
    Node* const node = map_.node(address);
    std::string problem;
    NodeLink* const link = node == nullptr ? nullptr : link_to(*node, Protocol::resp2, problem);
    if (link == nullptr || !link->ready() || !link->idle()) continue;
    link->send({}, ping_request, false);
    will_send(*link);
  }
}

// The node ends the waiting: it may have an element for the client already, which must not be lost.
bool Router::unblock_at_node(Client& client, Arguments words) {
  const auto number = words.size() <= 4 ? parse_int(words[2].text) : std::nullopt;
  if (words.size() == 4 && !is_word(words[3].text, "TIMEOUT") && !is_word(words[3].text, "ERROR"))
    return false;
  const auto found =
      number ? server_.clients.find(static_cast<std::uint64_t>(*number)) : server_.clients.end();
  if (found == server_.clients.end() || !blocks(*found->second)) return false;
  const NodeLink& waits_at = *found->second->lane->waiting_at;
  if (waits_at.client_id() == 0) return false;
  Node* const node = map_.node(waits_at.address());
  std::string problem = "it does not answer";
  NodeLink* const link = node == nullptr ? nullptr : link_to(*node, client.reply.protocol, problem);
  if (link == nullptr || !link->ready() || !link->has_room()) {
    client.reply.error("CLUSTERDOWN " + waits_at.address().text() +
                       " could not be asked, the command did not run: " + problem);
    return true;
  }
  const std::string id = std::to_string(waits_at.client_id());
  request_.clear();
  append_request_head(request_, words.size());
  append_request_word(request_, words[0].text);
  append_request_word(request_, words[1].text);
  append_request_word(request_, id);
  for (const Argument& word : words.subspan(3)) append_request_word(request_, word.text);
  Request waited;
  waited.lane = client.lane;
  waited.number = client.lane->enter(next_.muted);
  link->send(std::move(waited), request_, false);
  will_send(*link);
  return true;
}

void Router::subscribe(Client& client, const Command& command, Arguments words) {
  using Kind = PubSub::Kind;
  const Kind kind = command.name == "ssubscribe"   ? Kind::shard
                    : command.name == "psubscribe" ? Kind::pattern
                                                   : Kind::channel;
  std::vector<std::string_view> topics;
  for (const Argument& word : words.subspan(1)) topics.push_back(word.text);
  Lane& lane = *client.lane;
  Subscription subscription{&command, {}, lane.enter(true)};
  for (const Argument& word : words) subscription.words.emplace_back(word.text);
  subscriptions_[client.id()] = std::move(subscription);
  lane.alone = true;
  lane.subscribing = true;
  if (subscriber_.subscribe(client.id(), kind, next_.link->address(), topics)) subscribed(client.id());
  server_.arm_timer();
}

void Router::subscribed(std::uint64_t id) {
  auto found = subscriptions_.extract(id);
  const auto client = server_.clients.find(id);
  if (found.empty() || client == server_.clients.end()) return;
  const Subscription& subscription = found.mapped();
  Client& subscriber = *client->second;
  std::vector<Argument> words;
  for (const std::string& word : subscription.words) words.push_back({word, nullptr});
  subscription.command->run(Call{server_, subscriber, *subscription.command, *server_.databases.front(),
                                 subscriber.reply, words, server_.now_ms});
  subscriber.will_flush();
  subscriber.lane->subscribing = false;
  subscriber.lane->finish(subscription.number, {});
  reply_left(*subscriber.lane);
}

void Router::not_subscribed(std::uint64_t id, std::string_view error) {
  const auto found = subscriptions_.extract(id);
  const auto client = server_.clients.find(id);
  if (found.empty() || client == server_.clients.end()) return;
  Client& subscriber = *client->second;
  if (!subscriber.reply.muted()) leave(subscriber, error);
  subscriber.lane->subscribing = false;
  subscriber.lane->finish(found.mapped().number, {});
  reply_left(*subscriber.lane);
}

void Router::published(PubSub::Kind kind, std::string_view topic, std::string_view channel,
                       std::string_view message) {
  server_.pubsub.deliver_to(kind, topic, channel, message);
}

bool Router::anybody_listens(PubSub::Kind kind, std::string_view topic) const {
  return server_.pubsub.topics(kind).contains(topic);
}

// Closes the topic's listeners with an error. A client of a node that dies loses its connection, too, so it
// knows that it has missed messages; in RESP2 there is no other way to tell it.
void Router::deaf(PubSub::Kind kind, std::string_view topic, const std::string& why) {
  const auto found = server_.pubsub.topics(kind).find(topic);
  if (found == server_.pubsub.topics(kind).end()) return;
  const PubSub::Listeners listeners = found->second;
  for (Client* client : listeners) {
    server_.pubsub.unsubscribe_all(*client);
    // Do not wait for the reply to a blocking command: that may take for ever.
    if (!blocks(*client) && end_later(*client, why)) continue;
    leave(*client, error_reply(why));
    client->close_after_reply = true;
  }
}

// Tells the listeners as a node of a cluster would.
void Router::slot_moves(std::string_view shard_channel) {
  const auto found = server_.pubsub.topics(PubSub::Kind::shard).find(shard_channel);
  if (found == server_.pubsub.topics(PubSub::Kind::shard).end()) return;
  const PubSub::Listeners listeners = found->second;
  for (Client* client : listeners) {
    server_.pubsub.unsubscribe(*client, PubSub::Kind::shard, shard_channel);
    const Reply::Pushing pushing(client->reply);
    client->reply.push(3);
    client->reply.bulk("sunsubscribe");
    client->reply.bulk(shard_channel);
    client->reply.integer(static_cast<std::int64_t>(client->subscriptions.shard_channels.size()));
    client->will_flush();
  }
}

const NodeAddress* Router::redirected(const Redirect& redirect) {
  const Node* const node = learn(redirect);
  return node == nullptr ? nullptr : &node->address;
}

}  // namespace weir::kv::cluster
