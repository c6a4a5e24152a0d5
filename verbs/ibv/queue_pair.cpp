// Queue pairs: create, modify, query, destroy.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "verbs/ibv/command_fd.hpp"
#include "verbs/ibv/domains.hpp"
#include "verbs/ibv/event_count.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/shape.hpp"

namespace weir::verbs {
namespace {

using rnic::QpState;
using rnic::QpType;

// Granted also to those who ask for less, as other devices do; programs have come to count on some.
constexpr std::uint32_t least_inline = 64;

std::optional<QpType> type_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return QpType::rc;
    case IBV_QPT_UC:
      return QpType::uc;
    case IBV_QPT_UD:
      return QpType::ud;
    case IBV_QPT_RAW_PACKET:
      return QpType::raw_packet;
    case IBV_QPT_XRC_SEND:
      return QpType::xrc_send;
    case IBV_QPT_XRC_RECV:
      return QpType::xrc_recv;
    default:
      return std::nullopt;
  }
}

// Programs set up both kinds of XRC queue pair alike; what a kind has no use for is ignored.
unsigned meaningful(unsigned mask, QpType type) {
  if (type == QpType::xrc_send) return mask & ~unsigned{IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER};
  if (type == QpType::xrc_recv)
    return mask & ~unsigned{IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY};
  return mask;
}

// As RoCE devices do: one path, so there is none to migrate to.
bool one_path(const ibv_qp_attr& a, unsigned mask) {
  if (mask & IBV_QP_ALT_PATH) return false;
  return !(mask & IBV_QP_PATH_MIG_STATE) || a.path_mig_state == IBV_MIG_MIGRATED;
}

int check_caps(const ibv_qp_cap& cap, bool has_srq) {
  if (cap.max_send_wr > rnic::max_wr || cap.max_send_sge > rnic::max_sge ||
      cap.max_inline_data > rnic::max_inline)
    return EINVAL;
  if (!has_srq && (cap.max_recv_wr > rnic::max_wr || cap.max_recv_sge > rnic::max_sge)) return EINVAL;
  return 0;
}

struct Origin {
  ibv_context* context;
  ibv_pd* pd;     // but XRC_RECV
  Xrcd* xrcd;     // XRC_RECV alone
  bool extended;  // has the operations of ibv_wr_start and so on
};

// What each type needs besides its capabilities; the rest it ignores, as ibv_create_qp_ex(3) says of XRC.
bool complete(const ibv_qp_init_attr& init, QpType type, const Origin& origin) {
  if (type == QpType::xrc_recv) return origin.xrcd != nullptr;
  if (origin.pd == nullptr || init.send_cq == nullptr) return false;
  return type == QpType::xrc_send || init.recv_cq != nullptr;
}

// Of this context, or of one that is imported from it or it from: the kernel finds objects by open file.
bool of_one_context(const ibv_qp_init_attr& init, QpType type, const Origin& origin) {
  const auto is_ours = [&](const auto* object) {
    return object == nullptr || object->context == origin.context ||
           same_command_file(object->context->cmd_fd, origin.context->cmd_fd);
  };
  if (!is_ours(origin.pd) || (origin.xrcd != nullptr && !is_ours(&origin.xrcd->xrcd))) return false;
  if (type == QpType::xrc_recv || !is_ours(init.send_cq)) return type == QpType::xrc_recv;
  return type == QpType::xrc_send || (is_ours(init.recv_cq) && is_ours(init.srq));
}

