// The nodes behind an attacked gateway: one that keeps texts, and one that an attacker can be.
#pragma once

#include <string>

#include "tests/kv/fake_node.hpp"

namespace weir::bystander {

class Cluster {
 public:
  static constexpr const char* text_key = "foo";  // the honest node has a text under it

  // Until the destructor, nodes::listening_variable names the other node's place.
  Cluster();
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  std::string address() const { return honest_.address(); }

 private:
  kv::testing::FakeNode honest_;
  OwnedFd place_;  // attackers inherit it
};

}  // namespace weir::bystander
