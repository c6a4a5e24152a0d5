// Why a connection did not come about, or did not last, in words: cause and next step.
//
// Values; any thread.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace weir::rdma {

// Of RDMA_CM_EVENT_ADDR_ERROR: `status` is a negative errno.
std::string why_not_resolved(const std::string& address, int status);
// Of RDMA_CM_EVENT_REJECTED: `status` is the reason of the REJ (IBA 12.6.7.2).
std::string why_refused(const std::string& address, int status);
// Of a completion that says the peer's device gave no answer, or no receive, until the retries were used up.
// The peer may well be alive. `text`: the libraries' own.
std::string why_lost(ibv_wc_status status, const std::string& text);
// Of rdma_create_event_channel(), which failed with that errno. `software_nic`: on Weir's own, which needs no
// kernel module and has printed why it did not start.
std::string why_no_events(int error, bool software_nic);

}  // namespace weir::rdma
