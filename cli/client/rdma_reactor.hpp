// RDMA, and TLS over RDMA: rdma::Stream on the libibverbs that the settings choose.
#pragma once

#include "cli/client/connection.hpp"

namespace weir::client {

Result<std::unique_ptr<Reactor>> make_rdma_reactor();

// A line that names the RDMA device in use and why it was chosen.
Result<std::string> describe_rdma(const RdmaSettings&);

}  // namespace weir::client
