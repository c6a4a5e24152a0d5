// The software NIC as its own libibverbs describes it: loads that library by path and asks its public ABI.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <memory>

#include "cli/weir/devices/device_list.hpp"

#undef ibv_get_device_list  // the header defines macros; here they name symbols
#undef ibv_query_port

namespace weir::command {
namespace {

// The few functions that are needed, as the library exports them.
struct VerbsCalls {
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;
  decltype(&::ibv_query_gid) query_gid;
  decltype(&::_ibv_query_gid_ex) query_gid_ex;  // null before IBVERBS_1.11
  const char* (*reaches)(const ibv_gid*);       // verbs/ibv/private_link.hpp

  // The name of the first missing function; empty: none is missing.
  std::string bind(void* library) {
    std::string missing;
    const auto take = [&](auto& call, const char* name) {
      call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(::dlsym(library, name));
      if (!call && missing.empty()) missing = name;
    };
    take(get_device_list, "ibv_get_device_list");
    take(free_device_list, "ibv_free_device_list");
    take(get_device_name, "ibv_get_device_name");
    take(open_device, "ibv_open_device");
    take(close_device, "ibv_close_device");
    take(query_device, "ibv_query_device");
    take(query_port, "ibv_query_port");
    take(query_gid, "ibv_query_gid");
    auto needed = std::move(missing);
    take(query_gid_ex, "_ibv_query_gid_ex");
    take(reaches, "weir_reaches");
    return needed;
  }
};

std::string state_text(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    case IBV_PORT_NOP:
      break;
  }
  return "NOP";
}

std::string gid_type(const VerbsCalls& verbs, ibv_context* context, std::uint32_t port, std::uint32_t index) {
  ibv_gid_entry entry{};
  if (!verbs.query_gid_ex || verbs.query_gid_ex(context, port, index, &entry, 0, sizeof entry) != 0)
    return {};
  return entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1";
}

DevicePort port_of(const VerbsCalls& verbs, ibv_context* context, std::uint8_t number) {
  DevicePort port{number, "unknown", {}, {}};
  // The exported function fills the struct of the first ABI. Later members keep their zeroes.
  ibv_port_attr attributes{};
  if (verbs.query_port(context, number, reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) != 0)
    return port;
  port.state = state_text(attributes.state);
  port.link_layer = attributes.link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet";
  for (int i = 0; i < attributes.gid_tbl_len; ++i) {
    ibv_gid gid{};
    constexpr ibv_gid none{};
    if (verbs.query_gid(context, number, i, &gid) != 0 || std::memcmp(gid.raw, none.raw, sizeof gid.raw) == 0)
      continue;
    const auto index = static_cast<std::uint32_t>(i);
    port.gids.push_back({index, gid_text(gid.raw), gid_type(verbs, context, number, index),
                         verbs.reaches != nullptr ? verbs.reaches(&gid) : ""});
  }
  return port;
}

}  // namespace

std::expected<std::vector<Device>, std::string> software_devices(const std::string& library_directory) {
  const auto file = library_directory + "/libibverbs.so.1";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded: it has threads
  if (!library) return std::unexpected(std::string("cannot load ") + file + ": " + ::dlerror());
  VerbsCalls verbs{};
  if (const auto missing = verbs.bind(library); !missing.empty())
    return std::unexpected(file + " lacks " + missing + ": is it Weir's libibverbs?");
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(verbs.free_device_list)> list(verbs.get_device_list(&count),
                                                                            verbs.free_device_list);
  if (!list) return std::unexpected(file + " cannot list devices: " + std::strerror(errno));
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    ibv_device* const listed = list.get()[i];
    Device device{verbs.get_device_name(listed), true, {}};
    const std::unique_ptr<ibv_context, decltype(verbs.close_device)> context(verbs.open_device(listed),
                                                                             verbs.close_device);
    if (!context) return std::unexpected(device.name + " does not open: " + std::strerror(errno));
    ibv_device_attr attributes{};
    const int error = verbs.query_device(context.get(), &attributes);
    for (int port = 1; error == 0 && port <= attributes.phys_port_cnt; ++port)
      device.ports.push_back(port_of(verbs, context.get(), static_cast<std::uint8_t>(port)));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace weir::command
