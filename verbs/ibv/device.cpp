// The device list and opening a device. There is one device, weir0, unless `weir run` names others; all of
// them are names for the process's one NIC.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "link/not_cancelled.hpp"
#include "verbs/faulty/calls.hpp"
#include "verbs/ibv/command_fd.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/gid_table.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/path.hpp"
#include "verbs/ibv/private_link.hpp"
#include "verbs/ibv/sysfs_files.hpp"
#include "verbs/trace/tracer.hpp"

namespace weir::verbs {

std::span<Device> devices() {
  static auto* const list = [] {
    auto* made = new std::vector<Device>(device_options().devices.size());
    for (std::size_t i = 0; i < made->size(); ++i) {
      const char* const name = device_options().devices[i].c_str();
      ibv_device& d = (*made)[i].device;
      d.node_type = IBV_NODE_CA;
      d.transport_type = IBV_TRANSPORT_IB;
      std::snprintf(d.name, sizeof d.name, "%s", name);
      std::snprintf(d.dev_name, sizeof d.dev_name, "uverbs%zu", i);
      std::snprintf(d.dev_path, sizeof d.dev_path, "/sys/class/infiniband_verbs/uverbs%zu", i);
      std::snprintf(d.ibdev_path, sizeof d.ibdev_path, "/sys/class/infiniband/%s", name);
    }
    return made;
  }();
  return *list;
}

std::size_t index_of(const ibv_device& device) {
  return static_cast<std::size_t>(reinterpret_cast<const Device*>(&device) - devices().data());
}

namespace {

std::atomic<ibv_mtu> shown_mtu{IBV_MTU_4096};
std::atomic<bool> shown_pulled{false};

// When the port becomes active, programs query its attributes again and so learn a new MTU. A pulled cable
// takes it down, as a NIC's.
void table_changed(TableChange change) {
  if (change == TableChange::gids) return deliver_port_event(IBV_EVENT_GID_CHANGE);
  const ibv_mtu mtu = port_mtu();
  const bool pulled = cable_is_pulled();
  const bool has_other_mtu = shown_mtu.exchange(mtu) != mtu;
  if (shown_pulled.exchange(pulled) != pulled)
    deliver_port_event(pulled ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
  else if (has_other_mtu)
    deliver_port_event(IBV_EVENT_PORT_ACTIVE);
}

// Runs once for each NIC; a forked child has a new one. If the watch or its descriptor cannot be made, the
// table stays as it was first read.
void watch_gids(NicProcess& nic) {
  static std::mutex mutex;
  static link::SameHostLink* watched = nullptr;
  const std::lock_guard lock(mutex);
  link::SameHostLink& link = nic.link();
  if (watched == &link) return;
  watched = &link;
  if (nic.faults() != nullptr) {
    nic.faults()->set_gid_index([](const rnic::Gid& address) {
      ibv_gid gid;
      std::memcpy(gid.raw, address.data(), address.size());
      return find_place(gid);
    });
    hide_gids(gid_is_gone);
    schedule_faults(nic, deliver_port_event);
  }
  shown_mtu = port_mtu();
  if (const int fd = watch_addresses(table_changed); fd >= 0)
    (void)link.watch(fd, [] { read_changed_addresses(); });
}

// Attaching needs the per-user directory. Verbs can only return an errno, so print why it failed.
NicProcess* attach_or_explain() {
  auto nic = NicProcess::instance();
  if (nic) {
    (*nic)->on_async_event(deliver_async);
    trace_if_wanted(**nic);
    watch_gids(**nic);
    (*nic)->network().set_is_ours([](const rnic::Gid& address) {
      ibv_gid gid;
      std::memcpy(gid.raw, address.data(), address.size());
      return find_gid(gid).has_value();
    });
    return *nic;
  }
  std::fprintf(stderr, "weir: the software NIC cannot start: %s\n", nic.error().what.c_str());
  errno = static_cast<int>(nic.error().code);
  return nullptr;
}

void fill_operations(verbs_context& verbs) {
  verbs.sz = sizeof verbs;
  verbs.query_port = query_port;
  verbs.query_device_ex = query_device_ex;
  verbs.create_qp_ex = create_qp_ex;
  verbs.modify_qp_rate_limit = modify_qp_rate_limit;
  verbs.create_srq_ex = create_srq_ex;
  verbs.create_cq_ex = create_cq_ex;
  verbs.modify_cq = modify_cq;
  verbs.query_rt_values = query_rt_values;
  verbs.advise_mr = advise_mr;
  verbs.alloc_null_mr = alloc_null_mr;
  verbs.alloc_td = alloc_td;
  verbs.dealloc_td = dealloc_td;
  verbs.alloc_parent_domain = alloc_parent_domain;
  verbs.alloc_dm = alloc_dm;
  verbs.free_dm = free_dm;
  verbs.reg_dm_mr = reg_dm_mr;
  verbs.get_srq_num = get_srq_num;
  verbs.open_xrcd = open_xrcd;
  verbs.close_xrcd = close_xrcd;
  verbs.open_qp = open_qp;
  verbs.ibv_create_flow = create_flow;
  verbs.ibv_destroy_flow = destroy_flow;
  verbs.create_wq = create_wq;
  verbs.modify_wq = modify_wq;
  verbs.destroy_wq = destroy_wq;
  verbs.create_rwq_ind_table = create_rwq_ind_table;
  verbs.destroy_rwq_ind_table = destroy_rwq_ind_table;
  ibv_context_ops& ops = verbs.context.ops;
  ops.alloc_mw = alloc_mw;
  ops.bind_mw = bind_mw;
  ops.dealloc_mw = dealloc_mw;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  ops.post_srq_recv = post_srq_recv;
}

}  // namespace

ibv_context* open_context(ibv_device* device, int cmd_fd) {
  NicProcess* nic = attach_or_explain();
  if (nic == nullptr) return nullptr;
  const int eventfd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  if (eventfd < 0) return nullptr;
  auto* context = new Context{};
  fill_operations(context->verbs);
  if (nic->adapter().weak() != nullptr) make_completions_weak(context->verbs.context.ops);
  if (nic->faults() != nullptr) put_faulty_calls_in_front(context->verbs.context.ops, *nic->faults());
  context->nic = nic;
  context->async_eventfd = eventfd;
  ibv_context& c = context->verbs.context;
  c.device = device;
  c.abi_compat = __VERBS_ABI_IS_EXTENDED;
  c.cmd_fd = cmd_fd;
  c.async_fd = eventfd;
  c.num_comp_vectors = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  pthread_mutex_init(&c.mutex, nullptr);
  open_async_queue(*context);
  return &c;
}

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

void weir_end_silently() { weir::verbs::NicProcess::end_silently(); }

weir::link::SameHostLink* weir_same_host_link() {
  NicProcess* nic = attach_or_explain();
  return nic != nullptr ? &nic->link() : nullptr;
}

weir::verbs::ManagementPort* weir_management_port() {
  NicProcess* nic = attach_or_explain();
  return nic != nullptr ? make_management_port(*nic) : nullptr;
}

ibv_device** ibv_get_device_list(int* count) {
  auto** list = static_cast<ibv_device**>(std::calloc(devices().size() + 1, sizeof(ibv_device*)));
  if (list == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  for (Device& device : devices()) list[index_of(device.device)] = &device.device;
  if (count != nullptr) *count = static_cast<int>(devices().size());
  return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
__be64 ibv_get_device_guid(ibv_device* device) { return device_guid(index_of(*device)); }
// The kernel's number of the device; the kernel does not have this device.
int ibv_get_device_index(ibv_device*) { return -1; }

ibv_context* ibv_open_device(ibv_device* device) {
  const weir::link::NotCancelled whole;
  const int cmd_fd = make_command_fd(index_of(*device));
  if (cmd_fd < 0) return nullptr;
  ibv_context* const context = open_context(device, cmd_fd);
  if (context == nullptr) ::close(cmd_fd);
  return context;
}

int ibv_close_device(ibv_context* context) {
  Context& c = context_of(context);
  const weir::link::NotCancelled whole;
  close_async_queue(c);
  ::close(c.async_eventfd);
  ::close(context->cmd_fd);
  pthread_mutex_destroy(&context->mutex);
  delete &c;
  return 0;
}

}  // extern "C"