rnic::QpConfig config_of(const ibv_qp_init_attr& init, QpType type, const Origin& origin) {
  const bool sends = type != QpType::xrc_recv;
  const bool receives = sends && type != QpType::xrc_send;
  const bool own_rq = receives && init.srq == nullptr;
  rnic::QpConfig config;
  config.type = type;
  config.pd = origin.pd != nullptr ? pd_of(origin.pd).number : 0;
  config.send_cq = sends ? cq_of(init.send_cq).nic_cq : nullptr;
  config.recv_cq = receives ? cq_of(init.recv_cq).nic_cq : nullptr;
  config.srq = receives && init.srq ? srq_of(init.srq).nic_srq : nullptr;
  config.xrcd = origin.xrcd != nullptr ? origin.xrcd->identity : 0;
  config.caps.max_send_wr = sends ? std::max(init.cap.max_send_wr, 1u) : 0;
  config.caps.max_send_sge = sends ? std::max(init.cap.max_send_sge, 1u) : 0;
  config.caps.max_inline = sends ? std::max(init.cap.max_inline_data, least_inline) : 0;
  config.caps.max_recv_wr = own_rq ? init.cap.max_recv_wr : 0;
  config.caps.max_recv_sge = own_rq ? std::max(init.cap.max_recv_sge, 1u) : 0;
  config.signal_all = init.sq_sig_all != 0;
  config.mtu_bytes = bytes_of(shape().active_mtu);
  return config;
}

ibv_qp* create(const ibv_qp_init_attr& init, const Origin& origin) {
  const auto type = type_of(init.qp_type);
  const int invalid = check_caps(init.cap, init.srq != nullptr);
  if (!type || invalid != 0 || !complete(init, *type, origin) || !of_one_context(init, *type, origin)) {
    errno = !type ? EOPNOTSUPP : EINVAL;
    return nullptr;
  }
  auto* qp = make_object<Qp>(origin.pd, Resource::qp);
  if (qp == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  rnic::QpConfig config = config_of(init, *type, origin);
  config.cookie = qp;
  qp->nic_qp = context_of(origin.context).adapter().create_qp(config);
  if (qp->nic_qp == nullptr) {
    delete_object(origin.pd, qp, Resource::qp);
    errno = ENOMEM;
    return nullptr;
  }
  qp->cap = {config.caps.max_send_wr, config.caps.max_recv_wr, config.caps.max_send_sge,
             config.caps.max_recv_sge, config.caps.max_inline};
  qp->signal_all = config.signal_all;
  qp->extended = origin.extended;
  qp->xrcd = origin.xrcd;
  ibv_qp& q = qp->ex.qp_base;
  q.context = origin.context;
  q.qp_context = init.qp_context;
  q.pd = origin.pd;
  q.send_cq = config.send_cq != nullptr ? init.send_cq : nullptr;
  q.recv_cq = config.recv_cq != nullptr ? init.recv_cq : nullptr;
  q.srq = config.srq != nullptr ? init.srq : nullptr;
  q.handle = q.qp_num = qp->nic_qp->qpn().value();
  q.state = IBV_QPS_RESET;
  q.qp_type = init.qp_type;
  pthread_mutex_init(&q.mutex, nullptr);
  pthread_cond_init(&q.cond, nullptr);
  if (origin.pd != nullptr) pd_of(origin.pd).users.fetch_add(1);
  if (origin.xrcd != nullptr) {
    origin.xrcd->users.fetch_add(1);
    share_queue_pair(*qp);
  }
  if (origin.extended) install_builders(qp->ex);
  return &q;
}

constexpr unsigned qp_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                               IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE;

// All that there are: what may come behind them nobody knows yet.
constexpr unsigned known_attributes = IBV_QP_RATE_LIMIT | (IBV_QP_RATE_LIMIT - 1);

bool values_valid(const ibv_qp_attr& a, unsigned mask) {
  if ((mask & IBV_QP_RATE_LIMIT) && a.rate_limit != 0 &&
      (a.rate_limit < min_rate_limit_kbps || a.rate_limit > max_rate_limit_kbps))
    return false;
  if ((mask & IBV_QP_PORT) && a.port_num != 1) return false;
  if ((mask & IBV_QP_PKEY_INDEX) && a.pkey_index != 0) return false;
  if ((mask & IBV_QP_PATH_MTU) && (a.path_mtu < IBV_MTU_256 || a.path_mtu > shape().active_mtu)) return false;
  if ((mask & IBV_QP_TIMEOUT) && a.timeout > 31) return false;
  if ((mask & IBV_QP_RETRY_CNT) && a.retry_cnt > 7) return false;
  if ((mask & IBV_QP_RNR_RETRY) && a.rnr_retry > 7) return false;
  if ((mask & IBV_QP_MIN_RNR_TIMER) && a.min_rnr_timer > 31) return false;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a.max_rd_atomic > rnic::max_rd_atomic) return false;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a.max_dest_rd_atomic > rnic::max_rd_atomic) return false;
  if ((mask & IBV_QP_ACCESS_FLAGS) && (a.qp_access_flags & ~qp_access)) return false;
  if ((mask & IBV_QP_AV) && a.ah_attr.port_num != 1) return false;
  if ((mask & IBV_QP_AV) && a.ah_attr.is_global && a.ah_attr.grh.sgid_index >= gid_table().size())
    return false;
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
  // The kernel masks them, too, instead of refusing: programs draw them at random.
  if (mask & IBV_QP_RQ_PSN) kept.rq_psn = a.rq_psn & largest_psn;
  if (mask & IBV_QP_SQ_PSN) kept.sq_psn = a.sq_psn & largest_psn;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) kept.max_rd_atomic = a.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) kept.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) kept.min_rnr_timer = a.min_rnr_timer;
  if (mask & IBV_QP_DEST_QPN) kept.dest_qp_num = a.dest_qp_num;
  if (mask & IBV_QP_RATE_LIMIT) kept.rate_limit = a.rate_limit;
}

