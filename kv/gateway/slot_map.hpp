// Which node has which slot, as last reported by the cluster. `version` changes with every change: a client
// with requests in flight that were sent by an older version sends no more until those are answered, since
// they could arrive in another order.
//
// A Node is an address and the links that carry its requests. It lives until the map forgets it, which
// happens only to nodes without slots and links. Threading: the server's one thread.
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
  std::array<std::unique_ptr<NodeLink>, 2> links;  // one for RESP2, one for RESP3
  std::int64_t failed_ms = 0;                      // when making a link last failed; 0: it has not
  std::string problem;                             // why it failed
  bool has_slots = false;
  std::uint16_t number = 0;  // its index in the map

  bool linked() const { return links[0] != nullptr || links[1] != nullptr; }
};

class SlotMap {
 public:
  static constexpr std::size_t most_nodes = 4096;

  std::uint64_t version() const { return version_; }
  bool known() const { return version_ != 0; }
  Node* owner(std::uint16_t slot) const { return numbered_[owners_[slot]]; }  // null: no node has it
  // Any node that has slots; null: none has.
  Node* any() const;
  // The node with slots that has this number, or else the next higher one; null: none has.
  Node* from(std::uint16_t number) const;
  std::size_t slots_covered() const;

  // The node with that address, added if it is new; null: there are too many.
  Node* node(const NodeAddress& address);
  void move(std::uint16_t slot, Node& to);
  void take(const Topology& topology);

  template <class Visit>
  void each_node(Visit visit) {
    for (auto& [address, node] : nodes_) visit(*node);
  }
  // Whether `test` is true for any link; stops at the first.
  template <class Test>
  bool any_link(Test test) const {
    for (const auto& [address, node] : nodes_) {
      for (const auto& link : node->links) {
        if (link != nullptr && test(*link)) return true;
      }
    }
    return false;
  }
  // Number of nodes that have slots.
  std::size_t owners() const;

 private:
  std::map<NodeAddress, std::unique_ptr<Node>> nodes_;
  // Indexed by Node::number; 0 means no node.
  std::vector<Node*> numbered_{nullptr};
  // Numbers instead of pointers, so that the table fits the L1 cache: each request reads it.
  std::array<std::uint16_t, slot_count> owners_{};
  std::uint64_t version_ = 0;
};

}  // namespace weir::kv::cluster
