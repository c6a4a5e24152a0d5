// The gateway: passes each client's commands on to the nodes of a cluster, and their replies back in order.
//
// For each request, in order: route it (routing.hpp); decide whether it has to wait (below); make the
// server's own checks, as for any command; then add it to the link to its node and take a place in the
// client's lane. A node may answer that the slot is elsewhere: MOVED changes the map and the request goes to
// the new node; ASK sends only this request there, after ASKING. After `most_redirections` the client gets
// the node's answer.
//
// A client's next request, and the bytes behind it, wait while
//   - its lane is full, or the link to the node is;
//   - the slot map has changed since its requests in flight were sent: they could overtake each other;
//   - the request is answered here, and replies from nodes are due before its reply;
//   - no link to the slot's node is ready, because it is being made (again) or the slot has moved. This lasts
//     at most cluster-gateway-timeout; then the client gets an error.
// After MULTI, commands are queued here by the server's own means, and are sent with EXEC in one piece; all
// their keys must be in one slot.
//
// Some commands need more than a reply (router_connections.cpp). WATCH and what follows it, and blocking
// commands, get a connection of the client's own (own_links.hpp). The gateway itself subscribes to what its
// clients subscribe to (subscriber.hpp). Until such a command is answered, the client's next request waits. A
// command that goes to all nodes waits until all of them can be asked (router_all_nodes.cpp).
//
// WAIT goes to the node that took the client's last write, by a connection of the client's own. There a PING
// comes first: a node waits for replicas to have what it had done when the connection's last command ended.
//
// A request that was sent is never sent again when its link ends: the client is told that it may have run.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/redirect.hpp"
#include "kv/call/server_parts.hpp"
#include "kv/core/gateway.hpp"
#include "kv/gateway/lane.hpp"
#include "kv/gateway/own_links.hpp"
#include "kv/gateway/routing.hpp"
#include "kv/gateway/slot_map.hpp"
#include "kv/gateway/subscriber.hpp"
#include "kv/gateway/topology_reader.hpp"

