// Refused ibv_modify_qp(): which attribute is missing, not allowed or out of range.
#include "rnic/queue_pair/queue_pair_state.hpp"
#include "verbs/check/checks.hpp"
#include "verbs/check/findings.hpp"
#include "verbs/check/names.hpp"

namespace weir::check {
namespace {

struct Limit {
  int bit;
  const char* name;
  unsigned (*value)(const ibv_qp_attr&);
  unsigned max;
};

// The ranges of the fields on the wire and in IBA table 91.
constexpr Limit limits[] = {
    {IBV_QP_TIMEOUT, "timeout", [](const ibv_qp_attr& a) { return unsigned{a.timeout}; }, 31},
    {IBV_QP_RETRY_CNT, "retry_cnt", [](const ibv_qp_attr& a) { return unsigned{a.retry_cnt}; }, 7},
    {IBV_QP_RNR_RETRY, "rnr_retry", [](const ibv_qp_attr& a) { return unsigned{a.rnr_retry}; }, 7},
    {IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", [](const ibv_qp_attr& a) { return unsigned{a.min_rnr_timer}; },
     31},
};

std::string states(ibv_qp_state from, ibv_qp_state to) {
  return std::string(name_of(from)) + " to " + name_of(to);
}

void remember(ibv_qp_attr& kept, const ibv_qp_attr& now, int mask) {
  if (mask & IBV_QP_TIMEOUT) kept.timeout = now.timeout;
  if (mask & IBV_QP_RETRY_CNT) kept.retry_cnt = now.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) kept.rnr_retry = now.rnr_retry;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) kept.max_rd_atomic = now.max_rd_atomic;
  if (mask & IBV_QP_DEST_QPN) kept.dest_qp_num = now.dest_qp_num;
}

}  // namespace

ibv_qp_state state_of(ibv_qp* qp) {
  static auto* const query = next_call<decltype(ibv_query_qp)>("ibv_query_qp");
  ibv_qp_attr attributes{};
  ibv_qp_init_attr created{};
  // Not IBV_QP_STATE: that would change the state that the program sees in the queue pair.
  return query(qp, &attributes, IBV_QP_CUR_STATE, &created) == 0 ? attributes.qp_state : IBV_QPS_UNKNOWN;
}

void modified(QueuePairRecord& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state before, int error) {
  const auto to = mask & IBV_QP_STATE ? attr.qp_state : before;
  if (error == 0) {
    const std::lock_guard lock(qp.mutex);
    remember(qp.attributes, attr, mask);
    if (to != IBV_QPS_RESET) return;
    qp.sends.clear();
    qp.receives.clear();
    qp.reads = 0;
    return;
  }
  const Place here = place_here();
  const auto report = [&](const std::string& what) {
    return Report(Rule::modify_refused, what, "called", here)
        .fact("queue pair",
              hex(qp.number) + ", " + name_of(qp.qp->qp_type) + ", in the state " + name_of(before))
        .fact("attr_mask", attributes_text(static_cast<unsigned>(mask)));
  };
  const auto known = rnic::attributes_of(static_cast<rnic::QpType>(qp.qp->qp_type),
                                         static_cast<rnic::QpState>(before), static_cast<rnic::QpState>(to));
  const std::string transition = states(before, to);
  if (!known) return report("there is no transition from " + transition).place("created", qp.created).print();
  const auto given = static_cast<unsigned>(mask);
  if (const unsigned missing = known->required & ~given)
    return report("from " + transition + " needs " + attributes_text(missing) + ", too").print();
  if (const unsigned extra = given & ~(known->required | known->optional | IBV_QP_STATE))
    return report("from " + transition + " does not allow " + attributes_text(extra)).print();
  for (const Limit& limit : limits) {
    if (!(mask & limit.bit) || limit.value(attr) <= limit.max) continue;
    return report(std::string(limit.name) + " is " + std::to_string(limit.value(attr)) + "; it is at most " +
                  std::to_string(limit.max))
        .print();
  }
  if ((mask & IBV_QP_CUR_STATE) && attr.cur_qp_state != before)
    return report(std::string("cur_qp_state says ") + name_of(attr.cur_qp_state)).print();
}

}  // namespace weir::check
