// Connections to nodes that one client has to itself for a while: until its transaction is over (WATCH), or
// until its blocking command is answered.
//
// A connection that holds no state of its client is kept for `keep_ms` for the next client, because making
// one costs two round trips; any other is closed. Bounded by the limits given to take(): so many in all,
// counting idle ones, of which one is closed when another is needed; and so many for the clients of one user.
// Threading: the server's one thread.
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

  struct Limits {
    std::size_t all;
    std::size_t one_user;
  };
  struct Borrower {
    std::shared_ptr<Lane> lane;
    std::string user;  // the name
  };
  // Returns a connection for that client; null: a limit is reached. Call go() after send(). It ends with
  // give_back(), drop() or User::own_link_ended().
  NodeLink* take(const NodeAddress& address, Protocol protocol, Borrower borrower, const Limits& limits);
  std::size_t taken_by(const std::string& user) const;
  // Sends what is queued, once the connection is made. Dialling may fail within this call.
  static void go(NodeLink& link) { link.begun() ? link.flush() : link.dial(); }
  // Keeps the connection for another client; the node must hold no state of this one.
  void give_back(NodeLink& link);
  void drop(NodeLink& link);

  std::size_t taken() const { return taken_.size(); }
  std::size_t idle() const { return idle_.size(); }
  // Whether one of them has a reply due soon.
  bool hurried() const;
  // The nodes at which clients wait in blocking commands, without duplicates.
  std::vector<NodeAddress> waited_at() const;
  // Call when the node is dead: ends the connections that wait there.
  void node_failed(const NodeAddress& address, const std::string& why);
  void look_at_clock();
  void shut_down();

 private:
  struct Taken {
    std::unique_ptr<NodeLink> link;
    Borrower borrower;
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
  NodeLink* lend(std::unique_ptr<NodeLink> link, Borrower borrower);
  Taken take_back(NodeLink& link);

  User& user_;
  std::map<NodeLink*, Taken> taken_;
  std::map<std::string, std::size_t> taken_by_;  // by user
  std::deque<Idle> idle_;                        // least recently used first
  std::vector<std::unique_ptr<NodeLink>> over_;  // ended; freed once nothing refers to them
};

}  // namespace weir::kv::cluster