namespace weir::kv::cluster {

using weir::cluster::Redirect;

// Makes the server pass commands on to the cluster that its settings name, if they name one. The error says
// which settings contradict that.
std::expected<void, std::string> pass_on_to_cluster(ServerParts& server);

class Router final : public Gateway,
                     private NodeLink::Owner,
                     private TopologyReader::User,
                     private OwnLinks::User,
                     private Subscriber::User {
 public:
  static constexpr unsigned most_redirections = 5;

  Router(ServerParts& server, NodeAddress seed);
  ~Router() override;

  bool execute(Client& client, Arguments words) override;
  bool pass_on(Client& client, const Command& command, Arguments words) override;
  bool end_later(Client& client, std::string_view error) override;
  void forget(Client& client) override;
  bool owes(const Client& client) const override;
  bool blocks(const Client& client) const override;
  void end_round() override;
  void look_at_clock() override;
  std::int64_t next_look_ms() const override;
  GatewayFacts facts() const override;
  void shut_down() override;

 private:
  // NodeLink::Owner:
  void replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply) override;
  void link_ready(NodeLink& link) override;
  void link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) override;
  Opened<std::unique_ptr<Dialling>> dial_node(const NodeAddress& address, Dialled dialled) override;
  BlockPool& blocks() override { return server_.blocks; }
  std::int64_t now_ms() override { return server_.steady_ms; }
  void round_is_over() override { server_.end_round(); }
  // OwnLinks::User:
  void own_link_replied(NodeLink& link, Request waited, std::string_view request,
                        std::string_view reply) override;
  void own_link_ended(NodeLink& link, const std::shared_ptr<Lane>& lane, const std::string& why,
                      std::deque<Request> unanswered, bool sent) override;
  // Subscriber::User:
  void published(PubSub::Kind kind, std::string_view topic, std::string_view channel,
                 std::string_view message) override;
  bool anybody_listens(PubSub::Kind kind, std::string_view topic) const override;
  void subscribed(std::uint64_t client) override;
  void not_subscribed(std::uint64_t client, std::string_view error) override;
  void deaf(PubSub::Kind kind, std::string_view topic, const std::string& why) override;
  void slot_moves(std::string_view shard_channel) override;
  const NodeAddress* redirected(const Redirect& redirect) override;
  // TopologyReader::User:
  void map_read(const Topology& topology) override;
  void map_not_read(const NodeAddress& asked, const std::string& why) override;
  LinkSettings link_settings() const override;

  // The route of the request that is being executed.
  struct Next {
    Route route;
    NodeLink* link = nullptr;      // null: it is not sent
    std::vector<NodeLink*> links;  // for a command to all nodes
    bool muted = false;            // the client does not want the reply
    bool queues = false;           // MULTI is open: keep it until EXEC
    std::string unreachable;       // if there is no link: why no node can be asked

    // Resets the members, keeping their memory.
    void begin(const Route& its_route, bool is_muted) {
      route = its_route;
      link = nullptr;
      links.clear();
      muted = is_muted;
      queues = false;
      unreachable.clear();
    }
  };
  enum class Waits : std::uint8_t { no, for_replies, for_all_replies, for_node };

  Lane& lane_of(Client& client);
  Route route(Client& client, Lane& lane, Arguments words);
  Route in_transaction(Client& client, Lane& lane, const Command& command, Route route);
  Route to_written_node(Lane& lane, Route route);
  Node* node_of_link(std::uint64_t number);
  void note_write(const Request& waited, const NodeLink& link);
  void append_transaction(const Client& client);
  // For commands that need more than a reply: see router_connections.cpp.
  Waits waits_to_hold(Client& client, Lane& lane);
  bool hold_connection(Client& client, const Command& command, Arguments words);
  void send_by_own_link(Client& client, NodeLink& link, const Command& command, Arguments words);
  NodeLink* take_own_link(Client& client, const Command& command);
  NodeLink* borrow_link(const NodeAddress& address, const Client& client);
  void subscribe(Client& client, const Command& command, Arguments words);
  void watch_replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply);
  void exec_replied(NodeLink& link, const Request& waited, std::string_view reply);
  bool follow_by_own_link(Request& waited, std::string_view request, const Redirect& redirect,
                          NodeLink*& place);
  void end_watching(Lane& lane);
  // CLIENT UNBLOCK of a client that waits at a node. Returns false if it names no such client.
  bool unblock_at_node(Client& client, Arguments words);
  void look_after_waiting();
  // For commands that more than one node answers: see router_all_nodes.cpp.
  Waits find_all_links(Protocol protocol, Lane& lane);
  void send_to_all(Client& client, const Command& command, Arguments words);
  void send_scan(Client& client, Arguments words);
  Waits waits(const Client& client, Lane& lane);
  Waits find_link(Protocol protocol, Lane& lane);
  // Waits::for_node; once it has waited too long, sets next_.unreachable to `problem` and gives Waits::no.
  Waits wait_for_node(const Lane& lane, std::string problem);
  bool refuse_in_transaction(Client& client, Lane& lane, const Command& command);
  std::string refusal(const Command& command) const;
  bool execute_behind(Client& client, Lane& lane, Arguments words);
  void leave(Client& client, std::string_view reply);
  void answer(const Request& waited, std::string_view reply);
  void reply_left(Lane& lane);
  // The link to send to, ready or not; null: `problem` says why there is none at the moment.
  NodeLink* link_to(Node& node, Protocol protocol, std::string& problem);
  // The node that a redirection names; null: there are too many nodes.
  Node* learn(const Redirect& redirect);
  bool follow(NodeLink& from, Request& waited, std::string_view request, const Redirect& redirect);
  // Lets the clients that wait for a node try again, those that have waited longest first.
  void resume_held(std::size_t most = SIZE_MAX);
  void will_send(NodeLink& link);
  bool busy() const;

  ServerParts& server_;
  const NodeAddress seed_;
  const std::shared_ptr<UnfinishedReplies> unfinished_replies_ = std::make_shared<UnfinishedReplies>();
  Routing routing_;
  SlotMap map_;
  TopologyReader reader_;
  OwnLinks own_links_;
  Subscriber subscriber_;
  // A client's subscription that nodes have not confirmed yet.
  struct Subscription {
    const Command* command;
    std::vector<std::string> words;
    std::uint64_t number;  // its number in the lane
  };
  std::map<std::uint64_t, Subscription> subscriptions_;
  Next next_;
  std::string request_;                           // the encoded request that is being sent
  ReplyQueue aside_;                              // collects replies made here while earlier ones are due
  std::vector<NodeLink*> sending_;                // links to flush at the end of the round
  std::vector<std::uint64_t> held_;               // clients that wait for a node
  std::vector<std::unique_ptr<NodeLink>> ended_;  // freed once nothing refers to them
  std::string map_problem_;                       // why the slot map could not be read the last time
  std::int64_t looked_ms_ = 0;
  std::int64_t pinged_ms_ = 0;    // when the nodes at which clients wait were last asked
  std::uint64_t links_made_ = 0;  // shared ones: each has its number
  GatewayFacts counts_;
};

}  // namespace weir::kv::cluster
