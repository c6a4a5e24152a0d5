// Queue pairs that spread frames over work queues: ibv_create_qp_ex(3) with an indirection table and a
// receive hash. They have neither queues nor states of their own. They receive the frames of their flows
// (flow.cpp) from the beginning, as on NICs of the mlx5 family.
#include "rnic/ethernet/receive_side_scaling.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "verbs/ibv/domains.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

namespace field = rnic::rx_field;

static_assert(field::source_ipv4 == IBV_RX_HASH_SRC_IPV4 && field::destination_ipv4 == IBV_RX_HASH_DST_IPV4 &&
              field::source_ipv6 == IBV_RX_HASH_SRC_IPV6 && field::destination_ipv6 == IBV_RX_HASH_DST_IPV6 &&
              field::source_port_tcp == IBV_RX_HASH_SRC_PORT_TCP &&
              field::destination_port_tcp == IBV_RX_HASH_DST_PORT_TCP &&
              field::source_port_udp == IBV_RX_HASH_SRC_PORT_UDP &&
              field::destination_port_udp == IBV_RX_HASH_DST_PORT_UDP);

constexpr std::uint64_t known_fields = field::ipv4 | field::ipv6 | field::tcp | field::udp;

// Returns 0 or an errno.
int check_hash(const ibv_rx_hash_conf& hash, std::size_t entries) {
  if (hash.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ || (hash.rx_hash_fields_mask & ~known_fields))
    return EOPNOTSUPP;
  const std::uint64_t fields = hash.rx_hash_fields_mask;
  const bool both_versions = (fields & field::ipv4) && (fields & field::ipv6);
  const bool both_protocols = (fields & field::tcp) && (fields & field::udp);
  if (both_versions || both_protocols) return EINVAL;
  if (hash.rx_hash_key_len != rnic::toeplitz_key_bytes || hash.rx_hash_key == nullptr) return EINVAL;
  // Without hash fields everything goes to one entry.
  return fields == 0 && entries != 1 ? EINVAL : 0;
}

int check(const ibv_context* context, const ibv_qp_init_attr_ex& init) {
  constexpr std::uint32_t needed =
      IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_PD;
  if ((init.comp_mask & ~(needed | IBV_QP_INIT_ATTR_CREATE_FLAGS)) ||
      ((init.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && init.create_flags != 0) ||
      init.qp_type != IBV_QPT_RAW_PACKET)
    return EOPNOTSUPP;
  if ((init.comp_mask & needed) != needed) return EINVAL;
  if (init.pd == nullptr || init.pd->context != context) return EINVAL;
  if (init.rwq_ind_tbl == nullptr || init.rwq_ind_tbl->context != context) return EINVAL;
  // It sends nothing, and the receives are posted to its work queues.
  if (init.cap.max_send_wr != 0 || init.cap.max_recv_wr != 0 || init.cap.max_recv_sge != 0 ||
      init.srq != nullptr)
    return EINVAL;
  return check_hash(init.rx_hash_conf, table_of(init.rwq_ind_tbl).entries.size());
}

rnic::QpConfig config_of(const ibv_qp_init_attr_ex& init, Qp* cookie) {
  rnic::QpConfig config;
  config.type = rnic::QpType::rss;
  config.pd = pd_of(init.pd).number;
  config.cookie = cookie;
  config.rss.hash.fields = static_cast<std::uint32_t>(init.rx_hash_conf.rx_hash_fields_mask);
  std::copy_n(init.rx_hash_conf.rx_hash_key, rnic::toeplitz_key_bytes, config.rss.hash.key.begin());
  std::ranges::transform(table_of(init.rwq_ind_tbl).entries, std::back_inserter(config.rss.queues),
                         [](const Wq* wq) { return wq->nic_qp->qpn().index(); });
  return config;
}

}  // namespace

ibv_rss_caps rss_caps() {
  return {.supported_qpts = 1u << IBV_QPT_RAW_PACKET,
          .max_rwq_indirection_tables = max_indirection_tables,
          .max_rwq_indirection_table_size = rnic::max_indirection_entries,
          .rx_hash_fields_mask = known_fields,
          .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ};
}

ibv_qp* create_rss_qp(ibv_context* context, ibv_qp_init_attr_ex* init) {
  if (const int error = check(context, *init); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* qp = make_object<Qp>(init->pd, Resource::qp);
  if (qp != nullptr) qp->nic_qp = context_of(context).adapter().create_qp(config_of(*init, qp));
  if (qp == nullptr || qp->nic_qp == nullptr) {
    if (qp != nullptr) delete_object(init->pd, qp, Resource::qp);
    errno = ENOMEM;
    return nullptr;
  }
  qp->indirection = &table_of(init->rwq_ind_tbl);
  qp->indirection->qps.fetch_add(1);
  pd_of(init->pd).users.fetch_add(1);
  init->cap = {};
  ibv_qp& q = qp->ex.qp_base;
  q.context = context;
  q.qp_context = init->qp_context;
  q.pd = init->pd;
  q.handle = q.qp_num = qp->nic_qp->qpn().value();
  q.state = IBV_QPS_RTR;
  q.qp_type = IBV_QPT_RAW_PACKET;
  pthread_mutex_init(&q.mutex, nullptr);
  pthread_cond_init(&q.cond, nullptr);
  return &q;
}

}  // namespace weir::verbs
