#include "kv/gateway/router.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "kv/effects/request_text.hpp"
#include "kv/gateway/error_reply.hpp"
#include "kv/gateway/wrong_settings.hpp"
#include "kv/server/client.hpp"

namespace weir::kv::cluster {

namespace {

std::string in_capitals(const Command& command) {
  std::string name(command.container.empty() ? command.name : command.container);
  if (!command.container.empty()) name.append(1, ' ').append(command.name);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

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

std::expected<void, std::string> pass_on_to_cluster(Server& server) {
  if (std::string wrong = wrong_for_gateway(server.settings); !wrong.empty())
    return std::unexpected(std::move(wrong));
  if (server.settings.cluster_gateway.empty()) return {};
  server.gateway =
      std::make_unique<Router>(server, *weir::cluster::read_address(server.settings.cluster_gateway));
  server.gateway->look_at_clock();
  server.arm_timer();
  return {};
}

Router::Router(Server& server, NodeAddress seed)
    : server_(server), seed_(std::move(seed)), reader_(*this, seed_), aside_(server.blocks) {}

Router::~Router() { shut_down(); }

Lane& Router::lane_of(Client& client) {
  if (client.lane == nullptr)
    client.lane =
        std::make_shared<Lane>(&client, [this, &client](std::string_view reply) { leave(client, reply); });
  return *client.lane;
}

void Router::forget(Client& client) {
  if (client.lane != nullptr) client.lane->abandon();
}

bool Router::execute(Client& client, Arguments words) {
  Lane& lane = lane_of(client);
  next_ = {};
  next_.route = route(client, lane, words);
  next_.muted = client.reply.muted();
  const bool refused =
      next_.route.where == Route::Where::refused || next_.route.where == Route::Where::cross_slot;
  if (refused && client.transaction.open && !lane.full())
    return refuse_in_transaction(client, lane, *find_command(words));
  switch (waits(client, lane)) {
    case Waits::no:
      break;
    case Waits::for_replies:
      lane.resumes = Lane::Resumes::when_fewer;
      return false;
    case Waits::for_all_replies:
      lane.resumes = Lane::Resumes::when_idle;
      return false;
    case Waits::for_node:
      if (lane.held_since_ms == 0) lane.held_since_ms = server_.now_ms;
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
  const Route route = routing_.route(command, words);
  const bool open = client.transaction.open && command != nullptr && command->takes(words.size());
  return open ? in_transaction(client, lane, *command, route) : route;
}

Route Router::in_transaction(Client& client, Lane& lane, const Command& command, Route route) {
  const Transaction& transaction = client.transaction;
  if (command.name == "exec") {
    const bool runs = !transaction.spoiled && !transaction.broken && !transaction.queued.empty();
    return runs ? Route{Route::Where::slot, lane.transaction_slot, {}} : route;
  }
  if (route.where == Route::Where::slot) {
    if (transaction.queued.empty()) lane.transaction_slot = route.slot;
    next_.queues = lane.transaction_slot == route.slot;
    return next_.queues ? route : Route{Route::Where::cross_slot, 0, {}};
  }
  for (std::string_view name : {"multi", "discard", "quit", "reset"})
    if (command.name == name && command.container.empty()) return route;
  if (route.where != Route::Where::here && route.where != Route::Where::any_node) return route;
  return {Route::Where::refused, 0, "a transaction leaves for one node, and this names no key there"};
}

std::string Router::refusal(const Command& command) const {
  if (next_.route.where == Route::Where::cross_slot)
    return "CROSSSLOT Keys in request don't hash to the same slot";
  return "NOTROUTED " + in_capitals(command) + ": " + std::string(next_.route.why);
}

// It would be queued otherwise.
bool Router::refuse_in_transaction(Client& client, Lane& lane, const Command& command) {
  client.transaction.spoiled = true;
  if (lane.idle()) {
    client.reply.error(refusal(command));
  } else {
    lane.finish(lane.enter(next_.muted), error_reply(refusal(command)));
  }
  return true;
}

// What is said here meanwhile takes its place behind the replies that are awaited.
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
  switch (next_.route.where) {
    case Route::Where::here:
      return lane.idle() ? Waits::no : Waits::for_all_replies;
    case Route::Where::cross_slot:
    case Route::Where::refused:
      return lane.full() ? Waits::for_replies : Waits::no;
    case Route::Where::slot:
    case Route::Where::any_node:
      break;
  }
  if (next_.queues) return lane.full() ? Waits::for_replies : Waits::no;
  if (!lane.idle() && lane.map_version != map_.version()) return Waits::for_all_replies;
  if (lane.full()) return Waits::for_replies;
  return find_link(client.reply.protocol, lane);
}

Router::Waits Router::find_link(Protocol protocol, Lane& lane) {
  const Route& route = next_.route;
  Node* const node = route.where == Route::Where::slot ? map_.owner(route.slot) : map_.any();
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
    problem = "which node has it is not known" + (map_problem_.empty() ? "" : ": " + map_problem_);
  }
  const bool link_is_made = node != nullptr && node->linked();
  if (!link_is_made) reader_.refresh_soon();
  const std::int64_t since = lane.held_since_ms;
  if (since == 0 || server_.now_ms - since <= server_.settings.cluster_gateway_timeout_ms)
    return Waits::for_node;
  next_.unreachable = problem;
  return Waits::no;
}

// From MULTI to EXEC, into request_.
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
      if (command.name != "select" || words[1].text == "0") return false;
      client.reply.error("ERR SELECT is not allowed in cluster mode");
      return true;
    case Route::Where::refused:
    case Route::Where::cross_slot:
      client.reply.error(refusal(command));
      return true;
    case Route::Where::slot:
    case Route::Where::any_node:
      break;
  }
  if (next_.link == nullptr) {
    if (client.transaction.open) server_.discard_transaction(client);
    const std::string which = route.where == Route::Where::slot
                                  ? "the node of slot " + std::to_string(route.slot)
                                  : std::string("a node");
    client.reply.error("CLUSTERDOWN " + which +
                       " could not be asked, the command did not run: " + next_.unreachable);
    return true;
  }
  Request waiting;
  request_.clear();
  if (client.transaction.open) {
    append_transaction(client);
    waiting.parts_before = static_cast<std::uint32_t>(client.transaction.queued.size() + 1);
    server_.discard_transaction(client);
  } else {
    append_request(request_, words);
  }
  waiting.lane = client.lane;
  waiting.number = client.lane->enter(next_.muted);
  waiting.slot = route.slot;
  waiting.has_slot = route.where == Route::Where::slot;
  next_.link->send(std::move(waiting), request_, false);
  will_send(*next_.link);
  ++counts_.passed_on;
  return true;
}

