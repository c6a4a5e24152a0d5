// RDMA, and TLS over RDMA: rdma::Stream, which runs on whatever libibverbs the settings choose.
#pragma once

#include "cli/client/connection.hpp"

namespace weir::client {

Result<std::unique_ptr<Reactor>> make_rdma_reactor();

// One line on the RDMA device in use and why it was taken.
Result<std::string> describe_rdma(const RdmaSettings&);

}  // namespace weir::client
