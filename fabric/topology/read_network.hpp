// A network file (TOML) becomes a Network. The keys are described in weir-plan(1); the reader is the one
// definition of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fabric/topology/network.hpp"
#include "fabric/topology/reading.hpp"

namespace weir::fabric {

// Reads a whole file. Nothing, and at least one complaint, where anything is wrong with it.
std::optional<Network> read_network(std::string_view text, std::string file, const FileOpener& open,
                                    Complaints& complaints, const ReadLimits& limits = {});

// For files that hold more than a network (a simulator's scenario): reads the network's keys of `root` and
// leaves the others, and finish(), to the caller.
std::optional<Network> read_network(Table& root, const FileOpener& open, Complaints& complaints,
                                    const ReadLimits& limits = {});

// read_network of a file on disk. Files that it names are looked up beside it.
std::optional<Network> load_network(const std::string& path, Complaints& complaints);

}  // namespace weir::fabric
