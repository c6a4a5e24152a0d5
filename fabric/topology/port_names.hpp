// Names the ports that the file left unnamed, using the ports of the switch's model.
//
// A link takes the slowest free port that is fast enough, in front-panel order. If there are fewer ports than
// links, ports are split (breakout): EthernetN becomes EthernetN, EthernetN + lanes / k, ..., as in SONiC.
// Ports of hosts, and of switches whose model lists no ports, got their names with their links.
#pragma once

#include "fabric/topology/network.hpp"

namespace weir::fabric {

// Sets name, lanes and on_front for the ports of every switch whose model lists ports. Links without a port
// get numbers after the last one, and on_front = false.
void name_ports(Network& network);

}  // namespace weir::fabric
