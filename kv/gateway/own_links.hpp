// Connections to nodes that one client has to itself for a while: until its transaction is over (WATCH), or
// until its blocking command is answered.
//
// A connection that comes back without a trace of its client is kept for the next one for `keep_ms`, since to
// make one costs two round trips; any other is closed. Bounded: `most`, idle ones included; an idle one goes
// when another is needed. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv/gateway/link_user.hpp"

namespace weir::kv::cluster {

class OwnLinks final : private LinkKeeper {
 public:
  static constexpr std::int64_t keep_ms = 10'000;

  class User : public LinkUser {
   public:
    virtual void own_link_replied(NodeLink& link, Request waited, std::string_view request,
                                  std::string_view reply) = 0;
    virtual void own_link_ended(NodeLink& link, const std::shared_ptr<Lane>& lane, const std::string& why,
                                std::deque<Request> unanswered, bool sent) = 0;

   protected:
    ~User() = default;
  };

  explicit OwnLinks(User& user) : LinkKeeper(user), user_(user) {}

  // A connection for the client of that lane; null: `most` are taken. After send() comes go(). It ends with
  // give_back(), drop() or User::own_link_ended().
  NodeLink* take(const NodeAddress& address, Protocol protocol, std::shared_ptr<Lane> lane, std::size_t most);
  // What was sent leaves, once the connection is made. That may fail at once.
  static void go(NodeLink& link) { link.begun() ? link.flush() : link.dial(); }
  // The node remembers nothing of the client.
  void give_back(NodeLink& link);
  void drop(NodeLink& link);

  std::size_t taken() const { return taken_.size(); }
  std::size_t idle() const { return idle_.size(); }
  // Whether it is time that one of them answered.
  bool hurried() const;
  // The nodes at which clients wait in blocking commands, each once.
  std::vector<NodeAddress> waited_at() const;
  // The node is dead: ends what waits there.
  void node_failed(const NodeAddress& address, const std::string& why);
  void look_at_clock();
  void shut_down();

 private:
  struct Taken {
    std::unique_ptr<NodeLink> link;
    std::shared_ptr<Lane> lane;
  };
  struct Idle {
    std::unique_ptr<NodeLink> link;
    std::int64_t since_ms;
  };

  void replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply) override {
    user_.own_link_replied(link, std::move(waited), request, reply);
  }
  void link_ready(NodeLink& link) override { link.flush(); }
  void link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) override;

  User& user_;
  std::map<NodeLink*, Taken> taken_;
  std::deque<Idle> idle_;                        // those that came back first are first
  std::vector<std::unique_ptr<NodeLink>> over_;  // until nothing refers to them
};

}  // namespace weir::kv::cluster
