// The router's side of the nodes: links, replies, redirections and the slot map. Its side of the clients is
// in router.cpp.
#include <algorithm>
#include <utility>

#include "kv/clients/client.hpp"
#include "kv/endpoints/dialler.hpp"
#include "kv/gateway/error_reply.hpp"
#include "kv/gateway/router.hpp"

namespace weir::kv::cluster {

namespace {

constexpr std::int64_t between_dials_ms = 100;  // to the same node
constexpr std::int64_t connect_ms = 1000;
constexpr std::int64_t look_often_ms = 50;  // while requests are pending
constexpr std::int64_t look_ms = 1000;

constexpr std::uint64_t lost_link = UINT64_MAX;  // a number that no link has

std::size_t place_of(Protocol protocol) { return protocol == Protocol::resp3 ? 1 : 0; }

}  // namespace

NodeLink* Router::link_to(Node& node, Protocol protocol, std::string& problem) {
  std::unique_ptr<NodeLink>& link = node.links[place_of(protocol)];
  if (link != nullptr) return link.get();
  const std::int64_t age = server_.steady_ms - node.failed_ms;
  if (node.failed_ms != 0 && age >= 0 && age < between_dials_ms) {
    problem = node.problem;
    return nullptr;
  }
  LinkSettings settings = link_settings();
  settings.protocol = protocol;
  NodeLink::Owner& self = *this;
  link = std::make_unique<NodeLink>(self, node.address, std::move(settings));
  link->number = ++links_made_;
  link->dial();
  if (link == nullptr) problem = node.problem;  // dialling failed at once
  return link.get();
}

void Router::replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply) {
  std::string aborted;
  if (reply.starts_with("-EXECABORT") && waited.error_before != nullptr) {
    const auto redirect = weir::cluster::read_redirect(*waited.error_before, link.address().host);
    if (redirect && redirect->slot == waited.slot && follow(link, waited, request, *redirect)) return;
    aborted = "-EXECABORT Transaction discarded because of: " + waited.error_before->substr(1);
    reply = aborted;
  }
  if (reply.front() == '-' && waited.has_slot) {
    const auto redirect = weir::cluster::read_redirect(reply, link.address().host);
    if (redirect && redirect->slot == waited.slot && follow(link, waited, request, *redirect)) return;
    if (reply.starts_with("-CLUSTERDOWN") || reply.starts_with("-READONLY")) reader_.refresh_soon();
  }
  note_write(waited, link);
  answer(waited, reply);
  if (!held_.empty() && link.waiting() == NodeLink::most_requests / 2) resume_held();
}

// The node that has that shared link; null: the link has ended.
Node* Router::node_of_link(std::uint64_t number) {
  Node* found = nullptr;
  map_.each_node([&](Node& node) {
    for (const auto& link : node.links)
      if (link != nullptr && link->number == number) found = &node;
  });
  return found;
}

// A client's own link stands for the shared link to the same node, which lives longer.
void Router::note_write(const Request& waited, const NodeLink& link) {
  if (!waited.writes || waited.lane == nullptr) return;
  std::uint64_t number = link.number;
  if (number == 0) {
    const Node* const node = map_.node(link.address());
    const auto* const shared = node == nullptr ? nullptr : node->links[place_of(link.protocol())].get();
    if (shared != nullptr) number = shared->number;
  }
  waited.lane->writes.note(number == 0 ? lost_link : number);
}

Node* Router::learn(const Redirect& redirect) {
  Node* const node = map_.node(redirect.to);
  if (node == nullptr) return nullptr;
  if (redirect.once) {
    ++counts_.asked;
  } else {
    ++counts_.moved;
    map_.move(redirect.slot, *node);
    reader_.refresh_soon();
    resume_held();
  }
  return node;
}

bool Router::follow(NodeLink& from, Request& waited, std::string_view request, const Redirect& redirect) {
  if (waited.redirections >= most_redirections) return false;
  Node* const node = learn(redirect);
  if (node == nullptr) return false;
  std::string problem;
  NodeLink* const to = link_to(*node, from.protocol(), problem);
  if (to == nullptr) {
    answer(waited, error_reply("CLUSTERDOWN the node of slot " + std::to_string(redirect.slot) +
                               " could not be asked, the command did not run: " + node->address.text() +
                               ": " + problem));
    return true;
  }
  ++waited.redirections;
  const std::string again(request);  // `request` points into a log that send() may move
  to->send(std::move(waited), again, redirect.once);
  will_send(*to);
  return true;
}

