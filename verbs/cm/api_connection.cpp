// rdma_cm's C interface: queue pairs and connections.
#include <rdma/rdma_verbs.h>

#include <algorithm>

#include "verbs/cm/api.hpp"
#include "verbs/cm/queue_pair.hpp"

using namespace weir::cm;

namespace {

constexpr std::uint8_t most_retries = 7;

// The connection parameters from the application, or our defaults. `most` is the limit; the constant
// RDMA_MAX_* and missing parameters ask for all of it.
int read_parameters(const Id& id, const rdma_conn_param* given, const Devices::Limits& most,
                    CmMessage& mine) {
  mine.psn = id.mine.psn;
  mine.ece = id.local_ece;
  mine.responder_resources = most.responder_resources;
  mine.initiator_depth = most.initiator_depth;
  mine.retry_count = mine.rnr_retry_count = most_retries;
  mine.qpn = id.qp != nullptr ? id.qp->qp_num : 0;
  mine.srq = id.qp != nullptr && id.qp->srq != nullptr;
  if (given == nullptr) return 0;
  if (given->responder_resources != RDMA_MAX_RESP_RES) {
    if (given->responder_resources > most.responder_resources) return EINVAL;
    mine.responder_resources = given->responder_resources;
  }
  if (given->initiator_depth != RDMA_MAX_INIT_DEPTH) {
    if (given->initiator_depth > most.initiator_depth) return EINVAL;
    mine.initiator_depth = given->initiator_depth;
  }
  mine.flow_control = given->flow_control;
  mine.retry_count = std::min(given->retry_count, most_retries);
  mine.rnr_retry_count = std::min(given->rnr_retry_count, most_retries);
  if (id.qp == nullptr) {
    mine.qpn = given->qp_num & 0xffffff;
    mine.srq = given->srq;
  }
  const auto data = private_bytes(given->private_data, given->private_data_len);
  mine.private_data.assign(data.begin(), data.end());
  return 0;
}

}  // namespace

extern "C" {

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) {
  return as_c(create_queue_pair(Id::of(id), agent().devices(), *attr));
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = attr->qp_context;
  extended.send_cq = attr->send_cq;
  extended.recv_cq = attr->recv_cq;
  extended.srq = attr->srq;
  extended.cap = attr->cap;
  extended.qp_type = attr->qp_type;
  extended.sq_sig_all = attr->sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  const int result = rdma_create_qp_ex(id, &extended);
  if (result != 0) return result;
  attr->send_cq = extended.send_cq;
  attr->recv_cq = extended.recv_cq;
  attr->srq = extended.srq;
  attr->cap = extended.cap;
  return 0;
}

void rdma_destroy_qp(rdma_cm_id* id) { destroy_queue_pair(Id::of(id)); }

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  return as_c(create_receive_queue(Id::of(id), agent().devices(), *attr));
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex extended{};
  extended.srq_context = attr->srq_context;
  extended.attr = attr->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  extended.pd = pd;
  const int result = rdma_create_srq_ex(id, &extended);
  if (result == 0) attr->attr = extended.attr;
  return result;
}

void rdma_destroy_srq(rdma_cm_id* id) { destroy_receive_queue(Id::of(id)); }

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) {
  return as_c(attributes_for(Id::of(id), *attr, *mask));
}

int rdma_connect(rdma_cm_id* id, rdma_conn_param* param) {
  Id& mine = Id::of(id);
  CmMessage request;
  if (const int error = read_parameters(mine, param, Devices::limits(id->verbs), request); error != 0)
    return as_c(error);
  if (request.private_data.empty()) request.private_data = mine.connect_data;
  if (request.private_data.size() > (mine.datagram() ? sidr_req_private_bytes : req_private_bytes))
    return as_c(EINVAL);
  if (const int error = agent().connect(mine, std::move(request)); error != 0) return as_c(error);
  return complete(mine);
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* param) {
  Id& mine = Id::of(id);
  // By default grant what the requester wants, within the limits of the device.
  Devices::Limits most = Devices::limits(id->verbs);
  CmMessage answer;
  if (const int error = read_parameters(mine, param, most, answer); error != 0) return as_c(error);
  if (param == nullptr || param->responder_resources == RDMA_MAX_RESP_RES) {
    answer.responder_resources = std::min(answer.responder_resources, mine.peers.initiator_depth);
  }
  if (param == nullptr || param->initiator_depth == RDMA_MAX_INIT_DEPTH) {
    answer.initiator_depth = std::min(answer.initiator_depth, mine.peers.responder_resources);
  }
  if (mine.datagram()) answer.qkey = RDMA_UDP_QKEY;
  if (answer.private_data.size() > (mine.datagram() ? sidr_rep_private_bytes : rep_private_bytes))
    return as_c(EINVAL);
  if (mine.stage != Stage::passive) return as_c(EINVAL);
  mine.mine.responder_resources = answer.responder_resources;
  mine.mine.initiator_depth = answer.initiator_depth;
  int error = make_ready(mine);
  if (error == 0) error = agent().accept(mine, std::move(answer));
  if (error != 0) {
    make_error(mine);
    return as_c(error);
  }
  return mine.datagram() ? 0 : complete(mine);
}

int rdma_establish(rdma_cm_id* id) {
  if (id->qp != nullptr) return as_c(EINVAL);
  return as_c(agent().apply_local(Id::of(id), Input::establish));
}

int rdma_reject(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  if (private_data_len > rej_private_bytes) return as_c(EINVAL);
  return as_c(agent().reject(Id::of(id), private_bytes(private_data, private_data_len)));
}

int rdma_reject_ece(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  return rdma_reject(id, private_data, private_data_len);
}

int rdma_disconnect(rdma_cm_id* id) {
  Id& mine = Id::of(id);
  make_error(mine);
  if (const int error = agent().apply_local(mine, Input::disconnect); error != 0) return as_c(error);
  // A call that waits for the event must not wait for one that never comes.
  return agent().end_is_to_be_told(mine) || mine.events().readable() ? complete(mine) : 0;
}

int rdma_notify(rdma_cm_id* id, ibv_event_type event) {
  if (event != IBV_EVENT_COMM_EST) return as_c(EINVAL);
  return as_c(agent().apply_local(Id::of(id), Input::force_established));
}

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (id == nullptr || ece == nullptr || ece->comp_mask != 0) return as_c(EINVAL);
  Id::of(id).local_ece = *ece;
  return 0;
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (id == nullptr || ece == nullptr) return as_c(EINVAL);
  if (id->qp != nullptr) return as_c(EINVAL);  // we have used it already
  *ece = Id::of(id).peers.ece;
  ece->comp_mask = 0;
  return 0;
}

}  // extern "C"
