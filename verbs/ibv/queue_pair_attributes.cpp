// The attributes of queue pairs: modify, query.
#include <atomic>
#include <cerrno>

#include "link/explain.hpp"
#include "verbs/faulty/calls.hpp"
#include "verbs/ibv/datagram_reception.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/path.hpp"

namespace weir::verbs {
namespace {

using rnic::QpState;
using rnic::QpType;

// Programs set up both kinds of XRC queue pair alike, so drop the attributes that a kind does not use.
unsigned meaningful(unsigned mask, QpType type) {
  if (type == QpType::xrc_send) return mask & ~unsigned{IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER};
  if (type == QpType::xrc_recv)
    return mask & ~unsigned{IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY};
  return mask;
}

// As on RoCE devices there is one path, and no alternate to migrate to.
bool one_path(const ibv_qp_attr& a, unsigned mask) {
  if (mask & IBV_QP_ALT_PATH) return false;
  return !(mask & IBV_QP_PATH_MIG_STATE) || a.path_mig_state == IBV_MIG_MIGRATED;
}

constexpr unsigned qp_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                               IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE;

// Every attribute of today's interface; later releases may add more.
constexpr unsigned known_attributes = IBV_QP_RATE_LIMIT | (IBV_QP_RATE_LIMIT - 1);

bool values_valid(const ibv_qp_attr& a, unsigned mask) {
  if ((mask & IBV_QP_RATE_LIMIT) && a.rate_limit != 0 &&
      (a.rate_limit < min_rate_limit_kbps || a.rate_limit > max_rate_limit_kbps))
    return false;
  if ((mask & IBV_QP_PORT) && a.port_num != 1) return false;
  if ((mask & IBV_QP_PKEY_INDEX) && a.pkey_index != 0) return false;
  if ((mask & IBV_QP_PATH_MTU) && (a.path_mtu < IBV_MTU_256 || a.path_mtu > most_mtu())) return false;
  if ((mask & IBV_QP_TIMEOUT) && a.timeout > 31) return false;
  if ((mask & IBV_QP_RETRY_CNT) && a.retry_cnt > 7) return false;
  if ((mask & IBV_QP_RNR_RETRY) && a.rnr_retry > 7) return false;
  if ((mask & IBV_QP_MIN_RNR_TIMER) && a.min_rnr_timer > 31) return false;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a.max_rd_atomic > rnic::max_rd_atomic) return false;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a.max_dest_rd_atomic > rnic::max_rd_atomic) return false;
  if ((mask & IBV_QP_ACCESS_FLAGS) && (a.qp_access_flags & ~qp_access)) return false;
  if ((mask & IBV_QP_AV) && a.ah_attr.port_num != 1) return false;
  if ((mask & IBV_QP_AV) && a.ah_attr.is_global && !gid_at(a.ah_attr.grh.sgid_index)) return false;
  return true;
}

constexpr std::uint32_t largest_psn = 0xffffff;

void remember(ibv_qp_attr& kept, const ibv_qp_attr& a, unsigned mask) {
  if (mask & IBV_QP_ACCESS_FLAGS) kept.qp_access_flags = a.qp_access_flags;
  if (mask & IBV_QP_PKEY_INDEX) kept.pkey_index = a.pkey_index;
  if (mask & IBV_QP_PORT) kept.port_num = a.port_num;
  if (mask & IBV_QP_QKEY) kept.qkey = a.qkey;
  if (mask & IBV_QP_AV) kept.ah_attr = a.ah_attr;
  if (mask & IBV_QP_PATH_MTU) kept.path_mtu = a.path_mtu;
  if (mask & IBV_QP_TIMEOUT) kept.timeout = a.timeout;
  if (mask & IBV_QP_RETRY_CNT) kept.retry_cnt = a.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) kept.rnr_retry = a.rnr_retry;
  // Programs draw PSNs at random, so mask them instead of refusing, as the kernel does.
  if (mask & IBV_QP_RQ_PSN) kept.rq_psn = a.rq_psn & largest_psn;
  if (mask & IBV_QP_SQ_PSN) kept.sq_psn = a.sq_psn & largest_psn;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) kept.max_rd_atomic = a.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) kept.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) kept.min_rnr_timer = a.min_rnr_timer;
  if (mask & IBV_QP_DEST_QPN) kept.dest_qp_num = a.dest_qp_num;
  if (mask & IBV_QP_RATE_LIMIT) kept.rate_limit = a.rate_limit;
}

// On one host the destination QPN alone finds the peer, so a path without a GRH is accepted: old programs set
// it up so (ibv_rc_pingpong without -g). If no path leads there, slot 0 ensures that nobody answers.
rnic::Qpn destination(const Qp& qp) {
  const rnic::Qpn said(qp.attr.dest_qp_num);
  return qp.way.reach != Reach::nowhere ? said : rnic::Qpn(0, said.index());
}

// The lower of the queue pair's own limit and the static rate of its path.
rnic::RateLimit rate_of(const Qp& qp) {
  rnic::RateLimit rate{.kbps = qp.attr.rate_limit, .burst_bytes = qp.burst_bytes};
  const std::uint32_t path_kbps = path_kbps_of(qp.attr.ah_attr);
  if (path_kbps != 0 && (rate.kbps == 0 || path_kbps < rate.kbps)) rate.kbps = path_kbps;
  return rate;
}

