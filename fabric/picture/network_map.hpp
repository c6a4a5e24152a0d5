// Draws a network: switches by tier (in a circle if there are no tiers), the links between them, and their
// hosts below the leaves. The caller decides what is marked, and why.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fabric/topology/network.hpp"

namespace weir::fabric {

struct MapMark {
  std::string css;     // class in the style sheet
  std::string tip;     // shown when the pointer rests on it
  double width = 1;    // of a link
  bool arrow = false;  // shows the direction of its packets, beside the link's other direction
};

struct MapKey {
  std::string css, text;
  bool box = false;  // marks a node; otherwise a link
};

struct NetworkMap {
  const Network& network;
  std::string title{};
  std::map<PortId, MapMark> links{};  // by the sending port
  std::map<NodeId, MapMark> nodes{};
  std::vector<MapKey> keys{};
  bool each_host = false;  // one square each; otherwise their number at their switch
};

std::string svg(const NetworkMap& map);

}  // namespace weir::fabric
