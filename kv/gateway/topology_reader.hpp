// Keeps the slot map fresh: asks one node after another for CLUSTER SLOTS until one answers.
//
// It asks at the start, about every ten seconds, and soon after the map looks outdated. It asks one node at a
// time, over a connection of its own that lasts at most a second, so a silent node costs a second and delays
// no client. Nodes take turns: one that is cut off without knowing it is not asked twice in a row. Threading:
// the server's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/gateway/link_user.hpp"
#include "kv/gateway/topology.hpp"

namespace weir::kv::cluster {

class TopologyReader final : private LinkKeeper {
 public:
  class User : public LinkUser {
   public:
    virtual void map_read(const Topology& topology) = 0;
    virtual void map_not_read(const NodeAddress& asked, const std::string& why) = 0;

   protected:
    ~User() = default;
  };

  TopologyReader(User& user, NodeAddress seed);
  ~TopologyReader();

  // Call when the map looks outdated.
  void refresh_soon() { wanted_ = true; }
  bool busy() const { return wanted_ || link_ != nullptr; }
  void look_at_clock();
  void shut_down();

 private:
  static constexpr std::int64_t between_ms = 100;       // between two attempts
  static constexpr std::int64_t usual_age_ms = 10'000;  // of a map that nothing contradicts
  static constexpr std::int64_t patience_ms = 1000;

  void replied(NodeLink& link, Request waited, std::string_view request, std::string_view reply) override;
  void link_ready(NodeLink& link) override;
  void link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) override;

  void ask_next();
  void done();

  User& user_;
  const NodeAddress seed_;
  std::vector<NodeAddress> known_;  // nodes that can be asked, the seed first
  std::size_t turn_ = 0;
  bool wanted_ = true;
  std::int64_t asked_ms_ = 0;  // 0: never
  std::unique_ptr<NodeLink> link_;
  std::vector<std::unique_ptr<NodeLink>> over_;  // ended; freed once nothing refers to them
};

}  // namespace weir::kv::cluster
