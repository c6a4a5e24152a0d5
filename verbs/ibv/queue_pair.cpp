// Queue pairs: create, destroy. Their attributes are in queue_pair_attributes.cpp.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "link/not_cancelled.hpp"
#include "verbs/faulty/calls.hpp"
#include "verbs/ibv/command_fd.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/domains.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/path.hpp"

namespace weir::verbs {
namespace {

using rnic::QpState;
using rnic::QpType;

// Granted even if the program asks for less, as other devices do; some programs rely on it.
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

int check_caps(const ibv_qp_cap& cap, bool has_srq) {
  if (cap.max_send_wr > rnic::max_wr || cap.max_send_sge > rnic::max_sge ||
      cap.max_inline_data > rnic::max_inline)
    return EINVAL;
  if (!has_srq && (cap.max_recv_wr > rnic::max_wr || cap.max_recv_sge > rnic::max_sge)) return EINVAL;
  return 0;
}

struct Origin {
  ibv_context* context;
  ibv_pd* pd;     // absent for XRC_RECV
  Xrcd* xrcd;     // XRC_RECV only
  bool extended;  // has ibv_wr_start and the other builder operations
};

// What each type needs besides its capabilities. Others are ignored, as ibv_create_qp_ex(3) says of XRC.
bool complete(const ibv_qp_init_attr& init, QpType type, const Origin& origin) {
  if (type == QpType::xrc_recv) return origin.xrcd != nullptr;
  if (origin.pd == nullptr || init.send_cq == nullptr) return false;
  return type == QpType::xrc_send || init.recv_cq != nullptr;
}

// All objects must belong to this context or to one that shares its file by import, as in the kernel.
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
  config.mtu_bytes = bytes_of(most_mtu());
  return config;
}

ibv_qp* create(const ibv_qp_init_attr& init, const Origin& origin) {
  if (is_refused(*context_of(origin.context).nic, faults::Call::create_qp)) return nullptr;
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
  if (FaultyDevice* const faults = context_of(origin.context).nic->faults())
    faults->queue_pair_made(qp->nic_qp->qpn().value());
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
  if (const FaultyDevice* const faults = context_of(origin.context).nic->faults(); faults && origin.extended)
    put_faulty_calls_in_front(qp->ex, *faults);
  return &q;
}

// On a wire, posted datagrams have left by the time their queue pair is destroyed, and programs that send do
// not always poll (mckey). So datagrams that still wait for a connection get as long as making one may take.
void send_waiting_datagrams(rnic::QueuePair& qp) {
  constexpr std::chrono::seconds longest_wait{1};
  constexpr std::chrono::milliseconds pause{1};
  if (!rnic::is_datagram(qp.config().type) || qp.state() != QpState::rts) return;
  const link::NotCancelled whole;
  const auto give_up = std::chrono::steady_clock::now() + longest_wait;
  while (qp.resume() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(pause);
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
  if (init->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
    return create_rss_qp(context, init);
  // Refuse unknown fields: a caller that got a queue pair would go on to use those features
  // through null pointers.
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

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp* qp = create(*init, {pd->context, pd, nullptr, false});
  if (qp != nullptr) init->cap = qp_of(qp).cap;
  return qp;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return qp_of(qp).extended ? &qp_of(qp).ex : nullptr; }

int ibv_destroy_qp(ibv_qp* qp) {
  Qp& q = qp_of(qp);
  Context& context = context_of(qp->context);
  if (q.flows.load() != 0) return EBUSY;
  if (last_handle_of(q)) {
    send_waiting_datagrams(*q.nic_qp);
    if (qp->qp_type == IBV_QPT_UD) context.nic->groups().forget(q.nic_qp->qpn().index());
    context.adapter().destroy(q.nic_qp);
  }
  const auto delivered = forget_async_events(context, q.async_delivered, [&](const ibv_async_event& e) {
    return e.event_type != IBV_EVENT_SRQ_LIMIT_REACHED && e.element.qp == qp;
  });
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

// For programs that may not wait: whether a peer is inside an operation on this queue pair and does not leave
// at once (its process may be stopped). Until the peer leaves, destroying the queue pair takes up to two
// seconds, and deregistering memory that the operation uses blocks.
bool weir_peer_inside(ibv_qp* qp) { return qp_of(qp).nic_qp->initiator_inside(); }

// Without flags 1, with return_caps the bit for a whole message: the last byte of a WRITE becomes visible
// last (rnic/memory/copy.hpp), unless the NIC is weak. The header of older releases names neither.
int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode, uint32_t flags) {
  constexpr std::uint32_t return_caps = 1;
  constexpr int whole_message = 1;
  if ((flags & ~return_caps) != 0) return 0;
  const weir::rnic::weak::Weak* const weak = context_of(qp->context).adapter().weak();
  return weak != nullptr && weak->plan.has(weir::rnic::weak::Weakness::lines) ? 0 : whole_message;
}

// Enhanced connection establishment has nothing to negotiate here: any options are
// accepted and replaced by zero.
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
