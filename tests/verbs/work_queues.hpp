// What tests of receive-side scaling share: work queues, indirection tables, and the attributes of a queue
// pair that spreads by the lowest bit of a frame's IPv4 source address.
#pragma once

#include "flows.hpp"

namespace weir::verbs_test {

using Wq = std::unique_ptr<ibv_wq, Destroyer<ibv_destroy_wq>>;
using IndirectionTable = std::unique_ptr<ibv_rwq_ind_table, Destroyer<ibv_destroy_rwq_ind_table>>;

inline ibv_wq_init_attr wq_attr(ibv_pd* pd, ibv_cq* cq) {
  ibv_wq_init_attr init{};
  init.wq_type = IBV_WQT_RQ;
  init.max_wr = 64;
  init.max_sge = 2;
  init.pd = pd;
  init.cq = cq;
  return init;
}
inline int move(ibv_wq* wq, ibv_wq_state to) {
  ibv_wq_attr attr{};
  attr.attr_mask = IBV_WQ_ATTR_STATE;
  attr.wq_state = to;
  return ibv_modify_wq(wq, &attr);
}
inline Wq ready_wq(ibv_pd* pd, ibv_cq* cq) {
  ibv_wq_init_attr init = wq_attr(pd, cq);
  Wq wq(ibv_create_wq(pd->context, &init));
  EXPECT_TRUE(wq && move(wq.get(), IBV_WQS_RDY) == 0);
  return wq;
}
inline int post_recv(ibv_wq* wq, std::uint64_t id, ibv_sge sge) {
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  return ibv_post_wq_recv(wq, &wr, &bad);
}

// `wqs`: a power of two of them.
inline IndirectionTable make_table(ibv_context* context, std::vector<ibv_wq*> wqs) {
  ibv_rwq_ind_table_init_attr init{};
  while ((1u << init.log_ind_tbl_size) < wqs.size()) ++init.log_ind_tbl_size;
  init.ind_tbl = wqs.data();
  return IndirectionTable(ibv_create_rwq_ind_table(context, &init));
}

// The one bit of the key that is set makes the lowest bit of an address of 32 bits the lowest bit of its
// hash.
inline std::uint8_t parity_key[40] = {0, 0, 0, 0, 0, 0, 0, 2};

inline ibv_qp_init_attr_ex rss_attr(ibv_pd* pd, ibv_rwq_ind_table* table) {
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  init.pd = pd;
  init.rwq_ind_tbl = table;
  init.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof parity_key, parity_key, IBV_RX_HASH_SRC_IPV4};
  return init;
}
inline Qp rss_qp(ibv_pd* pd, ibv_rwq_ind_table* table) {
  ibv_qp_init_attr_ex init = rss_attr(pd, table);
  return Qp(ibv_create_qp_ex(pd->context, &init));
}

}  // namespace weir::verbs_test
