// What the gateway itself subscribes to at nodes, for all of its clients together.
//
// A topic (channel, pattern or shard channel) that any client listens to is subscribed to once, and what is
// published goes to the clients through the server's own PubSub. A connection in RESP3 carries the topics of
// one node: channels and patterns are at one node, since each node of a cluster is told of every PUBLISH;
// shard channels are at the node that has their slot.
//
// No message is lost in silence. A client hears that it has subscribed only after the node has confirmed.
// When such a connection ends, or its node is silent for too long, those who listened by it are told so
// (User::deaf): subscribing again by itself would leave a gap that nobody sees. A shard channel that a node
// gives up because its slot moves is passed on as the node says it.
//
// Bounded: one connection for each node, and what clients, each within its own limits, listen to. Threading:
// the server's one thread.
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
#include "kv/gateway/link_user.hpp"
#include "kv/server/pubsub.hpp"

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
    // What that client waits for is confirmed, all of it; or `error`, a whole reply, says why it is not.
    virtual void subscribed(std::uint64_t client) = 0;
    virtual void not_subscribed(std::uint64_t client, std::string_view error) = 0;
    // Messages of it may be missed from now on, `why` is one for its listeners.
    virtual void deaf(Kind kind, std::string_view topic, const std::string& why) = 0;
    // The node has ended it, since its slot moves.
    virtual void slot_moves(std::string_view shard_channel) = 0;
    // The node says that another has the slot: where to ask, null if nobody can be.
    virtual const NodeAddress* redirected(const Redirect& redirect) = 0;

   protected:
    ~User() = default;
  };

  explicit Subscriber(User& user) : LinkKeeper(user), user_(user) {}

  // True: the nodes have confirmed all of it. False: subscribed() or not_subscribed() follows. `node` is
  // where to subscribe; channels and patterns stay at the node where the first of them was.
  bool subscribe(std::uint64_t client, Kind kind, const NodeAddress& node,
                 const std::vector<std::string_view>& topics);
  // The client waits no more.
  void forget(std::uint64_t client);
  // Its last listener has left.
  void nobody_listens(Kind kind, std::string_view topic);
  // The cluster has these nodes now; who is none of them hears nothing of what is published.
  void nodes_are(const std::vector<NodeAddress>& nodes);

  // What was said above leaves. Not before: a connection may end at once, of which many hear.
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
  // A request to a node that is not answered yet.
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
    std::uint64_t number = 0;  // of the request that subscribes
    bool confirmed = false;
    std::uint8_t redirections = 0;
    std::set<std::uint64_t> waiting;  // clients whose request names it, until all that one names is confirmed
  };
  struct Waiting {
    std::vector<Topic> topics;
    std::size_t missing = 0;  // so many of them are not confirmed
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
  NodeAddress home_;  // of channels and patterns, while it has an ear
  std::map<Topic, Place, std::less<>> topics_;
  std::map<std::uint64_t, Waiting> waiting_;  // by client
  std::set<NodeAddress> saying_;              // their ears have something to send at the end of the round
  std::uint64_t last_number_ = 0;
  std::vector<std::unique_ptr<NodeLink>> over_;  // until nothing refers to them
};

}  // namespace weir::kv::cluster
