#include "verbs/cm/devices.hpp"

#include <fcntl.h>

#include <algorithm>

#include "verbs/ibv/private_link.hpp"

namespace weir::cm {
namespace {

constexpr std::uint8_t the_port = 1;  // each of our devices has one; all have the same addresses

}  // namespace

Devices::Devices() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return;
  for (int i = 0; i < count; ++i) {
    if (ibv_context* context = ibv_open_device(list[i])) contexts_.push_back(context);
  }
  ibv_free_device_list(list);
}

// What is still in use stays; the process's own agent, which is never destroyed, keeps all.
Devices::~Devices() {
  for (const auto& [context, pd] : pds_)
    if (pd != nullptr) (void)ibv_dealloc_pd(pd);
  for (const auto& [context, xrcd] : xrcds_)
    if (xrcd != nullptr) (void)ibv_close_xrcd(xrcd);
  for (ibv_context* context : contexts_) (void)ibv_close_device(context);
}

std::optional<Devices::Place> Devices::find(const Endpoint& address) const {
  const ibv_gid gid = address.gid();
  const int index = weir_gid_index(&gid);
  ibv_port_attr attributes{};
  if (index < 0 || contexts_.empty() || ibv_query_port(contexts_.front(), the_port, &attributes) != 0)
    return std::nullopt;
  return Place{contexts_.front(), the_port, index, attributes.active_mtu};
}

ibv_pd* Devices::default_pd(ibv_context* context) {
  const std::scoped_lock hold(mutex_);
  ibv_pd*& pd = pds_[context];
  if (pd == nullptr) pd = ibv_alloc_pd(context);
  return pd;
}

ibv_xrcd* Devices::default_xrcd(ibv_context* context) {
  const std::scoped_lock hold(mutex_);
  ibv_xrcd*& xrcd = xrcds_[context];
  if (xrcd != nullptr) return xrcd;
  ibv_xrcd_init_attr attr{};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = -1;
  attr.oflags = O_CREAT;
  xrcd = ibv_open_xrcd(context, &attr);
  return xrcd;
}

Devices::Limits Devices::limits(ibv_context* context) {
  ibv_device_attr device{};
  if (context == nullptr || ibv_query_device(context, &device) != 0) return {1, 1};
  const auto fit = [](int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 0xff)); };
  return {fit(device.max_qp_rd_atom), fit(device.max_qp_init_rd_atom)};
}

}  // namespace weir::cm
