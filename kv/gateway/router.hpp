// The gateway: passes each client's commands on to the nodes of a cluster, and their replies back in order.
//
// For each request, in order: where it goes (routing.hpp); whether it has to wait (below); the server's own
// checks, as for any command; then it joins the link to its node and takes a place in the client's lane. A
// node may answer that the slot is elsewhere: MOVED changes the map and the request goes there, ASK sends it
// there once, after ASKING; after `most_redirections` the client gets the node's answer.
//
// A client's next request waits, and its bytes with it, while
//   - its lane is full, or the link to the node is;
//   - the slot map has changed since its requests that are under way left: they could overtake each other;
//   - the request is answered here and replies from nodes come before it;
//   - no link to the slot's node is ready: it is being made, or made again, or the slot has moved. At most
//     cluster-gateway-timeout; then the client is told.
// What MULTI opens is queued here, by the server's own means, and leaves with EXEC in one piece; all of it
// has to be of one slot.
//
// Nothing that was sent is sent again when its link ends: the client is told that it may have run.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "cluster/redirect.hpp"
#include "kv/gateway/gateway.hpp"
#include "kv/gateway/lane.hpp"
#include "kv/gateway/routing.hpp"
#include "kv/gateway/slot_map.hpp"
#include "kv/gateway/topology_reader.hpp"
#include "kv/server/server.hpp"

namespace weir::kv::cluster {

using weir::cluster::Redirect;

// The server passes commands on to the cluster that its settings name, if they do. The error: what in them
// does not go together with that.
std::expected<void, std::string> pass_on_to_cluster(Server& server);

class Router final : public Gateway, private NodeLink::Owner, private TopologyReader::User {
 public:
  static constexpr unsigned most_redirections = 5;

  Router(Server& server, NodeAddress seed);
  ~Router() override;

  bool execute(Client& client, Arguments words) override;
  bool pass_on(Client& client, const Command& command, Arguments words) override;
  bool end_later(Client& client, std::string_view error) override;
  void forget(Client& client) override;
  void end_round() override;
  void look_at_clock() override;
  std::int64_t next_look_ms() const override;
  GatewayFacts facts() const override;
  void shut_down() override;

 private:
  // NodeLink::Owner
  void replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply) override;
  void link_ready(NodeLink& link) override;
  void link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) override;
  Opened<std::unique_ptr<Dialling>> dial_node(const NodeAddress& address, Dialled dialled) override;
  BlockPool& blocks() override { return server_.blocks; }
  std::int64_t now_ms() override { return server_.now_ms; }
  void round_is_over() override { server_.end_round(); }
  // TopologyReader::User
  void map_read(const Topology& topology) override;
  void map_not_read(const NodeAddress& asked, const std::string& why) override;
  LinkSettings link_settings() const override;

  // Where the request that is being executed goes.
  struct Next {
    Route route;
    NodeLink* link = nullptr;  // null: it does not leave
    bool muted = false;        // its reply is not wanted
    bool queues = false;       // MULTI is open: it stays here until EXEC
    std::string unreachable;   // why no node can be asked, if there is no link
  };
  enum class Waits : std::uint8_t { no, for_replies, for_all_replies, for_node };

  Lane& lane_of(Client& client);
  Route route(Client& client, Lane& lane, Arguments words);
  Route in_transaction(Client& client, Lane& lane, const Command& command, Route route);
  void append_transaction(const Client& client);
  Waits waits(const Client& client, Lane& lane);
  Waits find_link(Protocol protocol, Lane& lane);
  bool refuse_in_transaction(Client& client, Lane& lane, const Command& command);
  std::string refusal(const Command& command) const;
  bool execute_behind(Client& client, Lane& lane, Arguments words);
  void leave(Client& client, std::string_view reply);
  void answer(const Request& waited, std::string_view reply);
  void reply_left(Client& client, Lane& lane);
  // The link to send to, ready or not; null: `problem` says why there is none now.
  NodeLink* link_to(Node& node, Protocol protocol, std::string& problem);
  bool follow(NodeLink& from, Request& waited, std::string_view request, const Redirect& redirect);
  // The clients that wait for a node try again, those that have waited longest first.
  void resume_held(std::size_t most = SIZE_MAX);
  void will_send(NodeLink& link);
  bool busy() const;

  Server& server_;
  const NodeAddress seed_;
  Routing routing_;
  SlotMap map_;
  TopologyReader reader_;
  Next next_;
  std::string request_;                           // the one that leaves, as text
  ReplyQueue aside_;                              // what is answered here while replies are awaited
  std::vector<NodeLink*> sending_;                // have something to send at the end of the round
  std::vector<std::uint64_t> held_;               // clients
  std::vector<std::unique_ptr<NodeLink>> ended_;  // until nothing refers to them
  std::string map_problem_;                       // why it could not be read, the last time
  std::int64_t looked_ms_ = 0;
  GatewayFacts counts_;
};

}  // namespace weir::kv::cluster
