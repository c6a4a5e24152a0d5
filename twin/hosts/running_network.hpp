// A running network, for every process of its user: what it consists of, and its end. A process in one of its
// hosts can do the same.
//
// Each call is one exchange with the keeper and blocks for it. Cause::no_network if the keeper is gone.
#pragma once

#include <string>
#include <vector>

#include "twin/hosts/host_error.hpp"
#include "twin/hosts/namespaces.hpp"
#include "twin/hosts/requests.hpp"

namespace weir::hosts {

Result<Listing> list_hosts(const std::string& folder);

// The namespaces of a host, which live as long as these descriptors; its processes do not. For
// enter_host.hpp. Cause::no_host names the hosts there are.
Result<HostNamespaces> find_host(const std::string& folder, const std::string& host);

// What the network's starter wants in the environment of every program there.
Result<Variables> variables_of(const std::string& folder, const std::string& host);

// Of a network whose switches route; else none.
Result<std::vector<ListedCable>> list_cables(const std::string& folder);

// Pulls the cable between the host and its switch, or plugs it in again.
Result<void> plug(const std::string& folder, const std::string& host, bool in);
// The same with the cable between two nodes.
Result<void> plug_between(const std::string& folder, const std::string& one, const std::string& other,
                          bool in);

// Ends the network and every program in it: SIGTERM, and SIGKILL after 2 s. Returns when all of it is gone.
Result<void> end_network(const std::string& folder);

}  // namespace weir::hosts
