// Reads network files. A file that is read without complaint must keep the invariants of a Network, and its
// hosts must reach each other. Any other file must cause a complaint.
#include <cstdint>
#include <cstdlib>

#include "fabric/topology/read_network.hpp"
#include "fabric/topology/routing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::fabric;
  Complaints complaints;
  const auto no_files = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  const auto network = read_network({reinterpret_cast<const char*>(data), size}, "fuzz.toml", no_files,
                                    complaints, {.most_nodes = 200});
  if (network.has_value() != complaints.none()) std::abort();
  if (!network) return complaints.text().empty() ? (std::abort(), 0) : 0;
  for (std::uint32_t p = 0; p < network->ports.size(); ++p) {
    const auto& port = network->ports[p];
    if ((*network)[port.peer].peer != PortId{p} || (*network)[port.peer].link != port.link) std::abort();
    if (port.node == (*network)[port.peer].node) std::abort();
  }
  const Routes routes(*network);
  for (std::uint32_t from = 0; from < network->nodes.size(); ++from)
    for (std::uint32_t to = 0; to < network->nodes.size(); ++to)
      if (network->nodes[from].kind == NodeKind::host && network->nodes[to].kind == NodeKind::host &&
          from != to && routes.next_ports({from}, {to}).empty())
        std::abort();
  return 0;
}
