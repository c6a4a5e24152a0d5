// A gateway in this process in front of two nodes that reply as the test wants.
#pragma once

#include "tests/kv/fake_node.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {

// "hello" is in slot 866 and "bar" in 5061, both at the first node; "foo" is in 12182, at the second.
struct Cluster {
  Cluster() {
    first.slots(two_nodes(first.port(), second.port()));
    second.slots(two_nodes(first.port(), second.port()));
  }

  FakeNode first, second;
};

inline Settings gateway_to(const FakeNode& seed) {
  Settings settings = quiet_settings();
  settings.cluster_gateway = seed.address();
  return settings;
}

struct Gateway : Cluster {
  explicit Gateway(Settings given = {}) : server(merged(std::move(given))) {}

  Settings merged(Settings settings) {
    settings.port = 0;
    settings.cluster_gateway = first.address();
    return settings;
  }

  RunningServer server;
  WireClient client = server.connect();
};

inline cluster::GatewayFacts facts(Gateway& gateway) {
  return gateway.server.run([](Server& s) { return s.gateway->facts(); });
}

template <class Reached>
void await(Gateway& gateway, Reached reached) {
  while (!reached(facts(gateway))) std::this_thread::yield();
}

inline std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

inline FakeNode::Answer always(std::string reply) {
  return [reply](const FakeNode::Words&) { return reply; };
}

inline FakeNode::Answer closes() {
  return [](const FakeNode::Words&) { return std::nullopt; };
}

}  // namespace weir::kv::testing
