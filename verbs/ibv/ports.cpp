// Attributes of the device and its port: ibv_query_device, ibv_query_port, GIDs and P_Keys.
#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "verbs/faulty/calls.hpp"
#include "verbs/ibv/datagram_reception.hpp"
#include "verbs/ibv/device_memory.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/lid.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/path.hpp"
#include "verbs/ibv/private_nodes.hpp"
#include "verbs/ibv/sysfs_files.hpp"

namespace weir::verbs {
namespace {

constexpr std::uint8_t the_port = 1;
constexpr std::uint16_t default_pkey = 0xffff;

void fill_device(const ibv_context& context, ibv_device_attr& a) {
  a = {};
  std::snprintf(a.fw_ver, sizeof a.fw_ver, "0.1.0");
  a.node_guid = a.sys_image_guid = device_guid(index_of(*context.device));
  a.max_mr_size = UINT64_MAX;
  a.page_size_cap = 0xfffff000;
  a.vendor_id = 0x5745;
  a.vendor_part_id = 1;
  a.hw_ver = 1;
  a.max_qp = static_cast<int>(rnic::max_qps) - 2;
  a.max_qp_wr = rnic::max_wr;
  a.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_CURR_QP_STATE_MOD |
                       IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                       IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MANAGED_FLOW_STEERING;
  a.max_sge = a.max_sge_rd = rnic::max_sge;
  a.max_cq = rnic::max_cqs;
  a.max_cqe = static_cast<int>(rnic::max_cqe);
  a.max_mr = static_cast<int>(rnic::max_mrs);
  a.max_mw = static_cast<int>(rnic::max_mws);
  a.max_pd = 1 << 20;
  a.max_qp_rd_atom = a.max_qp_init_rd_atom = rnic::max_rd_atomic;
  a.max_res_rd_atom = static_cast<int>(rnic::max_rd_atomic) * a.max_qp;
  a.atomic_cap = IBV_ATOMIC_HCA;
  a.max_ah = max_address_handles;
  a.max_srq = rnic::max_srqs;
  a.max_srq_wr = rnic::max_wr;
  a.max_srq_sge = rnic::max_sge;
  a.max_mcast_grp = a.max_mcast_qp_attach = a.max_total_mcast_qp_attach =
      static_cast<int>(rnic::max_multicast_attachments);
  a.max_raw_ethy_qp = a.max_qp;
  a.max_pkeys = 1;
  a.phys_port_cnt = 1;
}

}  // namespace

constexpr std::uint64_t nanoseconds_in_kHz = 1'000'000;

// The caller may have been compiled against a shorter or a longer struct: fill the fields that
// fit and zero the others.
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t size) {
  if (port != the_port) return EINVAL;
  ibv_port_attr a{};
  const bool down = port_is_down(*context_of(context).nic) || cable_is_pulled();
  a.state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  a.max_mtu = IBV_MTU_4096;
  a.active_mtu = port_mtu();
  a.gid_tbl_len = static_cast<int>(gid_places());
  a.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  a.max_msg_sz = 1u << 31;
  a.pkey_tbl_len = 1;
  a.lid = port_lid();
  a.max_vl_num = 1;
  a.active_width = 2;           // 4x
  a.active_speed = 32;          // 25.78125 Gb/s a lane, which programs only print: nothing is clocked
  a.phys_state = down ? 3 : 5;  // disabled, link up
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  a.flags = IBV_QPF_GRH_REQUIRED;
  std::memset(out, 0, size);
  std::memcpy(out, &a, std::min(size, sizeof a));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < sizeof out->orig_attr) return EOPNOTSUPP;
  ibv_device_attr_ex a{};
  fill_device(*context, a.orig_attr);
  a.phys_port_cnt_ex = 1;
  // Nothing is ever pinned: pages are looked up on use, across the whole address space
  // if the region covers it.
  constexpr std::uint32_t messages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
  a.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  a.odp_caps.per_transport_caps.ud_odp_caps = messages;
  a.odp_caps.per_transport_caps.uc_odp_caps = messages | IBV_ODP_SUPPORT_SRQ_RECV | IBV_ODP_SUPPORT_WRITE;
  a.odp_caps.per_transport_caps.rc_odp_caps =
      a.odp_caps.per_transport_caps.uc_odp_caps | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  a.xrc_odp_caps = a.odp_caps.per_transport_caps.rc_odp_caps;
  a.packet_pacing_caps = {.qp_rate_limit_min = min_rate_limit_kbps,
                          .qp_rate_limit_max = max_rate_limit_kbps,
                          .supported_qpts = 1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD |
                                            1u << IBV_QPT_XRC_SEND | 1u << IBV_QPT_RAW_PACKET};
  a.rss_caps = rss_caps();
  a.max_wq_type_rq = static_cast<std::uint32_t>(a.orig_attr.max_qp);
  a.max_dm_size = max_device_memory_bytes;
  a.completion_timestamp_mask = UINT64_MAX;
  a.hca_core_clock = nanoseconds_in_kHz;
  a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
  std::memset(out, 0, size);
  std::memcpy(out, &a, std::min(size, sizeof a));
  return 0;
}

