// The interface between libibverbs and hardware providers (nodes IBVERBS_PRIVATE_*).
//
// Programs that link libmlx5 or libefa for their direct-verbs calls (perftest, UCX) load those providers,
// which bind all of these symbols at load time. On the software NIC no provider ever gets a device, so the
// functions exist only to be bound. Registration is accepted and forgotten; a call that would talk to a
// kernel device fails with ENOSYS.
#include <cerrno>

#include "verbs/ibv/private_nodes.hpp"

extern "C" {

// Providers read it when the kernel takes a device away, which never happens here.
bool verbs_allow_disassociate_destroy = false;

void verbs_register_driver_25(const void*) {}
void verbs_register_driver_33(const void*) {}
void verbs_register_driver_34(const void*) {}
void verbs_register_driver_57(const void*) {}
void verbs_register_driver_59(const void*) {}
void verbs_register_driver_64(const void*) {}
void verbs_register_driver_65(const void*) {}
void __verbs_log(const void*, unsigned, const char*, ...) {}
void verbs_set_ops(void*, const void*) {}
void verbs_uninit_context(void*) {}
void* _verbs_init_and_alloc_context(void*, int, unsigned long, void*, unsigned) {
  errno = ENOSYS;
  return nullptr;
}
void* verbs_open_device(void*, void*) {
  errno = ENOSYS;
  return nullptr;
}
void verbs_init_cq(void*, void*, void*, void*) {}

// Providers use it only in their messages.
const char* ibv_wr_opcode_str(unsigned) { return "unknown"; }

WEIR_IN_OTHER_PRIVATE_NODES(verbs_allow_disassociate_destroy)
WEIR_IN_OTHER_PRIVATE_NODES(__verbs_log)
WEIR_IN_OTHER_PRIVATE_NODES(verbs_set_ops)
WEIR_IN_OTHER_PRIVATE_NODES(verbs_uninit_context)
WEIR_IN_OTHER_PRIVATE_NODES(_verbs_init_and_alloc_context)
WEIR_IN_OTHER_PRIVATE_NODES(verbs_open_device)
WEIR_IN_OTHER_PRIVATE_NODES(verbs_init_cq)
WEIR_IN_PRIVATE_NODE(ibv_wr_opcode_str, 59)
WEIR_IN_PRIVATE_NODE(ibv_wr_opcode_str, 64)
WEIR_IN_PRIVATE_NODE(ibv_wr_opcode_str, 65)

#define WEIR_NO_KERNEL_DEVICE(name) \
  int name() { return ENOSYS; }     \
  WEIR_IN_OTHER_PRIVATE_NODES(name)

WEIR_NO_KERNEL_DEVICE(execute_ioctl)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_advise_mr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_alloc_dm)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_alloc_mw)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_alloc_pd)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_attach_mcast)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_close_xrcd)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_ah)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_counters)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_cq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_cq_ex)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_flow)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_flow_action_esp)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_qp)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_qp_ex)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_qp_ex2)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_rwq_ind_table)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_srq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_srq_ex)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_wq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_dealloc_mw)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_dealloc_pd)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_dereg_mr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_ah)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_counters)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_cq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_flow)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_flow_action)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_qp)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_rwq_ind_table)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_srq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_wq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_detach_mcast)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_free_dm)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_get_context)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_modify_cq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_modify_flow_action_esp)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_modify_qp)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_modify_qp_ex)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_modify_srq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_modify_wq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_open_qp)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_open_xrcd)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_poll_cq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_post_recv)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_post_send)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_post_srq_recv)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_context)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_device_any)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_mr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_port)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_qp)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_srq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_read_counters)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_reg_dm_mr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_reg_dmabuf_mr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_reg_mr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_req_notify_cq)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_rereg_mr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_resize_cq)

#undef WEIR_NO_KERNEL_DEVICE

// Functions that only some releases have.
#define WEIR_NO_KERNEL_DEVICE(name) \
  int name() { return ENOSYS; }

WEIR_NO_KERNEL_DEVICE(__ioctl_final_num_attrs)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_device)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_device_ex)
WEIR_NO_KERNEL_DEVICE(ibv_get_fw_ver)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_cq_ex2)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_alloc_dmah)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_free_dmah)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_reg_mr_ex)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_export_dmabuf_fd)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_port_speed)
WEIR_NO_KERNEL_DEVICE(ibv_dmabuf_heap_cc_shared_init)
WEIR_NO_KERNEL_DEVICE(ibv_dmabuf_heap_destroy)
WEIR_NO_KERNEL_DEVICE(ibv_dmabuf_heap_free)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_create_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_destroy_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_inc_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_inc_err_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_qp_attach_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_query_comp_cntr_caps)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_read_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_read_err_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_set_comp_cntr)
WEIR_NO_KERNEL_DEVICE(ibv_cmd_set_err_comp_cntr)
// Returns a pointer, unlike the others.
void* ibv_dmabuf_heap_alloc() {
  errno = EOPNOTSUPP;
  return nullptr;
}
WEIR_IN_OTHER_PRIVATE_NODES(__ioctl_final_num_attrs)
WEIR_IN_PRIVATE_NODE(ibv_cmd_query_device, 33)
WEIR_IN_PRIVATE_NODE(ibv_cmd_query_device, 34)
WEIR_IN_PRIVATE_NODE(ibv_cmd_create_cq_ex2, 34)  // rdma-core 56, which Debian 13 has
WEIR_IN_PRIVATE_NODE(ibv_cmd_create_cq_ex2, 59)
WEIR_IN_PRIVATE_NODE(ibv_cmd_create_cq_ex2, 64)
WEIR_IN_PRIVATE_NODE(ibv_cmd_create_cq_ex2, 65)
WEIR_IN_PRIVATE_NODE(ibv_cmd_alloc_dmah, 64)
WEIR_IN_PRIVATE_NODE(ibv_cmd_alloc_dmah, 65)
WEIR_IN_PRIVATE_NODE(ibv_cmd_free_dmah, 64)
WEIR_IN_PRIVATE_NODE(ibv_cmd_free_dmah, 65)
WEIR_IN_PRIVATE_NODE(ibv_cmd_reg_mr_ex, 64)
WEIR_IN_PRIVATE_NODE(ibv_cmd_reg_mr_ex, 65)
WEIR_IN_PRIVATE_NODE(ibv_cmd_export_dmabuf_fd, 65)
WEIR_IN_PRIVATE_NODE(ibv_cmd_query_port_speed, 65)
WEIR_IN_PRIVATE_NODE(ibv_dmabuf_heap_alloc, 65)
WEIR_IN_PRIVATE_NODE(ibv_dmabuf_heap_cc_shared_init, 65)
WEIR_IN_PRIVATE_NODE(ibv_dmabuf_heap_destroy, 65)
WEIR_IN_PRIVATE_NODE(ibv_dmabuf_heap_free, 65)

#undef WEIR_NO_KERNEL_DEVICE

}  // extern "C"
