// Who has which slot, as the cluster said last. `version` changes with every change: who has requests on
// their way by an older version does not send more until those are answered, or they might arrive in another
// order.
//
// A Node is a name and the links that carry its requests; it lives until the map forgets it, which it does
// only with nodes that have no slot and no link. Threading: the server's one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cluster/key_slot.hpp"
#include "cluster/node_address.hpp"
#include "kv/gateway/node_link.hpp"
#include "kv/gateway/topology.hpp"

namespace weir::kv::cluster {

using weir::cluster::NodeAddress;
using weir::cluster::slot_count;

struct Node {
  NodeAddress address;
  std::array<std::unique_ptr<NodeLink>, 2> links;  // for RESP2 and RESP3
  std::int64_t failed_ms = 0;  // when a link to it could not be made; 0: none failed since
  std::string problem;         // why
  bool has_slots = false;
  std::uint16_t number = 0;  // in the map

  bool linked() const { return links[0] != nullptr || links[1] != nullptr; }
};

class SlotMap {
 public:
  static constexpr std::size_t most_nodes = 4096;

  std::uint64_t version() const { return version_; }
  bool known() const { return version_ != 0; }
  Node* owner(std::uint16_t slot) const { return numbered_[owners_[slot]]; }  // null: nobody
  // Any node that has slots; null: there is none.
  Node* any() const;
  std::size_t slots_covered() const;

  // The node of that address, made if need be; null: there are too many.
  Node* node(const NodeAddress& address);
  void move(std::uint16_t slot, Node& to);
  void take(const Topology& topology);

  template <class Visit>
  void each_node(Visit visit) {
    for (auto& [address, node] : nodes_) visit(*node);
  }
  // Whether `test` is true for one of the links; those behind that are not looked at.
  template <class Test>
  bool any_link(Test test) const {
    for (const auto& [address, node] : nodes_) {
      for (const auto& link : node->links) {
        if (link != nullptr && test(*link)) return true;
      }
    }
    return false;
  }
  // How many nodes have slots.
  std::size_t owners() const;

 private:
  std::map<NodeAddress, std::unique_ptr<Node>> nodes_;
  // By number. 0 is nobody's.
  std::vector<Node*> numbered_{nullptr};
  // Numbers, as pointers would take more than a processor's nearest cache, and each request looks here.
  std::array<std::uint16_t, slot_count> owners_{};
  std::uint64_t version_ = 0;
};

}  // namespace weir::kv::cluster
