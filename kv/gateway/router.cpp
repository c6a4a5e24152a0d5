#include "kv/gateway/router.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kv/clients/client.hpp"
#include "kv/gateway/error_reply.hpp"
#include "kv/resp/request_text.hpp"
#include "kv/settings/wrong_settings.hpp"

namespace weir::kv::cluster {

namespace {

std::string taken_from(ReplyQueue& queue) {
  std::string bytes;
  std::array<iovec, 16> pieces;
  while (!queue.empty()) {
    const std::size_t count = queue.gather(pieces.data(), pieces.size());
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
      size += pieces[i].iov_len;
    }
    queue.consume(size);
  }
  return bytes;
}

}  // namespace

std::expected<void, std::string> pass_on_to_cluster(ServerParts& server) {
  if (std::string wrong = wrong_for_gateway(server.settings); !wrong.empty())
    return std::unexpected(std::move(wrong));
  if (server.settings.cluster_gateway.empty()) return {};
  server.gateway =
      std::make_unique<Router>(server, *weir::cluster::read_address(server.settings.cluster_gateway));
  server.gateway->look_at_clock();
  server.arm_timer();
  return {};
}

Router::Router(ServerParts& server, NodeAddress seed)
    : server_(server),
      seed_(std::move(seed)),
      reader_(*this, seed_),
      own_links_(*this),
      subscriber_(*this),
      aside_(server.blocks) {
  server_.pubsub.nobody_listens = [this](PubSub::Kind kind, std::string_view topic) {
    subscriber_.nobody_listens(kind, topic);
  };
}

Router::~Router() { shut_down(); }

Lane& Router::lane_of(Client& client) {
  if (client.lane == nullptr)
    client.lane =
        std::make_shared<Lane>(&client, [this, &client](std::string_view reply) { leave(client, reply); });
  return *client.lane;
}

void Router::forget(Client& client) {
  if (client.lane == nullptr) return;
  Lane& lane = *client.lane;
  lane.abandon();
  end_watching(lane);
  // Closing the connection makes the node remove the client from its queues of blocked clients.
  if (NodeLink* const link = std::exchange(lane.waiting_at, nullptr)) own_links_.drop(*link);
  if (subscriptions_.erase(client.id()) != 0) subscriber_.forget(client.id());
}

bool Router::owes(const Client& client) const {
  if (client.paused()) return client.lane == nullptr || client.lane->waiting_at == nullptr;
  return client.lane != nullptr && !client.lane->idle() && client.lane->waiting_at == nullptr &&
         !client.lane->subscribing;
}

bool Router::blocks(const Client& client) const {
  return client.lane != nullptr && client.lane->waiting_at != nullptr;
}

bool Router::execute(Client& client, Arguments words) {
  Lane& lane = lane_of(client);
  next_.begin({}, client.reply.muted());
  next_.route = route(client, lane, words);
  const bool refused =
      next_.route.where == Route::Where::refused || next_.route.where == Route::Where::cross_slot;
  if (refused && client.transaction.open && !lane.full())
    return refuse_in_transaction(client, lane, *find_command(words));
  const bool holds = next_.route.needs != Route::Needs::nothing;
  switch (holds ? waits_to_hold(client, lane) : waits(client, lane)) {
    case Waits::no:
      break;
    case Waits::for_replies:
      lane.resumes = Lane::Resumes::when_fewer;
      return false;
    case Waits::for_all_replies:
      lane.resumes = Lane::Resumes::when_idle;
      return false;
    case Waits::for_node:
      if (lane.held_since_ms == 0) lane.held_since_ms = server_.steady_ms;
      if (!std::exchange(lane.held, true)) held_.push_back(client.id());
      if (held_.size() == 1) server_.arm_timer();
      return false;
  }
  lane.held_since_ms = 0;
  if (!lane.idle()) return execute_behind(client, lane, words);
  lane.map_version = map_.version();
  return server_.execute_here(client, words);
}