void Router::will_send(NodeLink& link) {
  if (!std::exchange(link.marked, true)) sending_.push_back(&link);
}

void Router::end_round() {
  while (!sending_.empty()) {
    const std::vector<NodeLink*> links = std::exchange(sending_, {});
    for (NodeLink* link : links) link->marked = false;
    // One that ends meanwhile stays allocated.
    for (NodeLink* link : links) link->flush();
  }
}

void Router::leave(Client& client, std::string_view reply) {
  if (reply.starts_with('-')) ++server_.stats.error_replies;
  client.output.append(reply);
  server_.will_flush(client);
}

void Router::answer(const Request& waited, std::string_view reply) {
  Lane* const lane = waited.lane.get();
  if (lane == nullptr || lane->abandoned()) return;
  lane->finish(waited.number, reply);
  reply_left(*lane->client, *lane);
}

void Router::reply_left(Client& client, Lane& lane) {
  if (lane.ends && lane.idle()) {
    client.close_after_reply = true;
    server_.will_flush(client);
  }
  const bool fewer = lane.resumes == Lane::Resumes::when_fewer && lane.waiting() <= lane.allowed() / 2;
  if (!fewer && (lane.resumes == Lane::Resumes::no || !lane.idle())) return;
  lane.resumes = Lane::Resumes::no;
  server_.will_resume(client);
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
    server_.will_resume(*found->second);
  }
}

}  // namespace weir::kv::cluster