// The clock of completion timestamps (extended_cq.cpp): CLOCK_MONOTONIC, in nanoseconds.
int query_rt_values(ibv_context*, ibv_values_ex* values) {
  if (values->comp_mask & ~unsigned{IBV_VALUES_MASK_RAW_CLOCK}) return EINVAL;
  if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) ::clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
  return 0;
}

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  fill_device(*context, *attr);
  return 0;
}

// The exported function serves binaries that know only the oldest struct, so it must not
// write beyond link_layer.
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attr) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr), offsetof(ibv_port_attr, flags));
}

int ibv_query_gid(ibv_context*, uint8_t port, int index, ibv_gid* gid) {
  if (port != the_port || index < 0 || static_cast<std::size_t>(index) >= gid_places()) {
    errno = EINVAL;
    return -1;
  }
  *gid = gid_at(static_cast<std::size_t>(index)).value_or(GidEntry{}).gid;  // an empty place is all zeros
  address_is_known(*gid);
  return 0;
}

int _ibv_query_gid_ex(ibv_context*, uint32_t port, uint32_t index, ibv_gid_entry* entry, uint32_t flags,
                      size_t size) {
  if (port != the_port || flags != 0 || index >= gid_places()) return EINVAL;
  const auto found = gid_at(index);
  if (!found) return ENODATA;
  address_is_known(found->gid);
  ibv_gid_entry filled{};
  filled.gid = found->gid;
  filled.gid_index = index;
  filled.port_num = port;
  filled.gid_type = IBV_GID_TYPE_ROCE_V2;
  filled.ndev_ifindex = found->interface_index;
  std::memcpy(entry, &filled, std::min(size, sizeof filled));
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max, uint32_t flags,
                             size_t size) {
  if (flags != 0) return -EINVAL;
  std::size_t count = 0;
  for (std::size_t i = 0; i < gid_places(); ++i) {
    if (!gid_at(i)) continue;
    if (count == max) return -EINVAL;
    auto* entry = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<std::byte*>(entries) + count * size);
    const int error = _ibv_query_gid_ex(context, the_port, static_cast<uint32_t>(i), entry, flags, size);
    if (error == 0) ++count;  // otherwise the address has gone meanwhile
  }
  return static_cast<ssize_t>(count);
}

// The older interface has its own numbering (enum ibv_gid_type_sysfs): 0 is IB or RoCE v1 and also an
// empty place; 1 is RoCE v2.
int ibv_query_gid_type(ibv_context*, uint8_t port, unsigned int index, unsigned int* type) {
  if (port != the_port || index >= gid_places()) {
    errno = EINVAL;
    return -1;
  }
  *type = gid_at(index) ? 1 : 0;
  return 0;
}
WEIR_IN_OTHER_PRIVATE_NODES(ibv_query_gid_type)

int ibv_query_pkey(ibv_context*, uint8_t port, int index, __be16* pkey) {
  if (port != the_port || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htobe16(default_pkey);
  return 0;
}

int ibv_get_pkey_index(ibv_context*, uint8_t port, __be16 pkey) {
  return port == the_port && be16toh(pkey) == default_pkey ? 0 : -1;
}

}  // extern "C"
