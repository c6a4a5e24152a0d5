// Names of ports that the file left open, from the ports that a switch's model has.
//
// A link takes the slowest free port that is fast enough, in the order of the front. Where there are fewer
// ports than links, ports are split (a breakout): EthernetN becomes EthernetN, EthernetN + lanes / k, ..., as
// SONiC names them. Switches whose model knows no ports, and hosts, were named when the link was made.
#pragma once

#include "fabric/topology/network.hpp"

namespace weir::fabric {

// Sets name, lanes and on_front of the ports of every switch whose model has ports. Links for which no port
// is left get numbers behind the last one, and on_front = false.
void name_ports(Network& network);

}  // namespace weir::fabric
