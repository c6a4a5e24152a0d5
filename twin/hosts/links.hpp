// Interfaces of the network namespace in which the object was made: bridge, virtual cables, addresses.
//
// Needs CAP_NET_ADMIN over that namespace. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "twin/hosts/host_error.hpp"

struct nl_sock;

namespace weir::hosts {

class Links {
 public:
  static Result<Links> open();

  Result<void> add_bridge(const std::string& name);
  // An interface `name` here, and its other end, `peer`, in another network namespace.
  Result<void> add_cable(const std::string& name, const std::string& peer, int peer_namespace,
                         unsigned mtu_bytes);
  // The same, with both ends in other network namespaces.
  Result<void> add_cable_between(const std::string& name, int one_namespace, int other_namespace,
                                 unsigned mtu_bytes);
  Result<void> plug_into(const std::string& bridge, const std::string& name);
  Result<void> add_address(const std::string& name, std::uint32_t ipv4, unsigned prefix);
  // Packets for the address go out by one of these, chosen by their addresses and ports. Replaces what was.
  struct Way {
    std::string interface;
    std::uint32_t neighbour_ipv4 = 0;  // a router's at its other end; 0: the address itself is there
  };
  Result<void> set_route(std::uint32_t ipv4, const std::vector<Way>& ways);
  // No packets go there; no error if none did.
  Result<void> remove_route(std::uint32_t ipv4);
  // What each interface has received and sent, by name.
  struct Counters {
    std::uint64_t received_packets = 0, received_bytes = 0, sent_packets = 0, sent_bytes = 0;
  };
  Result<std::map<std::string, Counters>> counters();
  Result<void> set_up(const std::string& name, bool up);

 private:
  struct Closer {
    void operator()(nl_sock* socket) const;
  };
  explicit Links(nl_sock* socket) : socket_(socket) {}
  std::unique_ptr<nl_sock, Closer> socket_;
};

}  // namespace weir::hosts