Route Router::route(Client& client, Lane& lane, Arguments words) {
  const Command* const command = find_command(words);
  Route route = routing_.route(command, words);
  if (route.needs == Route::Needs::own_link_for_watch) {
    if (client.transaction.open) return {};  // WATCH in MULTI is an error
    if (lane.watching_at != nullptr && route.where == Route::Where::slot && route.slot != lane.watched_slot)
      return {Route::Where::cross_slot, 0, {}};
  }
  const bool open = client.transaction.open && command != nullptr && command->takes(words.size());
  if (open) return in_transaction(client, lane, *command, route);
  return route.where == Route::Where::written_node ? to_written_node(lane, route) : route;
}

Route Router::to_written_node(Lane& lane, Route route) {
  constexpr std::string_view no_write =
      "replicas confirm writes, and this connection has written nothing: send WAIT behind a write";
  constexpr std::string_view several_nodes =
      "a node confirms its own writes only, and since its last WAIT this connection has written to several, "
      "or to one whose connection to the gateway ended meanwhile: send a WAIT behind the writes to each node";
  constexpr std::string_view link_ended =
      "the gateway's connection to the node that took the last write has ended since, so the node may have "
      "lost the write: read what is there, or write again and send WAIT behind it";
  if (!lane.idle()) return route;  // it waits, and then comes here again
  if (lane.writes.last() == 0) return {Route::Where::refused, 0, no_write};
  lane.writes.asked();
  if (lane.writes.went_to_several()) return {Route::Where::refused, 0, several_nodes};
  if (node_of_link(lane.writes.last()) == nullptr) return {Route::Where::refused, 0, link_ended};
  return route;
}

Route Router::in_transaction(Client& client, Lane& lane, const Command& command, Route route) {
  Transaction& transaction = client.transaction;
  constexpr std::string_view not_here = "a transaction runs on one node, and this names no key there";
  if (command.name == "exec") {
    // The node would reply in the protocol from before HELLO changed it.
    if (lane.watching_at != nullptr && lane.watching_at->protocol() != client.reply.protocol) {
      end_watching(lane);
      transaction.broken = true;
    }
    if (transaction.spoiled || transaction.broken) return route;
    if (lane.watching_at != nullptr) return {Route::Where::slot, lane.watched_slot, {}};
    return transaction.queued.empty() ? route : Route{Route::Where::slot, lane.transaction_slot, {}};
  }
  if (route.needs == Route::Needs::subscription) return {Route::Where::refused, 0, not_here};
  route.needs = Route::Needs::nothing;  // commands within a transaction do not block
  if (route.where == Route::Where::slot) {
    if (transaction.queued.empty())
      lane.transaction_slot = lane.watching_at != nullptr ? lane.watched_slot : route.slot;
    next_.queues = lane.transaction_slot == route.slot;
    return next_.queues ? route : Route{Route::Where::cross_slot, 0, {}};
  }
  for (std::string_view name : {"multi", "discard", "quit", "reset", "watch"})
    if (command.name == name && command.container.empty()) return route;
  const bool is_refused = route.where == Route::Where::refused || route.where == Route::Where::cross_slot;
  return is_refused ? route : Route{Route::Where::refused, 0, not_here};
}

std::string Router::refusal(const Command& command) const {
  if (next_.route.where == Route::Where::cross_slot)
    return "CROSSSLOT Keys in request don't hash to the same slot";
  return "NOTROUTED " + in_capitals(command) + ": " + std::string(next_.route.why);
}

// Marks the transaction as spoiled; execute_here() would queue the command.
bool Router::refuse_in_transaction(Client& client, Lane& lane, const Command& command) {
  client.transaction.spoiled = true;
  if (lane.idle()) {
    client.reply.error(refusal(command));
  } else {
    lane.finish(lane.enter(next_.muted), error_reply(refusal(command)));
  }
  return true;
}

// Puts a reply that the gateway makes itself into the lane, behind the replies that are still due.
bool Router::execute_behind(Client& client, Lane& lane, Arguments words) {
  bool taken = false;
  {
    const Reply::Diverting diverting(client.reply, aside_, client.reply.protocol);
    taken = server_.execute_here(client, words);
  }
  if (!aside_.empty()) {
    const std::string said = taken_from(aside_);
    lane.finish(lane.enter(next_.muted), said);
  }
  return taken;
}

