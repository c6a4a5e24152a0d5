// Parts of `weir` that need libraries which most of its runs do not need (Open MPI, gRPC): shared objects in
// lib/weir, loaded by the subcommand that needs them (docs/decisions/0009-modules-for-mpi-and-grpc.md).
#pragma once

#include <expected>
#include <string>

namespace weir::command {

// Returns the function `symbol` of the module `file`, which stays loaded. The error says where the module was
// looked for or what the loader missed, and what to do.
std::expected<void*, std::string> module_function(const char* file, const char* symbol);

}  // namespace weir::command