bool apply(Qp& qp, QpState to, bool sqd_event) {
  rnic::QpAttributes attributes;
  attributes.access = qp.attr.qp_access_flags;
  attributes.destination = destination(qp);
  attributes.path = path_of(qp.attr, qp.way);
  attributes.qkey = qp.attr.qkey;
  attributes.timeout = qp.attr.timeout;
  attributes.retry_cnt = qp.attr.retry_cnt;
  attributes.rnr_retry = qp.attr.rnr_retry;
  attributes.min_rnr_timer = qp.attr.min_rnr_timer;
  attributes.max_rd_atomic = qp.attr.max_rd_atomic;
  attributes.max_dest_rd_atomic = qp.attr.max_dest_rd_atomic;
  attributes.rate = rate_of(qp);
  attributes.sqd_event = sqd_event;
  return qp.nic_qp->modify(to, attributes);
}

// Packets reach the process that created the queue pair, and only that process answers them.
int refuse_anothers() {
  static std::atomic_flag said;
  if (link::first_time(said))
    link::explain(
        "only the process that created an XRC_RECV queue pair can connect it to another host or another "
        "user");
  return EOPNOTSUPP;
}

void announce_psns(FaultyDevice& faults, const Qp& qp, unsigned changed) {
  const std::uint32_t qpn = qp.nic_qp->qpn().value();
  if (changed & IBV_QP_SQ_PSN) faults.first_psn(qpn, faults::Direction::out, qp.attr.sq_psn);
  if (changed & IBV_QP_RQ_PSN) faults.first_psn(qpn, faults::Direction::in, qp.attr.rq_psn);
}

// `burst_bytes` applies with IBV_QP_RATE_LIMIT.
int modify(ibv_qp* qp, const ibv_qp_attr& attr, unsigned mask, std::uint32_t burst_bytes) {
  if (mask & ~known_attributes) return EOPNOTSUPP;
  if (const int error = refusal(*context_of(qp->context).nic, faults::Call::modify_qp, qp->qp_num))
    return error;
  Qp& q = qp_of(qp);
  const auto type = q.nic_qp->config().type;
  if (type == QpType::rss) return EOPNOTSUPP;  // always ready; its work queues have the states
  const unsigned bits = meaningful(mask, type);
  const QpState from = q.nic_qp->state();
  if ((bits & IBV_QP_CUR_STATE) && attr.cur_qp_state != static_cast<ibv_qp_state>(from)) return EINVAL;
  const auto to = bits & IBV_QP_STATE ? static_cast<QpState>(attr.qp_state) : from;
  if (rnic::check_modify(type, from, to, bits & ~static_cast<unsigned>(IBV_QP_STATE))) return EINVAL;
  if (!values_valid(attr, bits) || !one_path(attr, bits)) return EINVAL;
  if (to == QpState::rtr && from == QpState::init) {
    // A datagram queue pair has no path, so ignore its address vector.
    NicProcess& nic = *context_of(qp->context).nic;
    const Way way = bits & IBV_QP_AV ? way_to(nic, attr.ah_attr, rnic::Qpn(attr.dest_qp_num), type) : Way{};
    if (q.nic_qp->is_anothers() && way.reach != Reach::same_host && way.reach != Reach::nowhere)
      return refuse_anothers();
    if (way.reach == Reach::packets) {
      if (const int error = open_way(nic, way.to); error != 0) return error;
    }
    q.way = way;
    if (type == QpType::ud) datagrams_are_taken(nic);
  }
  if (q.xrcd != nullptr) refresh_shared(q);
  remember(q.attr, attr, bits);
  if (bits & IBV_QP_RATE_LIMIT) q.burst_bytes = burst_bytes;
  if (to == QpState::reset) {
    q.attr = {};
    q.way = {};
    q.burst_bytes = 0;
  }
  if (FaultyDevice* const faults = context_of(qp->context).nic->faults()) announce_psns(*faults, q, bits);
  const bool done = apply(q, to, (bits & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr.en_sqd_async_notify);
  if (!done) return EBUSY;  // a stopped peer is inside an operation on it
  // Update qp->state only if asked for, here and in a query: programs keep their own view there.
  if (mask & IBV_QP_STATE) qp->state = attr.qp_state;
  return 0;
}

}  // namespace

int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* limit) {
  if (limit->comp_mask != 0) return EINVAL;
  if (limit->rate_limit == 0 && limit->max_burst_sz != 0) return EINVAL;
  ibv_qp_attr attributes{};
  attributes.rate_limit = limit->rate_limit;
  return modify(qp, attributes, IBV_QP_RATE_LIMIT, limit->max_burst_sz);
}

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return modify(qp, *attr, static_cast<unsigned>(mask), 0);
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  if (static_cast<unsigned>(mask) & ~known_attributes) return EOPNOTSUPP;
  Qp& q = qp_of(qp);
  if (q.xrcd != nullptr) refresh_shared(q);
  *attr = q.attr;
  attr->qp_state = attr->cur_qp_state = static_cast<ibv_qp_state>(q.nic_qp->state());
  attr->cap = q.cap;
  attr->path_mig_state = IBV_MIG_MIGRATED;
  attr->sq_draining = q.nic_qp->draining();
  if (static_cast<unsigned>(mask) & IBV_QP_STATE) qp->state = attr->qp_state;
  *init = {};
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->srq = qp->srq;
  init->cap = q.cap;
  init->qp_type = qp->qp_type;
  init->sq_sig_all = q.signal_all;
  return 0;
}

}  // extern "C"
