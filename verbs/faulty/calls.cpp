#include "verbs/faulty/calls.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <mutex>

namespace weir::verbs {
namespace {

// What stands behind ours. Written before a program has a context to call them by.
ibv_context_ops behind{};
int (*wr_complete_behind)(ibv_qp_ex*) = nullptr;

// The queue pairs that were posted to, by number, so that one can be ended whose completion says that it is.
struct QueuePairs {
  std::mutex mutex;
  std::map<std::uint32_t, ibv_qp*> by_number;
};
QueuePairs& queue_pairs() {
  static auto* const all = new QueuePairs;
  return *all;
}

void remember(ibv_qp* qp) {
  const std::lock_guard lock(queue_pairs().mutex);
  queue_pairs().by_number[qp->qp_num] = qp;
}

// A forked child has no NIC until it opens a device, but may still call.
int refusal_here(faults::Call call, std::uint32_t qpn) {
  NicProcess* const nic = NicProcess::existing();
  return nic != nullptr ? refusal(*nic, call, qpn) : 0;
}

int faulty_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  remember(qp);
  const int error = refusal_here(faults::Call::post_send, qp->qp_num);
  if (error == 0) return behind.post_send(qp, wr, bad);
  *bad = wr;
  return error;
}

int faulty_post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  remember(qp);
  const int error = refusal_here(faults::Call::post_recv, qp->qp_num);
  if (error == 0) return behind.post_recv(qp, wr, bad);
  *bad = wr;
  return error;
}

// A NIC that reports an error has taken the queue pair to the error state; what follows is flushed.
void end_queue_pair(std::uint32_t number) {
  ibv_qp* qp = nullptr;
  {
    const std::lock_guard lock(queue_pairs().mutex);
    const auto found = queue_pairs().by_number.find(number);
    if (found == queue_pairs().by_number.end()) return;
    qp = found->second;
  }
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  (void)::ibv_modify_qp(qp, &attributes, IBV_QP_STATE);
}

int faulty_poll_cq(ibv_cq* cq, int count, ibv_wc* out) {
  const int filled = behind.poll_cq(cq, count, out);
  NicProcess* const nic = NicProcess::existing();
  for (int i = 0; nic != nullptr && i < filled; ++i) judge_completion(*nic, out[i]);
  return filled;
}

// What ibv_wr_start began is not posted.
int faulty_wr_complete(ibv_qp_ex* qp) {
  remember(&qp->qp_base);
  const int error = refusal_here(faults::Call::wr_complete, qp->qp_base.qp_num);
  if (error == 0) return wr_complete_behind(qp);
  qp->wr_abort(qp);
  return error;
}

// A killed program has no other time for its report.
void end_program(NicProcess& nic, faults::Act act) {
  const bool kills = act == faults::Act::kill;
  if (kills) nic.report_faults();
  ::kill(::getpid(), kills ? SIGKILL : SIGSTOP);
}

}  // namespace

int refusal(NicProcess& nic, faults::Call call, std::uint32_t qpn) {
  FaultyDevice* const faults = nic.faults();
  return faults != nullptr ? static_cast<int>(faults->judge(call, qpn).value_or(0)) : 0;
}

bool is_refused(NicProcess& nic, faults::Call call) {
  const int error = refusal(nic, call);
  if (error != 0) errno = error;
  return error != 0;
}

void judge_completion(NicProcess& nic, ibv_wc& completion) {
  FaultyDevice& faults = *nic.faults();
  if (faults.judge(faults::Call::polled, completion.qp_num))
    nic.adapter().break_down(rnic::Qpn(completion.qp_num));
  if (completion.status != IBV_WC_SUCCESS) return;
  const auto status = faults.judge(faults::Call::completion, completion.qp_num);
  if (!status) return;
  completion.status = static_cast<ibv_wc_status>(*status);
  end_queue_pair(completion.qp_num);
}

void put_faulty_calls_in_front(ibv_qp_ex& calls, const FaultyDevice& faults) {
  static std::once_flag kept;
  std::call_once(kept, [&] { wr_complete_behind = calls.wr_complete; });
  if (faults.concern(faults::Call::completion) || faults.concern(faults::Call::wr_complete))
    calls.wr_complete = faulty_wr_complete;
}

void put_faulty_calls_in_front(ibv_context_ops& calls, const FaultyDevice& faults) {
  static std::once_flag kept;
  std::call_once(kept, [&] { behind = calls; });
  const bool completes = faults.concern(faults::Call::completion);
  if (completes || faults.concern(faults::Call::polled)) calls.poll_cq = faulty_poll_cq;
  if (completes || faults.concern(faults::Call::post_send)) calls.post_send = faulty_post_send;
  if (completes || faults.concern(faults::Call::post_recv)) calls.post_recv = faulty_post_recv;
}

void schedule_faults(NicProcess& nic, void (*deliver)(ibv_event_type)) {
  nic.faults()->schedule(
      [&nic, deliver](std::size_t fault) {
        const faults::Act act = nic.faults()->fault(fault).act;
        if (act == faults::Act::down) return deliver(IBV_EVENT_PORT_ERR);
        if (act == faults::Act::pause) return;  // programs are not told
        if (act == faults::Act::gid_gone) return deliver(IBV_EVENT_GID_CHANGE);
        if (act != faults::Act::qp_error) return end_program(nic, act);
        for (const std::uint32_t qpn : nic.faults()->queue_pairs_of(fault))
          if (nic.adapter().break_down(rnic::Qpn(qpn))) nic.faults()->ended(fault, qpn);
      },
      [&nic, deliver](std::size_t fault) {
        const faults::Act act = nic.faults()->fault(fault).act;
        if (act == faults::Act::pause) return nic.faults()->resume();
        deliver(act == faults::Act::gid_gone ? IBV_EVENT_GID_CHANGE : IBV_EVENT_PORT_ACTIVE);
      });
}

bool gid_is_gone(std::size_t index) {
  NicProcess* const nic = NicProcess::existing();
  return nic != nullptr && nic->faults() != nullptr && nic->faults()->gid_is_gone(index);
}

bool port_is_down(NicProcess& nic) { return nic.faults() != nullptr && nic.faults()->port_is_down(); }

}  // namespace weir::verbs
