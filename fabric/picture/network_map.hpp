// A network as a drawing: switches by tier (in a circle where there are no tiers), the links between them,
// and below the leaves their hosts. What is marked and why is the caller's business.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fabric/topology/network.hpp"

namespace weir::fabric {

struct MapMark {
  std::string css;     // class of the style sheet
  std::string tip;     // shown where the pointer rests
  double width = 1;    // of a link
  bool arrow = false;  // points where its packets go, and stands beside the link's other direction
};

struct MapKey {
  std::string css, text;
  bool box = false;  // a node's mark; else a link's
};

struct NetworkMap {
  const Network& network;
  std::string title{};
  std::map<PortId, MapMark> links{};  // by the port that sends
  std::map<NodeId, MapMark> nodes{};
  std::vector<MapKey> keys{};
  bool each_host = false;  // a square for each; else their number at their switch
};

std::string svg(const NetworkMap& map);

}  // namespace weir::fabric
