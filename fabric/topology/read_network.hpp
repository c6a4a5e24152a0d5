// Reads a network file (TOML) into a Network. weir-plan(1) describes the keys;
// this reader defines them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fabric/topology/network.hpp"
#include "fabric/topology/reading.hpp"

namespace weir::fabric {

// Reads a whole file. nullopt, with at least one complaint, if anything is wrong with it.
std::optional<Network> read_network(std::string_view text, std::string file, const FileOpener& open,
                                    Complaints& complaints, const ReadLimits& limits = {});

// For files that hold more than a network (a simulator's scenario): reads the network's keys from `root`, and
// leaves the others, and finish(), to the caller.
std::optional<Network> read_network(Table& root, const FileOpener& open, Complaints& complaints,
                                    const ReadLimits& limits = {});

// Reads a file on disk. Files that it names are looked up in its folder.
std::optional<Network> load_network(const std::string& path, Complaints& complaints);

}  // namespace weir::fabric
