// The gateway's own subscriptions at nodes, shared by all of its clients.
//
// A topic (channel, pattern or shard channel) that any client listens to is subscribed to once, and messages
// reach the clients through the server's own PubSub. One RESP3 connection carries all topics of a node.
// Channels and patterns are subscribed to at a single node, because a cluster spreads every PUBLISH to all
// nodes; shard channels at the node that has their slot.
//
// No message is lost silently. A client is told that it has subscribed only after the node has confirmed it.
// When such a connection ends, or its node is silent for too long, its listeners are told (User::deaf):
// subscribing again in the background would leave a gap that they cannot see. If a node drops a shard channel
// because its slot moves, the clients get the node's message.
//
// Bounded: one connection for each node, and the topics of the clients, each within its own limits.
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/redirect.hpp"
#include "kv/clients/pubsub.hpp"
#include "kv/gateway/link_user.hpp"

namespace weir::kv::cluster {

class Subscriber final : private LinkKeeper {
 public:
  using Kind = PubSub::Kind;
  using Redirect = weir::cluster::Redirect;

  class User : public LinkUser {
   public:
    virtual void published(Kind kind, std::string_view topic, std::string_view channel,
                           std::string_view message) = 0;
    // Whether any client of this server listens to it.
    virtual bool anybody_listens(Kind kind, std::string_view topic) const = 0;
    // Everything that the client waits for is confirmed. not_subscribed(): it failed, and `error` is a whole
    // reply.
    virtual void subscribed(std::uint64_t client) = 0;
    virtual void not_subscribed(std::uint64_t client, std::string_view error) = 0;
    // Messages on the topic may be lost from now on; `why` is the error for its listeners.
    virtual void deaf(Kind kind, std::string_view topic, const std::string& why) = 0;
    // The node has ended the subscription because the channel's slot moves.
    virtual void slot_moves(std::string_view shard_channel) = 0;
    // The node says that another one has the slot; returns where to ask next, or null.
    virtual const NodeAddress* redirected(const Redirect& redirect) = 0;

   protected:
    ~User() = default;
  };

  explicit Subscriber(User& user) : LinkKeeper(user), user_(user) {}

  // Returns true if the nodes have already confirmed all topics; otherwise subscribed() or not_subscribed()
  // follows. `node` is where to subscribe; channels and patterns stay at the node where the first of them
  // was.
  bool subscribe(std::uint64_t client, Kind kind, const NodeAddress& node,
                 const std::vector<std::string_view>& topics);
  // The client no longer waits.
  void forget(std::uint64_t client);
  // The topic's last listener has left.
  void nobody_listens(Kind kind, std::string_view topic);
  // The cluster now consists of these nodes; any other one no longer hears what is published.
  void nodes_are(const std::vector<NodeAddress>& nodes);

  // Sends what was queued above. Not earlier, because a connection may fail at once, which reaches many
  // clients.
  void end_round();
  std::size_t topics() const { return topics_.size(); }
  std::size_t links() const { return ears_.size(); }
  bool hurried() const;
  void look_at_clock();
  void shut_down();

 private:
  static constexpr std::int64_t between_pings_ms = 1000;
  static constexpr unsigned most_redirections = 5;

  using Topic = std::pair<Kind, std::string>;
  // A request to a node that it has not answered yet.
  struct Asked {
    Topic topic;
    std::uint64_t number = 0;
    bool subscribes = false;
  };
  struct Ear {
    std::unique_ptr<NodeLink> link;
    std::deque<Asked> asked;
    std::size_t topics = 0;
    std::int64_t pinged_ms = 0;
  };
  struct Place {
    NodeAddress node;
    std::uint64_t number = 0;  // of the latest request to subscribe
    bool confirmed = false;
    std::uint8_t redirections = 0;
    std::set<std::uint64_t> waiting;  // clients whose request names it and is not wholly confirmed yet
  };
  struct Waiting {
    std::vector<Topic> topics;
    std::size_t missing = 0;  // number of its topics that are not confirmed
  };

  void replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply) override;
  bool pushed(NodeLink& link, std::string_view push) override;
  void link_ready(NodeLink& link) override { link.flush(); }
  void link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) override;

  void ask(const Topic& topic, Place& place);
  void say(Ear& ear, bool subscribes, const Topic& topic, std::uint64_t number);
  bool confirmed(Ear& ear, bool subscribes, Kind kind, std::string_view topic);
  void refused(const Asked& asked, std::string_view error, std::string_view host);
  void settle(const Topic& topic);
  void release(std::uint64_t client);
  void fail(const std::set<std::uint64_t>& clients, std::string_view error);

  User& user_;
  std::map<NodeAddress, Ear> ears_;
  NodeAddress home_;  // the node for channels and patterns, while it is in ears_
  std::map<Topic, Place, std::less<>> topics_;
  std::map<std::uint64_t, Waiting> waiting_;  // by client id
  std::set<NodeAddress> saying_;              // nodes with something to send at the end of the round
  std::uint64_t last_number_ = 0;
  std::vector<std::unique_ptr<NodeLink>> over_;  // ended; freed once nothing refers to them
};

}  // namespace weir::kv::cluster
