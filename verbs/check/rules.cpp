#include "verbs/check/rules.hpp"

namespace weir::check {
namespace {

using enum Severity;

constexpr RuleText table[] = {
    {Rule::remote_access, "remote-access", error,
     "the responder accepts a request only if the rkey is valid, of the queue pair's protection domain, with "
     "the rights in the region, and covers every byte (IBA vol. 1, 9.7.5.2.4)",
     "send the address, the length and the rkey of a live region to the peer, and give the region the rights "
     "(ibv_reg_mr(3))"},
    {Rule::remote_request, "remote-request", error,
     "the responder refuses a message longer than its receive, an operation for which the queue pair has no "
     "right, an atomic whose address is no multiple of 8, and a READ or atomic if its max_dest_rd_atomic is "
     "0 "
     "(IBA vol. 1, 9.7.5.2.3, table 58)",
     "post receives as long as the longest message, give the queue pair the rights (IBV_QP_ACCESS_FLAGS of "
     "ibv_modify_qp(3)), align atomics, set max_dest_rd_atomic on the way to RTR"},
    {Rule::remote_operation, "remote-operation", error,
     "the responder could not use its own memory for the request (IBA vol. 1, 9.9.3.1.2)",
     "look at the target: its receive names memory that is not registered there any more, or its memory is "
     "gone"},
    {Rule::local_protection, "local-protection", error,
     "each piece of a work request needs an lkey of a live region of the queue pair's protection domain that "
     "covers it, with IBV_ACCESS_LOCAL_WRITE if the NIC writes there (IBA vol. 1, 10.6.3; ibv_post_send(3))",
     "register all bytes that the request names, in the domain of its queue pair, until its completion"},
    {Rule::receive_protection, "receive-protection", error,
     "each piece of a receive needs an lkey of a live region of its protection domain that covers it, with "
     "IBV_ACCESS_LOCAL_WRITE (ibv_post_recv(3))",
     "register the buffer with IBV_ACCESS_LOCAL_WRITE and keep the region until the receive has completed"},
    {Rule::local_length, "local-length", error,
     "a message has at most 2^31 bytes, and an atomic brings back 8 (IBA vol. 1, 9.3 and 10.7.2.2)",
     "give atomics a piece of 8 bytes, and split longer messages"},
    {Rule::receive_too_short, "receive-too-short", error,
     "a message must fit into the receive that it takes; a datagram takes 40 bytes more for its GRH "
     "(ibv_post_recv(3), IBA vol. 1, 10.7.3.1)",
     "post receives as long as the longest message, plus 40 bytes on UD"},
    {Rule::read_depth_zero, "read-depth-zero", error,
     "a queue pair whose max_rd_atomic is 0 can have no READ or atomic outstanding (IBA vol. 1, 10.2.5)",
     "set IBV_QP_MAX_QP_RD_ATOMIC to 1 or more on the way to RTS (rdma_cm: initiator_depth)"},
    {Rule::receiver_not_ready, "receiver-not-ready", error,
     "a SEND or WRITE_WITH_IMM takes a receive that the target posted before; without one the requester "
     "waits for "
     "rnr_retry times the target's min_rnr_timer, then fails (IBA vol. 1, 9.7.5.2.8)",
     "post the receives before the peer can send (before RTR or rdma_accept), repost as many as were taken, "
     "or let "
     "rnr_retry be 7, which waits for ever"},
    {Rule::no_answer, "no-answer", error,
     "an RC request without an answer is retried retry_cnt times, then fails (IBA vol. 1, 9.9.2.1)",
     "bring the target to RTR, connected to this queue pair, before the first request; keep its process "
     "alive"},
    {Rule::failed_completion, "failed-completion", error,
     "a completion with an error moves the queue pair to the error state (IBA vol. 1, 10.3.1)",
     "look up the status in ibv_poll_cq(3)"},
    {Rule::post_in_wrong_state, "post-in-wrong-state", error,
     "work is posted to the send queue from RTS on, and to the receive queue from INIT on "
     "(ibv_post_send(3), IBA vol. 1, 10.3.1)",
     "move the queue pair on with ibv_modify_qp(3) first"},
    {Rule::send_queue_stuck, "send-queue-stuck", error,
     "only a completion frees the work requests up to it, and only a signalled request has one "
     "(ibv_create_qp(3): sq_sig_all; ibv_post_send(3): IBV_SEND_SIGNALED)",
     "set IBV_SEND_SIGNALED at least once in max_send_wr requests, and poll that completion"},
    {Rule::send_queue_full, "send-queue-full", note,
     "a send queue holds max_send_wr requests; a request leaves it when its completion, or that of a later "
     "one, is "
     "polled (ibv_post_send(3))",
     "poll the completion queue before posting more, or ask for a larger max_send_wr"},
    {Rule::receive_queue_full, "receive-queue-full", note,
     "a receive queue holds max_recv_wr requests; each leaves it when its completion is polled "
     "(ibv_post_recv(3))",
     "post as many receives as were polled, or ask for a larger max_recv_wr"},
    {Rule::sge_limit, "sge-limit", error,
     "num_sge is at most the max_send_sge or max_recv_sge that ibv_create_qp(3) returned",
     "ask for more when creating the queue pair, or use fewer pieces"},
    {Rule::inline_limit, "inline-limit", error,
     "an inline request carries at most the max_inline_data that ibv_create_qp(3) returned, and only SEND "
     "and "
     "WRITE can be inline (ibv_post_send(3))",
     "ask for a larger max_inline_data when creating the queue pair, or leave out IBV_SEND_INLINE"},
    {Rule::wrong_opcode, "wrong-opcode", error,
     "each transport has its operations: UD only SEND, UC no READ and no atomics (ibv_post_send(3), IBA vol. "
     "1, "
     "table 35)",
     "use an RC queue pair for this operation"},
    {Rule::no_address_handle, "no-address-handle", error,
     "a datagram goes where wr.ud.ah says (ibv_post_send(3))",
     "create an address handle with ibv_create_ah(3)"},
    {Rule::modify_refused, "modify-refused", error,
     "each transition needs its attributes and allows some more (ibv_modify_qp(3), IBA vol. 1, table 91)",
     "set exactly the attributes that the transition needs, with their bits in attr_mask"},
    {Rule::missing_fence, "missing-fence", error,
     "a WRITE or SEND may read its memory before a READ or atomic posted earlier has brought its bytes "
     "there, "
     "unless it has IBV_SEND_FENCE (IBA vol. 1, table 79; ibv_post_send(3))",
     "set IBV_SEND_FENCE on the later request, or poll the completion of the earlier one first"},
    {Rule::source_changed, "source-changed", risk,
     "the memory of a work request belongs to the NIC until its completion, or that of a later request of "
     "its "
     "queue, has been polled (ibv_post_send(3)); a lost packet is read again from there",
     "poll the completion first, give each message in flight its own buffer, or use IBV_SEND_INLINE"},
    {Rule::cq_overrun, "cq-overrun", error,
     "a completion queue holds cqe entries; one more is an overrun, a fatal error of the CQ (IBA vol. 1, "
     "11.2.8.1; "
     "ibv_create_cq(3))",
     "make the CQ as large as everything that may complete into it between two polls"},
    {Rule::in_use, "in-use", error, "an object cannot be destroyed while others need it (IBA vol. 1, 11.2)",
     "destroy what was made from it first"},
    {Rule::destroyed_twice, "destroyed-twice", error, "a handle ends with its object",
     "destroy each object once, and set the pointer to NULL there"},
    {Rule::region_in_use, "region-in-use", risk,
     "work requests name a region until they have completed (ibv_dereg_mr(3))",
     "poll the completions, or destroy the queue pair, before the region goes"},
    {Rule::freed_in_flight, "freed-in-flight", error,
     "the memory of a work request belongs to the NIC until its completion has been polled "
     "(ibv_post_send(3))",
     "poll the completion, or destroy the queue pair, before the memory goes"},
    {Rule::freed_while_registered, "freed-while-registered", note,
     "a region keeps its memory reachable for the NIC; who gets it next shares it with the region's keys "
     "(ibv_reg_mr(3))",
     "deregister the region before its memory goes"},
    {Rule::event_not_acknowledged, "event-not-acknowledged", error,
     "ibv_destroy_cq() waits until every event that ibv_get_cq_event() returned is acknowledged "
     "(ibv_get_cq_event(3))",
     "call ibv_ack_cq_events() once for each event, or with their number before destroying the CQ"},
    {Rule::acknowledged_too_many, "acknowledged-too-many", error,
     "each event is acknowledged once, for the CQ that ibv_get_cq_event() returned (ibv_ack_cq_events(3))",
     "acknowledge the number of events that were taken from this CQ"},
    {Rule::slept_on_completion, "slept-on-completion", error,
     "a completion that is there when ibv_req_notify_cq() is called makes no event (ibv_req_notify_cq(3), "
     "ibv_get_cq_event(3))",
     "after ibv_req_notify_cq() poll until the CQ is empty, and only then wait for the event"},
    {Rule::leak_at_exit, "leak-at-exit", note,
     "the kernel cleans up behind a process, but nobody behind a library", "destroy what was created"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(table); ++i)
    if (static_cast<std::size_t>(table[i].rule) != i) return false;
  return std::size(table) == static_cast<std::size_t>(Rule::leak_at_exit) + 1;
}
static_assert(in_order());

}  // namespace

std::span<const RuleText> rules() { return table; }

std::string_view name_of(Severity severity) {
  switch (severity) {
    case note:
      return "NOTE";
    case risk:
      return "RISK";
    case error:
      break;
  }
  return "ERROR";
}

}  // namespace weir::check