Router::Waits Router::waits(const Client& client, Lane& lane) {
  if (lane.alone && !lane.idle()) return Waits::for_all_replies;
  switch (next_.route.where) {
    case Route::Where::here:
      return lane.idle() ? Waits::no : Waits::for_all_replies;
    case Route::Where::cross_slot:
    case Route::Where::refused:
      return lane.full() ? Waits::for_replies : Waits::no;
    case Route::Where::slot:
    case Route::Where::any_node:
    case Route::Where::scanned_node:
    case Route::Where::written_node:
      break;
    case Route::Where::all_nodes:
      return lane.idle() ? find_all_links(client.reply.protocol, lane) : Waits::for_all_replies;
  }
  if (lane.watching_at != nullptr && client.transaction.open && !next_.queues) {  // EXEC
    next_.link = lane.watching_at;
    return lane.idle() ? Waits::no : Waits::for_all_replies;
  }
  if (next_.queues) return lane.full() ? Waits::for_replies : Waits::no;
  if (!lane.idle() && lane.map_version != map_.version()) return Waits::for_all_replies;
  if (lane.full()) return Waits::for_replies;
  return find_link(client.reply.protocol, lane);
}

Router::Waits Router::find_link(Protocol protocol, Lane& lane) {
  const Route& route = next_.route;
  Node* node = nullptr;
  if (route.where == Route::Where::slot) node = map_.owner(route.slot);
  if (route.where == Route::Where::scanned_node) node = map_.from(route.slot);
  if (route.where == Route::Where::written_node) node = node_of_link(lane.writes.last());
  if (node == nullptr && (route.where == Route::Where::any_node || route.where == Route::Where::scanned_node))
    node = map_.any();
  std::string problem;
  if (node != nullptr) {
    NodeLink* const link = link_to(*node, protocol, problem);
    if (link != nullptr && link->ready() && link->has_room()) {
      next_.link = link;
      return Waits::no;
    }
    if (link != nullptr && link->ready()) problem = "it is far behind";
    if (link != nullptr && !link->ready())
      problem = node->problem.empty() ? "it does not answer" : node->problem;
    problem = node->address.text() + ": " + problem;
  } else if (map_.known()) {
    problem = "no node has it";
  } else {
    problem = "it is not known which node has it" + (map_problem_.empty() ? "" : ": " + map_problem_);
  }
  const bool link_is_made = node != nullptr && node->linked();
  if (!link_is_made) reader_.refresh_soon();
  return wait_for_node(lane, std::move(problem));
}

Router::Waits Router::wait_for_node(const Lane& lane, std::string problem) {
  const std::int64_t since = lane.held_since_ms;
  if (since == 0 || server_.steady_ms - since <= server_.settings.cluster_gateway_timeout_ms)
    return Waits::for_node;
  next_.unreachable = std::move(problem);
  return Waits::no;
}

// Appends the transaction to request_, from MULTI to EXEC.
void Router::append_transaction(const Client& client) {
  const std::array<RequestWord, 1> multi{"MULTI"};
  const std::array<RequestWord, 1> exec{"EXEC"};
  append_request(request_, multi);
  for (const Transaction::Queued& queued : client.transaction.queued) {
    append_request_head(request_, queued.words.size());
    for (const Bytes& word : queued.words) append_request_word(request_, word);
  }
  append_request(request_, exec);
}

