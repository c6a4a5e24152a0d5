// Implements read_network.hpp: converts the tables of a file into a Network. read_network.cpp reads the
// switches' behaviour (models, classes, hints, decisions); read_topology.cpp reads the cabling (generators,
// nodes, links, routes). Single-threaded; used once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fabric/topology/generate.hpp"
#include "fabric/topology/port_names.hpp"
#include "fabric/topology/reading.hpp"

namespace weir::fabric {

class NetworkReader {
 public:
  NetworkReader(Table& root, const FileOpener& open, Complaints& complaints, const ReadLimits& limits)
      : root_(root), open_(open), complaints_(complaints), limits_(limits) {}

  // Complete only if there were no complaints.
  Network read() {
    network_.name = root_.string("name").value_or("network");
    read_models();
    read_classes();
    read_hints();
    read_overrides();
    read_generators();
    read_nodes();
    read_links();
    name_ports(network_);
    read_routing();
    return std::move(network_);
  }

 private:
  void read_models();
  void add_model(SwitchModel model);
  void read_classes();
  void read_dscps();
  void read_hints();
  void read_overrides();
  void read_generators();
  void read_leaf_spine(Table table);
  void read_fat_tree(Table table);
  LevelLinks read_level(Table& table, std::string_view to);
  void take_node(Node node);
  void read_nodes();
  void read_links();
  void read_routing();
  void read_route(Table& table);
  void read_detour(Table& table);
  std::optional<NodeId> read_switch(Table& table, std::string_view key, std::string_view does);
  std::vector<NodeId> read_hosts(Table& table);

  std::optional<std::uint32_t> model(Table& table, std::string_view key);
  std::uint32_t count(Table& table, std::string_view key, std::uint32_t otherwise, bool needed = false);
  std::uint64_t speed(Table& table, std::string_view key);
  Cable cable(Table& table, std::string_view length_key, std::string_view kind_key);
  std::optional<NodeId> node(const At<std::string>& name);
  void index_names();
  bool fits(std::uint64_t count, std::string_view of_what, const Table& table);

  Table& root_;
  const FileOpener& open_;
  Complaints& complaints_;
  ReadLimits limits_;
  Network network_;
  std::unordered_map<std::string, NodeId> by_name_;
};

}  // namespace weir::fabric