// On one host the destination QPN alone finds the peer, so a path without a GRH is accepted, as old programs
// set it up (ibv_rc_pingpong without -g). With one, its GID must be an address of this host: elsewhere nobody
// answers.
rnic::Qpn destination(const ibv_qp_attr& a) {
  const bool here = !a.ah_attr.is_global || find_gid(a.ah_attr.grh.dgid).has_value();
  return here ? rnic::Qpn(a.dest_qp_num) : rnic::Qpn(0, rnic::Qpn(a.dest_qp_num).index());
}

// The slower of the limit that was set and the static rate of the path.
rnic::RateLimit rate_of(const Qp& qp) {
  rnic::RateLimit rate{.kbps = qp.attr.rate_limit, .burst_bytes = qp.burst_bytes};
  const std::uint32_t path_kbps = path_kbps_of(qp.attr.ah_attr);
  if (path_kbps != 0 && (rate.kbps == 0 || path_kbps < rate.kbps)) rate.kbps = path_kbps;
  return rate;
}

bool apply(Qp& qp, QpState to, bool sqd_event) {
  rnic::QpAttributes attributes;
  attributes.access = qp.attr.qp_access_flags;
  attributes.destination = destination(qp.attr);
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

// `burst_bytes`: with IBV_QP_RATE_LIMIT.
int modify(ibv_qp* qp, const ibv_qp_attr& attr, unsigned mask, std::uint32_t burst_bytes) {
  if (mask & ~known_attributes) return EOPNOTSUPP;
  Qp& q = qp_of(qp);
  const auto type = q.nic_qp->config().type;
  if (type == QpType::rss) return EOPNOTSUPP;  // it is ready, and its work queues have the states
  const unsigned bits = meaningful(mask, type);
  const QpState from = q.nic_qp->state();
  if ((bits & IBV_QP_CUR_STATE) && attr.cur_qp_state != static_cast<ibv_qp_state>(from)) return EINVAL;
  const auto to = bits & IBV_QP_STATE ? static_cast<QpState>(attr.qp_state) : from;
  if (rnic::check_modify(type, from, to, bits & ~static_cast<unsigned>(IBV_QP_STATE))) return EINVAL;
  if (!values_valid(attr, bits) || !one_path(attr, bits)) return EINVAL;
  if (q.xrcd != nullptr) refresh_shared(q);
  remember(q.attr, attr, bits);
  if (bits & IBV_QP_RATE_LIMIT) q.burst_bytes = burst_bytes;
  if (to == QpState::reset) {
    q.attr = {};
    q.burst_bytes = 0;
  }
  const bool done = apply(q, to, (bits & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr.en_sqd_async_notify);
  qp->state = static_cast<ibv_qp_state>(done ? to : QpState::err);
  return done ? 0 : EBUSY;  // a stopped peer is in the middle of an operation on it
}

// On a wire what was posted is gone by the time that its queue pair is destroyed, and programs that send do
// not always poll (mckey). So those that wait for a connection have as long as making one may take.
void send_waiting_datagrams(rnic::QueuePair& qp) {
  constexpr std::chrono::seconds longest_wait{1};
  constexpr std::chrono::milliseconds pause{1};
  if (!rnic::is_datagram(qp.config().type) || qp.state() != QpState::rts) return;
  const auto give_up = std::chrono::steady_clock::now() + longest_wait;
  while (qp.resume() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(pause);
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
  if (init->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
    return create_rss_qp(context, init);
  // Unknown fields must be refused: a caller that got a queue pair would go on to use them through null
  // pointers.
  const bool xrc_recv = init->qp_type == IBV_QPT_XRC_RECV;
  const std::uint32_t domain = xrc_recv ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  const std::uint32_t known =
      domain | IBV_QP_INIT_ATTR_CREATE_FLAGS | (xrc_recv ? 0u : unsigned{IBV_QP_INIT_ATTR_SEND_OPS_FLAGS});
  constexpr std::uint64_t known_ops =
      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
      IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;
  const bool wants_ops = init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((init->comp_mask & ~known) || !(init->comp_mask & domain) ||
      ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && init->create_flags != 0) ||
      (wants_ops && (init->send_ops_flags & ~known_ops))) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_qp_init_attr plain{};
  plain.qp_context = init->qp_context;
  plain.send_cq = init->send_cq;
  plain.recv_cq = init->recv_cq;
  plain.srq = init->srq;
  plain.cap = init->cap;
  plain.qp_type = init->qp_type;
  plain.sq_sig_all = init->sq_sig_all;
  ibv_qp* qp = create(plain, {context, xrc_recv ? nullptr : init->pd,
                              xrc_recv && init->xrcd ? &xrcd_of(init->xrcd) : nullptr, wants_ops});
  if (qp != nullptr) init->cap = qp_of(qp).cap;
  return qp;
}

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

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp* qp = create(*init, {pd->context, pd, nullptr, false});
  if (qp != nullptr) init->cap = qp_of(qp).cap;
  return qp;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return qp_of(qp).extended ? &qp_of(qp).ex : nullptr; }

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
  qp->state = attr->qp_state;
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

int ibv_destroy_qp(ibv_qp* qp) {
  Qp& q = qp_of(qp);
  Context& context = context_of(qp->context);
  if (q.flows.load() != 0) return EBUSY;
  if (last_handle_of(q)) {
    send_waiting_datagrams(*q.nic_qp);
    context.adapter().destroy(q.nic_qp);
  }
  std::uint32_t delivered = 0;
  {
    const std::lock_guard lock(context.async_mutex);
    const std::size_t undelivered = std::erase_if(context.async_queue, [&](const ibv_async_event& e) {
      return e.event_type != IBV_EVENT_SRQ_LIMIT_REACHED && e.element.qp == qp;
    });
    discard_events(context.async_eventfd, undelivered);
    delivered = q.async_delivered;
  }
  wait_for_acks(*qp, qp->events_completed, delivered);
  if (q.xrcd != nullptr) q.xrcd->users.fetch_sub(1);
  if (q.indirection != nullptr) q.indirection->qps.fetch_sub(1);
  pthread_cond_destroy(&qp->cond);
  pthread_mutex_destroy(&qp->mutex);
  ibv_pd* const pd = qp->pd;
  delete_object(pd, &q, Resource::qp);
  if (pd != nullptr) drop_user(pd_of(pd));
  return 0;
}

int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t flags) {
  if (flags != 0) return 0;
  return 1;  // the last byte of a WRITE becomes visible last (rnic/copy.hpp)
}

// Enhanced connection establishment has nothing to negotiate here: what is set is accepted and given back as
// zero.
int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
  if (ece->comp_mask != 0) return EINVAL;
  *ece = {};
  return 0;
}
int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return 0;
}

}  // extern "C"