bool Router::pass_on(Client& client, const Command& command, Arguments words) {
  const Route& route = next_.route;
  switch (route.where) {
    case Route::Where::here:
      if (command.name == "select" && words[1].text != "0")
        return client.reply.error("ERR SELECT is not allowed in cluster mode"), true;
      // These end the WATCH, and then run here.
      if (const bool open = client.transaction.open;
          command.container.empty() && (command.name == "unwatch" || command.name == "reset" ||
                                        (open && (command.name == "exec" || command.name == "discard"))))
        end_watching(*client.lane);
      return command.container == "client" && command.name == "unblock" && unblock_at_node(client, words);
    case Route::Where::refused:
    case Route::Where::cross_slot:
      client.reply.error(refusal(command));
      return true;
    case Route::Where::slot:
    case Route::Where::any_node:
    case Route::Where::scanned_node:
    case Route::Where::written_node:
    case Route::Where::all_nodes:
      break;
  }
  if (next_.link == nullptr && next_.links.empty()) {
    if (client.transaction.open) server_.discard_transaction(client);
    const std::string which =
        route.where == Route::Where::slot
            ? "the node of slot " + std::to_string(route.slot)
            : std::string(route.where == Route::Where::all_nodes ? "each node" : "a node");
    client.reply.error("CLUSTERDOWN " + which +
                       " could not be asked, the command did not run: " + next_.unreachable);
    return true;
  }
  ++counts_.passed_on;
  if (route.where == Route::Where::all_nodes) return send_to_all(client, command, words), true;
  if (route.where == Route::Where::scanned_node) return send_scan(client, words), true;
  if (route.needs != Route::Needs::nothing) return hold_connection(client, command, words);
  Request waiting;
  request_.clear();
  Lane& lane = *client.lane;
  const bool by_own_link = next_.link == lane.watching_at;  // EXEC after WATCH
  if (client.transaction.open) {
    append_transaction(client);
    waiting.parts_before = static_cast<std::uint32_t>(client.transaction.queued.size() + 1);
    waiting.writes = true;
    server_.discard_transaction(client);
  } else {
    append_request(request_, words);
    waiting.writes = may_write(command);
  }
  waiting.lane = client.lane;
  waiting.number = client.lane->enter(next_.muted);
  waiting.slot = route.slot;
  waiting.has_slot = route.where == Route::Where::slot;
  next_.link->send(std::move(waiting), request_, false);
  if (by_own_link) {
    lane.alone = true;
    OwnLinks::go(*next_.link);
  } else {
    will_send(*next_.link);
  }
  return true;
}

void Router::will_send(NodeLink& link) {
  if (!std::exchange(link.marked, true)) sending_.push_back(&link);
}

void Router::end_round() {
  while (!sending_.empty()) {
    const std::vector<NodeLink*> links = std::exchange(sending_, {});
    for (NodeLink* link : links) link->marked = false;
    // A link that ends in this loop stays allocated until the next look at the clock.
    for (NodeLink* link : links) link->flush();
  }
  subscriber_.end_round();
}

void Router::leave(Client& client, std::string_view reply) {
  if (reply.starts_with('-')) ++server_.stats.error_replies;
  client.output.append(reply);
  client.will_flush();
}

void Router::answer(const Request& waited, std::string_view reply) {
  Lane* const lane = waited.lane.get();
  if (lane == nullptr || lane->abandoned()) return;
  lane->finish(waited.number, reply);
  if (lane->client != nullptr) reply_left(*lane);
}

void Router::reply_left(Lane& lane) {
  Client& client = *lane.client;
  if (lane.ends && lane.idle()) {
    client.close_after_reply = true;
    client.will_flush();
  }
  if (lane.idle()) client.end_if_answered();
  const bool fewer = lane.resumes == Lane::Resumes::when_fewer && lane.waiting() <= lane.allowed() / 2;
  if (!fewer && (lane.resumes == Lane::Resumes::no || !lane.idle())) return;
  lane.resumes = Lane::Resumes::no;
  client.will_resume();
}

bool Router::end_later(Client& client, std::string_view error) {
  if (client.lane == nullptr || client.lane->idle()) return false;
  Lane& lane = *client.lane;
  lane.ends = true;
  lane.finish(lane.enter(client.reply.muted()), error_reply(std::string(error)));
  return true;
}

void Router::resume_held(std::size_t most) {
  const auto end = held_.begin() + static_cast<std::ptrdiff_t>(std::min(most, held_.size()));
  const std::vector<std::uint64_t> some(held_.begin(), end);
  held_.erase(held_.begin(), end);
  for (const std::uint64_t id : some) {
    const auto found = server_.clients.find(id);
    if (found == server_.clients.end() || found->second->lane == nullptr) continue;
    found->second->lane->held = false;
    found->second->will_resume();
  }
}

}  // namespace weir::kv::cluster
