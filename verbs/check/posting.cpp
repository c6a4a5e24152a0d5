// Posts that are refused, and sends that may overtake the READ that fills their memory.
#include <cerrno>

#include "rnic/transport_operations.hpp"
#include "verbs/check/checks.hpp"
#include "verbs/check/findings.hpp"
#include "verbs/check/names.hpp"
#include "verbs/check/sources.hpp"

namespace weir::check {
namespace {

std::string description(const QueuePairRecord& qp, const ibv_send_wr& wr) {
  return std::string(name_of(wr.opcode)) + " on " + name_of(qp.qp->qp_type) + " queue pair " +
         hex(qp.number) + ", wr_id " + hex(wr.wr_id);
}

bool overlap(const ibv_sge& a, const ibv_sge& b) {
  return a.addr < b.addr + b.length && b.addr < a.addr + a.length;
}

struct Overlap {
  const PostedSend* reader;
  ibv_sge source, destination;
};

std::optional<Overlap> unfinished_source(const QueuePairRecord& qp, const PostedSend& later) {
  for (const PostedSend& earlier : qp.sends) {
    if (!earlier.brings_data_back()) continue;
    for (const ibv_sge& destination : earlier.pieces.all())
      for (const ibv_sge& source : later.pieces.all())
        if (overlap(source, destination)) return Overlap{&earlier, source, destination};
  }
  return std::nullopt;
}

// The NIC may run ahead of READs and atomics: whatever a later request reads must not be what they bring.
void check_fence(const QueuePairRecord& qp, const PostedSend& later) {
  if (qp.reads == 0 || later.brings_data_back() || later.is_inline() || (later.flags & IBV_SEND_FENCE))
    return;
  const auto found = unfinished_source(qp, later);
  if (!found) return;
  const std::string what = std::string(name_of(later.opcode)) + " may send what was in memory before the " +
                           name_of(found->reader->opcode) + " posted earlier has filled it";
  Report(Rule::missing_fence, what, "posted", later.posted_at.place())
      .fact("source", range_text(found->source.addr, found->source.length))
      .fact(name_of(found->reader->opcode),
            "into " + range_text(found->destination.addr, found->destination.length) + ", wr_id " +
                hex(found->reader->wr_id) + ", not yet known to be complete")
      .place("posted", found->reader->posted_at.place())
      .print();
}

PostedSend posted(const QueuePairRecord& qp, const ibv_send_wr& wr, const CallSite& at) {
  PostedSend send{.wr_id = wr.wr_id,
                  .opcode = wr.opcode,
                  .flags = wr.send_flags,
                  .signaled = qp.signals_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0,
                  .pieces = {wr.sg_list, wr.num_sge},
                  .posted_at = at,
                  .source_sum = {}};
  if (send.is_atomic()) {
    send.remote_addr = wr.wr.atomic.remote_addr;
    send.rkey = wr.wr.atomic.rkey;
  } else if (qp.qp->qp_type != IBV_QPT_UD) {
    send.remote_addr = wr.wr.rdma.remote_addr;
    send.rkey = wr.wr.rdma.rkey;
  }
  return send;
}

void report_full(QueuePairRecord& qp, const ibv_send_wr& wr, const CallSite& at) {
  if (qp.has_builders || qp.sends.size() < qp.caps.max_send_wr) return;
  std::size_t signals = 0;
  const PostedSend* last_signal = nullptr;
  for (const PostedSend& send : qp.sends) {
    if (!send.signaled) continue;
    ++signals;
    last_signal = &send;
  }
  const std::string holds =
      "it holds " + count_of(qp.sends.size(), "request") + ", all that max_send_wr allows, ";
  if (signals == 0) {
    Report(Rule::send_queue_stuck,
           "the send queue is full, and none of its requests is signalled: no completion can ever free it",
           "posted", at.place())
        .fact("request", description(qp, wr))
        .fact("send queue", holds + "and none has IBV_SEND_SIGNALED; the oldest is from")
        .place("", qp.sends.front().posted_at.place())
        .place("created", qp.created)
        .print();
    return;
  }
  Report(Rule::send_queue_full, "the send queue is full", "posted", at.place())
      .fact("request", description(qp, wr))
      .fact("send queue", holds + std::to_string(signals) + " of them signalled; the last of those is from")
      .place("", last_signal->posted_at.place())
      .print();
}

bool has_operation(ibv_qp_type type, ibv_wr_opcode opcode) {
  return rnic::has_opcode(static_cast<rnic::QpType>(type), static_cast<rnic::SendOpcode>(opcode));
}

std::string limit_text(std::uint64_t given, const char* name, std::uint64_t limit) {
  return std::to_string(given) + ", but its " + name + " is " + std::to_string(limit);
}

// Why a request is invalid, as far as this can be said for certain.
void report_invalid(QueuePairRecord& qp, const ibv_send_wr& wr, const CallSite& at) {
  const auto report = [&](Rule rule, const std::string& what) {
    Report(rule, what, "posted", at.place())
        .fact("request", description(qp, wr))
        .place("created", qp.created)
        .print();
  };
  const ibv_qp_type type = qp.qp->qp_type;
  const ibv_qp_state state = state_of(qp.qp);
  if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR)
    return report(Rule::post_in_wrong_state,
                  std::string("a send was posted in the state ") + name_of(state) + ", and refused");
  if (type == IBV_QPT_UD && wr.wr.ud.ah == nullptr)
    return report(Rule::no_address_handle, "a datagram without an address handle");
  if (!has_operation(type, wr.opcode))
    return report(Rule::wrong_opcode,
                  std::string(name_of(type)) + " queue pairs have no " + name_of(wr.opcode));
  const Pieces pieces(wr.sg_list, wr.num_sge);
  if (wr.send_flags & IBV_SEND_INLINE) {
    if (wr.opcode == IBV_WR_RDMA_READ || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
        wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
      return report(Rule::inline_limit, std::string("a ") + name_of(wr.opcode) + " cannot be inline");
    if (pieces.bytes() > qp.caps.max_inline_data)
      return report(
          Rule::inline_limit,
          "an inline request of " + limit_text(pieces.bytes(), "max_inline_data", qp.caps.max_inline_data));
    return;
  }
  if (wr.num_sge < 0 || static_cast<unsigned>(wr.num_sge) > qp.caps.max_send_sge)
    report(Rule::sge_limit,
           "a request with num_sge " + (wr.num_sge < 0 ? std::to_string(wr.num_sge)
                                                       : limit_text(static_cast<unsigned>(wr.num_sge),
                                                                    "max_send_sge", qp.caps.max_send_sge)));
}

}  // namespace

void about_to_send(QueuePairRecord& qp, const ibv_send_wr* wr, const CallSite& at) {
  for (; wr != nullptr; wr = wr->next) {
    PostedSend send = posted(qp, *wr, at);
    check_fence(qp, send);
    note_source(qp, send);
    qp.reads += send.brings_data_back();
    qp.sends.push_back(std::move(send));
    totals().requests.fetch_add(1, std::memory_order_relaxed);
  }
}

void sends_refused(QueuePairRecord& qp, const ibv_send_wr* bad, int error, const CallSite& at) {
  for (const ibv_send_wr* wr = bad; wr != nullptr; wr = wr->next) {
    qp.reads -= qp.sends.back().brings_data_back();
    qp.sends.pop_back();
    totals().requests.fetch_sub(1, std::memory_order_relaxed);
  }
  if (bad == nullptr) return;
  if (error == ENOMEM)
    report_full(qp, *bad, at);
  else
    report_invalid(qp, *bad, at);
}

void about_to_receive(std::deque<PostedReceive>& receives, const ibv_recv_wr* wr, const CallSite& at) {
  for (; wr != nullptr; wr = wr->next) {
    receives.push_back({wr->wr_id, {wr->sg_list, wr->num_sge}, at});
    note_destinations(receives.back().pieces);
    totals().requests.fetch_add(1, std::memory_order_relaxed);
  }
}

void take_back(std::deque<PostedReceive>& receives, const ibv_recv_wr* bad) {
  for (; bad != nullptr; bad = bad->next) {
    receives.pop_back();
    totals().requests.fetch_sub(1, std::memory_order_relaxed);
  }
}

void receives_refused(QueuePairRecord& qp, const ibv_recv_wr* bad, int error, const CallSite& at) {
  take_back(qp.receives, bad);
  if (bad == nullptr) return;
  const auto report = [&](Rule rule, const std::string& what) {
    Report(rule, what, "posted", at.place())
        .fact("receive", "on queue pair " + hex(qp.number) + ", wr_id " + hex(bad->wr_id))
        .place("created", qp.created)
        .print();
  };
  if (error == ENOMEM) {
    if (qp.receives.size() >= qp.caps.max_recv_wr)
      report(Rule::receive_queue_full, "the receive queue is full: it holds " +
                                           count_of(qp.receives.size(), "receive") +
                                           ", all that max_recv_wr allows");
    return;
  }
  if (state_of(qp.qp) == IBV_QPS_RESET)
    return report(Rule::post_in_wrong_state, "a receive was posted in the state RESET, and refused");
  if (bad->num_sge < 0 || static_cast<unsigned>(bad->num_sge) > qp.caps.max_recv_sge)
    report(Rule::sge_limit, "a receive with num_sge " + std::to_string(bad->num_sge) +
                                ", but its max_recv_sge is " + std::to_string(qp.caps.max_recv_sge));
}

}  // namespace weir::check
