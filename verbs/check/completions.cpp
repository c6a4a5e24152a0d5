// Matches completions with the requests on record.
//
// A send queue completes in order, so a completion stands for its request and for all before it. A failed
// request need not be signalled, and completes all the same.
#include <algorithm>

#include "verbs/check/checks.hpp"
#include "verbs/check/sources.hpp"

namespace weir::check {
namespace {

// This NIC sets the opcode of failed completions, too, although the manual leaves it undefined.
bool is_receive(const ibv_wc& wc) { return (wc.opcode & IBV_WC_RECV) != 0; }

void pop_sends(QueuePairRecord& qp, std::size_t count, const ibv_wc& wc, const CallSite& polled_at) {
  for (; count != 0; --count) {
    if (wc.status == IBV_WC_SUCCESS) check_source(qp, qp.sends.front(), polled_at);
    qp.reads -= qp.sends.front().brings_data_back();
    qp.sends.pop_front();
  }
}

std::optional<PostedSend> take_send(QueuePairRecord& qp, const ibv_wc& wc, const CallSite& polled_at) {
  const bool failed = wc.status != IBV_WC_SUCCESS;
  for (std::size_t i = 0; i < qp.sends.size(); ++i) {
    const PostedSend& send = qp.sends[i];
    const bool may_be = send.wr_id == wc.wr_id && (send.signaled || failed);
    if (may_be) {
      PostedSend taken = send;
      pop_sends(qp, i + 1, wc, polled_at);
      return taken;
    }
    if (send.signaled) break;  // its own completion comes first
  }
  return std::nullopt;
}

std::optional<PostedReceive> take_receive(std::deque<PostedReceive>& receives, std::uint64_t wr_id) {
  const auto found = std::ranges::find(receives, wr_id, &PostedReceive::wr_id);
  if (found == receives.end()) return std::nullopt;
  PostedReceive taken = std::move(*found);
  receives.erase(found);
  return taken;
}

std::optional<PostedReceive> take_receive(QueuePairRecord& qp, const ibv_wc& wc) {
  if (qp.qp->srq == nullptr) {
    const std::lock_guard lock(qp.mutex);
    return take_receive(qp.receives, wc.wr_id);
  }
  const auto shared = record_of(qp.qp->srq);
  if (shared == nullptr) return std::nullopt;
  const std::lock_guard lock(shared->mutex);
  return take_receive(shared->receives, wc.wr_id);
}

}  // namespace

void completed(const ibv_wc& wc, const CallSite& polled_at) {
  totals().completions.fetch_add(1, std::memory_order_relaxed);
  const auto qp = queue_pair_numbered(wc.qp_num);
  if (qp == nullptr) return;
  if (is_receive(wc)) {
    const auto receive = take_receive(*qp, wc);
    if (receive && wc.status != IBV_WC_SUCCESS) explain_receive(*qp, *receive, wc, polled_at);
    return;
  }
  std::optional<PostedSend> send;
  {
    const std::lock_guard lock(qp->mutex);
    send = take_send(*qp, wc, polled_at);
  }
  if (wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR) return;
  // Posted by a builder, or before the checker knew the queue pair.
  if (!send) send.emplace().wr_id = wc.wr_id;
  explain_send(*qp, *send, wc, polled_at);
}

}  // namespace weir::check
