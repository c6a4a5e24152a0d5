// What the connection manager's events say of a connection that did not come about, in words: cause and next
// step.
//
// Values; any thread.
#pragma once

#include <string>

namespace weir::rdma {

// Of RDMA_CM_EVENT_ADDR_ERROR: `status` is a negative errno.
std::string why_not_resolved(const std::string& address, int status);
// Of RDMA_CM_EVENT_REJECTED: `status` is the reason of the REJ (IBA 12.6.7.2).
std::string why_refused(const std::string& address, int status);

}  // namespace weir::rdma
