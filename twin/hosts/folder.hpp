// Where the networks of a user are found: a folder each, with the keeper's socket in it.
#pragma once

#include <string>
#include <vector>

#include "link/unique_fd.hpp"
#include "twin/hosts/host_error.hpp"

namespace weir::hosts {

// The folder of the network `name`. A name with a '/' is a folder itself, as WEIR_FABRIC is in a host.
// Makes nothing. An error: the folder that would hold it is another user's.
Result<std::string> folder_of(const std::string& name);

// The names of this user's networks whose keepers answer. What killed keepers left is removed.
std::vector<std::string> running_networks();

// Makes the folder, and listens in it. If there is a network of this name, Cause::exists.
Result<link::UniqueFd> occupy(const std::string& folder);
// A connection to the keeper of that folder; Cause::no_network if no keeper answers.
Result<link::UniqueFd> connect_to_keeper(const std::string& folder);
// Removes what occupy() made and the keeper added. Errors are of no interest: it may be gone already.
void vacate(const std::string& folder) noexcept;

std::string hosts_file_in(const std::string& folder);
std::string topology_file_in(const std::string& folder);

}  // namespace weir::hosts