void Router::link_ready(NodeLink& link) {
  Node* const node = map_.node(link.address());
  if (node != nullptr) {
    node->failed_ms = 0;
    node->problem.clear();
  }
  will_send(link);
  resume_held();
}

void Router::link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) {
  std::erase(sending_, &link);
  Node* const node = map_.node(link.address());
  if (node == nullptr) return;
  ended_.push_back(std::move(node->links[place_of(link.protocol())]));
  if (node->problem != why)
    server_.log(LogLevel::warning, "cluster node " + link.address().text() + ": " + why);
  node->problem = why;
  node->failed_ms = sent ? 0 : server_.steady_ms;
  ++counts_.broken_links;
  reader_.refresh_soon();
  // Connections on which clients wait there would not notice.
  own_links_.node_failed(link.address(), why);
  const std::string where = link.address().text() + ": " + why;
  const std::string reply =
      sent ? error_reply("NODEDOWN " + where + "; the command may have run: look before you repeat it")
           : error_reply("CLUSTERDOWN the command did not run: " + where);
  for (const Request& request : unanswered) {
    if (sent) note_write(request, link);
    answer(request, reply);
  }
  resume_held();
}

Opened<std::unique_ptr<Dialling>> Router::dial_node(const NodeAddress& address, Dialled dialled) {
  return server_.dialler.dial_node(address.host, address.port, std::move(dialled));
}

LinkSettings Router::link_settings() const {
  const Settings& settings = server_.settings;
  return {.user = settings.masteruser,
          .password = settings.masterauth,
          .connect_ms = connect_ms,
          .answer_ms = settings.cluster_gateway_timeout_ms,
          .unfinished_replies = unfinished_replies_};
}

void Router::map_read(const Topology& topology) {
  const std::uint64_t before = map_.version();
  ++counts_.map_reads;
  map_problem_.clear();
  map_.take(topology);
  std::vector<NodeAddress> nodes = topology.replicas;
  for (const SlotRange& range : topology.ranges) nodes.push_back(range.primary);
  subscriber_.nodes_are(nodes);
  if (map_.version() != before)
    server_.log(LogLevel::notice, "the cluster has " + std::to_string(map_.slots_covered()) +
                                      " slots; primaries: " + std::to_string(map_.owners()));
  resume_held();
}

void Router::map_not_read(const NodeAddress& asked, const std::string& why) {
  ++counts_.map_failures;
  std::string problem = asked.text() + ": " + why;
  if (problem != map_problem_) server_.log(LogLevel::warning, "cannot read the cluster's slots: " + problem);
  map_problem_ = std::move(problem);
}

bool Router::busy() const {
  return !held_.empty() || reader_.busy() || own_links_.hurried() || subscriber_.hurried() ||
         map_.any_link([](const NodeLink& link) { return !link.idle(); });
}

std::int64_t Router::next_look_ms() const { return looked_ms_ + (busy() ? look_often_ms : look_ms); }

void Router::look_at_clock() {
  looked_ms_ = server_.steady_ms;
  std::erase_if(ended_, [](const auto& link) { return link->finished(); });
  reader_.look_at_clock();
  look_after_waiting();
  own_links_.look_at_clock();
  subscriber_.look_at_clock();
  map_.each_node([](Node& node) {
    for (const auto& link : node.links) {
      if (link != nullptr) link->look_at_clock();
    }
  });
  // Held clients check whether a node can be tried again, and whether they have waited too long. Only some at
  // a time, because there may be thousands.
  resume_held(64 + held_.size() / 16);
}

GatewayFacts Router::facts() const {
  GatewayFacts facts = counts_;
  facts.seed = seed_.text();
  facts.nodes = map_.owners();
  facts.slots_covered = map_.slots_covered();
  facts.held_clients = held_.size();
  facts.own_links = own_links_.taken();
  facts.idle_own_links = own_links_.idle();
  facts.topics = subscriber_.topics();
  map_.any_link([&facts](const NodeLink& link) {
    ++facts.links;
    facts.waiting += link.waiting();
    return false;
  });
  return facts;
}

void Router::shut_down() {
  reader_.shut_down();
  server_.pubsub.nobody_listens = nullptr;
  own_links_.shut_down();
  subscriber_.shut_down();
  sending_.clear();
  map_.each_node([this](Node& node) {
    for (auto& link : node.links) {
      if (link == nullptr) continue;
      link->close();
      ended_.push_back(std::move(link));  // freed once its transport no longer refers to it
    }
  });
}

}  // namespace weir::kv::cluster
