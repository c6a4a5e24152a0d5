#include "verbs/cm/queue_pair.hpp"

#include <algorithm>
#include <cerrno>

namespace weir::cm {
namespace {

// 4.096 us * 2^18 = 1.07 s, slightly more than the path's life time.
constexpr std::uint8_t default_ack_timeout = 18;
constexpr std::uint8_t default_hop_limit = 64;

int last_error() { return errno != 0 ? errno : EINVAL; }

void fill_initial(const Id& id, ibv_qp_attr& attr, int& mask) {
  attr.pkey_index = 0;
  attr.port_num = id.port_num;
  mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.datagram()) {
    attr.qkey = RDMA_UDP_QKEY;
    mask |= IBV_QP_QKEY;
    return;
  }
  // Until the connection's parameters are known the peer has no rights.
  attr.qp_access_flags = 0;
  if (id.peers.type != MessageType{}) {
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (id.mine.responder_resources > 0)
      attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  }
  mask |= IBV_QP_ACCESS_FLAGS;
}

void fill_ready_to_receive(const Id& id, ibv_qp_attr& attr, int& mask) {
  mask = IBV_QP_STATE;
  if (id.datagram()) return;
  attr.ah_attr = {};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = id.port_num;
  attr.ah_attr.grh.dgid = id.remote.gid();
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(id.place->gid_index);
  attr.ah_attr.grh.hop_limit = default_hop_limit;
  attr.ah_attr.grh.traffic_class = id.type_of_service;
  attr.path_mtu = id.place->mtu;
  // A requester on another host has named its limit.
  if (id.peers.path_mtu != 0)
    attr.path_mtu = std::min(attr.path_mtu, static_cast<ibv_mtu>(id.peers.path_mtu));
  attr.dest_qp_num = id.peers.qpn;
  attr.rq_psn = id.mine.psn;  // each side chooses the PSN that the other begins with
  mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (id.transport() == Transport::unreliable) return;
  attr.max_dest_rd_atomic = id.mine.responder_resources;
  attr.min_rnr_timer = 0;  // the longest time, 655 ms, as in the kernel
  mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

void fill_ready_to_send(const Id& id, ibv_qp_attr& attr, int& mask) {
  attr.sq_psn = id.peers.psn;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (id.datagram() || id.transport() == Transport::unreliable) return;
  attr.timeout = id.ack_timeout.value_or(default_ack_timeout);
  // The REQ sets the retry count of both sides. Each side sets how often the other retries after an RNR NAK.
  attr.retry_cnt = id.stage == Stage::passive ? id.peers.retry_count : id.mine.retry_count;
  attr.rnr_retry = id.peers.rnr_retry_count;
  attr.max_rd_atomic = id.mine.initiator_depth;
  mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

int modify(Id& id, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  int mask = 0;
  if (const int error = attributes_for(id, attr, mask); error != 0) return error;
  return ibv_modify_qp(id.qp, &attr, mask);
}

int make_completion_queue(Id& id, std::uint32_t entries, ibv_comp_channel*& channel, ibv_cq*& cq) {
  channel = ibv_create_comp_channel(id.verbs);
  if (channel == nullptr) return last_error();
  cq = ibv_create_cq(id.verbs, static_cast<int>(entries), &id, channel, 0);
  if (cq != nullptr) return 0;
  const int error = last_error();
  ibv_destroy_comp_channel(channel);
  channel = nullptr;
  return error;
}

void destroy_completion_queue(ibv_comp_channel*& channel, ibv_cq*& cq) {
  if (cq != nullptr) ibv_destroy_cq(cq);
  if (channel != nullptr) ibv_destroy_comp_channel(channel);
  cq = nullptr;
  channel = nullptr;
}

// The CQs that were made for the identifier, as far as nothing of it uses them any more: an XRC SRQ completes
// into the receive CQ, and may outlive the queue pair.
void destroy_own_queues(Id& id) {
  if (id.srq_is != Id::Srq::completes_into_recv_cq) destroy_completion_queue(id.recv_cq_channel, id.recv_cq);
  destroy_completion_queue(id.send_cq_channel, id.send_cq);
}

int make_own_queues(Id& id, const ibv_qp_init_attr_ex& attr) {
  int error = 0;
  if (attr.send_cq == nullptr && attr.cap.max_send_wr > 0) {
    error = make_completion_queue(id, attr.cap.max_send_wr, id.send_cq_channel, id.send_cq);
  }
  if (error == 0 && attr.recv_cq == nullptr && id.recv_cq == nullptr && attr.cap.max_recv_wr > 0) {
    error = make_completion_queue(id, attr.cap.max_recv_wr, id.recv_cq_channel, id.recv_cq);
  }
  if (error != 0) destroy_own_queues(id);
  return error;
}

// The queue pair's protection domain: the application's own, or the device's common one.
int choose_pd(const Id& id, Devices& devices, ibv_pd*& pd) {
  if (pd != nullptr) return pd->context == id.verbs ? 0 : EINVAL;
  pd = id.pd != nullptr ? id.pd : devices.default_pd(id.verbs);
  return pd != nullptr ? 0 : last_error();
}

}  // namespace

int attributes_for(const Id& id, ibv_qp_attr& attr, int& mask) {
  if (!id.place) return EINVAL;
  switch (attr.qp_state) {
    case IBV_QPS_INIT:
      fill_initial(id, attr, mask);
      return 0;
    case IBV_QPS_RTR:
      fill_ready_to_receive(id, attr, mask);
      return 0;
    case IBV_QPS_RTS:
      fill_ready_to_send(id, attr, mask);
      return 0;
    default:
      return EINVAL;
  }
}

int create_queue_pair(Id& id, Devices& devices, ibv_qp_init_attr_ex& attr) {
  if (id.verbs == nullptr || id.qp != nullptr || attr.qp_type != id.qp_type) return EINVAL;
  ibv_pd* pd = (attr.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr.pd : nullptr;
  if (const int error = choose_pd(id, devices, pd); error != 0) return error;
  attr.pd = pd;
  attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
  if (attr.srq == nullptr) attr.srq = id.srq;
  if (const int error = make_own_queues(id, attr); error != 0) return error;
  if (attr.send_cq == nullptr) attr.send_cq = id.send_cq != nullptr ? id.send_cq : id.recv_cq;
  if (attr.recv_cq == nullptr) attr.recv_cq = id.recv_cq != nullptr ? id.recv_cq : attr.send_cq;
  if (attr.send_cq == nullptr) attr.send_cq = attr.recv_cq;

  const bool xrc_receive = attr.qp_type == IBV_QPT_XRC_RECV;
  const bool plain = attr.comp_mask == IBV_QP_INIT_ATTR_PD && !xrc_receive;
  if (plain) {
    ibv_qp_init_attr base{attr.qp_context, attr.send_cq, attr.recv_cq,   attr.srq,
                          attr.cap,        attr.qp_type, attr.sq_sig_all};
    id.qp = ibv_create_qp(pd, &base);
    attr.cap = base.cap;
  } else {
    // An XRC_RECV queue pair belongs to an XRC domain instead and only carries messages to SRQs.
    if (xrc_receive && (attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0)
      attr.xrcd = devices.default_xrcd(id.verbs);
    ibv_qp_init_attr_ex asked = attr;
    if (xrc_receive)
      asked.comp_mask = (attr.comp_mask & ~unsigned{IBV_QP_INIT_ATTR_PD}) | IBV_QP_INIT_ATTR_XRCD;
    id.qp = ibv_create_qp_ex(id.verbs, &asked);
    attr.cap = asked.cap;
  }
  int error = id.qp != nullptr ? 0 : last_error();
  if (error == 0) error = modify(id, IBV_QPS_INIT);
  if (error == 0 && id.datagram()) error = modify(id, IBV_QPS_RTR);
  if (error == 0 && id.datagram()) error = modify(id, IBV_QPS_RTS);
  if (error != 0) {
    destroy_queue_pair(id);
    return error;
  }
  id.pd = pd;
  return 0;
}

void destroy_queue_pair(Id& id) {
  if (id.qp != nullptr) ibv_destroy_qp(id.qp);
  id.qp = nullptr;
  destroy_own_queues(id);
}

namespace {

// If the application named no XRC domain or CQ for an XRC SRQ: uses the default domain and the identifier's
// receive CQ, on which the application waits.
int complete_xrc(Id& id, Devices& devices, ibv_srq_init_attr_ex& attr) {
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0) attr.xrcd = devices.default_xrcd(id.verbs);
  if (attr.xrcd == nullptr) return last_error();
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0) {
    if (id.recv_cq == nullptr) {
      const int error = make_completion_queue(id, attr.attr.max_wr, id.recv_cq_channel, id.recv_cq);
      if (error != 0) return error;
    }
    attr.cq = id.recv_cq;
    id.srq_is = Id::Srq::completes_into_recv_cq;
  }
  attr.comp_mask |= IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  return 0;
}

}  // namespace

int create_receive_queue(Id& id, Devices& devices, ibv_srq_init_attr_ex& attr) {
  if (id.verbs == nullptr || id.srq != nullptr) return EINVAL;
  ibv_pd* pd = (attr.comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 ? attr.pd : nullptr;
  if (const int error = choose_pd(id, devices, pd); error != 0) return error;
  const bool basic = (attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || attr.srq_type == IBV_SRQT_BASIC;
  id.srq_is = Id::Srq::own;
  if (basic) {
    ibv_srq_init_attr base{attr.srq_context, attr.attr};
    id.srq = ibv_create_srq(pd, &base);
    attr.attr = base.attr;
  } else {
    attr.pd = pd;
    if (const int error = complete_xrc(id, devices, attr); error != 0) return error;
    id.srq = ibv_create_srq_ex(id.verbs, &attr);
  }
  if (id.srq == nullptr) {
    const int error = last_error();
    id.srq_is = Id::Srq::own;
    if (id.qp == nullptr) destroy_own_queues(id);
    return error;
  }
  id.pd = pd;
  return 0;
}

void destroy_receive_queue(Id& id) {
  if (id.srq != nullptr) ibv_destroy_srq(id.srq);
  id.srq = nullptr;
  id.srq_is = Id::Srq::own;
  if (id.qp == nullptr) destroy_own_queues(id);
}

int make_ready(Id& id) {
  if (id.qp == nullptr || id.datagram()) return 0;
  for (const auto state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (const int error = modify(id, state); error != 0) return error;
    // The path leads to the process that is in the peer's slot now. If the peer was another user's process
    // and has ended meanwhile, that process is a stranger.
    const bool of_another_user = id.neighbour && id.neighbour->slot() == 0;
    if (of_another_user && !id.neighbour->alive()) return ENOTCONN;
  }
  return 0;
}

void make_error(Id& id) {
  if (id.qp == nullptr || id.datagram()) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(id.qp, &attr, IBV_QP_STATE);
}

}  // namespace weir::cm
