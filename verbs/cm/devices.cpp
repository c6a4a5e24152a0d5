#include "verbs/cm/devices.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

namespace weir::cm {

Devices::Devices() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return;
  for (int i = 0; i < count; ++i) {
    if (ibv_context* context = ibv_open_device(list[i])) contexts_.push_back(context);
  }
  ibv_free_device_list(list);
}

std::optional<Devices::Place> Devices::find(const Endpoint& address) const {
  const ibv_gid wanted = address.gid();
  const auto found = find_gid(wanted);
  if (found) return found;
  // All of 127.0.0.0/8 is this host, as in libibverbs (verbs/ibv/gid_table.hpp).
  if (!address.is_v4() || address.ip[12] != 127) return std::nullopt;
  Endpoint loopback = address;
  loopback.ip[13] = loopback.ip[14] = 0;
  loopback.ip[15] = 1;
  return find_gid(loopback.gid());
}

std::optional<Devices::Place> Devices::find_gid(const ibv_gid& wanted) const {
  for (ibv_context* context : contexts_) {
    ibv_device_attr device{};
    if (ibv_query_device(context, &device) != 0) continue;
    for (unsigned port = 1; port <= device.phys_port_cnt; ++port) {
      ibv_port_attr attributes{};
      if (ibv_query_port(context, static_cast<std::uint8_t>(port), &attributes) != 0) continue;
      for (int index = 0; index < attributes.gid_tbl_len; ++index) {
        ibv_gid gid;
        if (ibv_query_gid(context, static_cast<std::uint8_t>(port), index, &gid) != 0) continue;
        if (std::memcmp(gid.raw, wanted.raw, sizeof wanted.raw) != 0) continue;
        return Place{context, static_cast<std::uint8_t>(port), index, attributes.active_mtu};
      }
    }
  }
  return std::nullopt;
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
