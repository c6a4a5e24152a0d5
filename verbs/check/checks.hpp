// What the calls report to the rules, one group for each file of rules.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "verbs/check/objects.hpp"
#include "verbs/check/work.hpp"

namespace weir::check {

// posting.cpp. Under the record's lock; `at` is the return address of the post.
void about_to_send(QueuePairRecord&, const ibv_send_wr*, const CallSite& at);
void sends_refused(QueuePairRecord&, const ibv_send_wr* bad, int error, const CallSite& at);
void about_to_receive(std::deque<PostedReceive>&, const ibv_recv_wr*, const CallSite& at);
void receives_refused(QueuePairRecord&, const ibv_recv_wr* bad, int error, const CallSite& at);
void take_back(std::deque<PostedReceive>&, const ibv_recv_wr* bad);

// completions.cpp
void completed(const ibv_wc&, const CallSite& polled_at);

// refusals.cpp: why a completion failed.
void explain_send(QueuePairRecord&, const PostedSend&, const ibv_wc&, const CallSite& polled_at);
void explain_receive(QueuePairRecord&, const PostedReceive&, const ibv_wc&, const CallSite& polled_at);

// local_access.cpp: why the NIC refuses a piece of this process's memory.
struct LocalFault {
  std::string what;
  std::optional<Region> region;
};
std::optional<LocalFault> local_fault(const ibv_sge&, const ibv_pd*, bool nic_writes);

// transitions.cpp
void modified(QueuePairRecord&, const ibv_qp_attr&, int mask, ibv_qp_state before, int error);
ibv_qp_state state_of(ibv_qp*);

// teardown.cpp
void refused_as_in_use(const void* handle, const Place&);
// True: the handle was destroyed before; reported, and not to be passed on.
bool destroyed_twice(const void* handle, const char* call);
void about_to_deregister(const ibv_mr&);
void report_leaks();

// events.cpp
void about_to_destroy(CompletionQueueRecord&);
void about_to_wait(ibv_comp_channel&);
void event_taken(CompletionQueueRecord&);
void events_acknowledged(CompletionQueueRecord&, unsigned count);
void about_to_arm(CompletionQueueRecord&, const CallSite& at);
void about_to_poll(CompletionQueueRecord&, const CallSite& at);

// memory.cpp
void about_to_free(const void* memory, std::size_t bytes, const char* call);

}  // namespace weir::check
