// Interfaces of the network namespace in which the object was made: bridge, virtual cables, addresses.
//
// Needs CAP_NET_ADMIN over that namespace. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

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
  Result<void> plug_into(const std::string& bridge, const std::string& name);
  Result<void> add_address(const std::string& name, std::uint32_t ipv4, unsigned prefix);
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
