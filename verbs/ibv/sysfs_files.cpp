#include "verbs/ibv/sysfs_files.hpp"

#include <endian.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/gid_table.hpp"
#include "verbs/ibv/lid.hpp"

namespace weir::verbs {
namespace {

// Groups of four hexadecimal digits, as the kernel prints GIDs and GUIDs.
std::string grouped(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; i += 2) {
    std::array<char, 8> group{};
    std::snprintf(group.data(), group.size(), "%s%02x%02x", i != 0 ? ":" : "", bytes[i], bytes[i + 1]);
    text += group.data();
  }
  return text;
}

std::string lid_text() {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0x%x", port_lid());
  return text.data();
}

std::string interface_name(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(index, name.data()) != nullptr ? name.data() : "";
}

void add_gids(std::vector<SysfsFile>& files) {
  for (std::size_t i = 0; i < gid_places(); ++i) {
    const std::string number = std::to_string(i);
    const auto entry = gid_at(i);
    const ibv_gid gid = entry.value_or(GidEntry{}).gid;
    files.push_back({"ports/1/gids/" + number, grouped(gid.raw, sizeof gid.raw)});
    if (!entry) continue;  // the kernel shows no attributes of an empty place
    files.push_back({"ports/1/gid_attrs/types/" + number, "RoCE v2"});
    files.push_back({"ports/1/gid_attrs/ndevs/" + number, interface_name(entry->interface_index)});
  }
}

}  // namespace

// The low 24 bits are a hash of the name (FNV-1a).
std::uint64_t guid_at_host(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) hash = (hash ^ static_cast<std::uint8_t>(letter)) * 0x100000001b3;
  return 0x0257455952000000 | (hash & 0xffffff);
}

// The device's number comes above the hash of the host's name.
__be64 device_guid(std::size_t device) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return htobe64(guid_at_host(host.data()) + (std::uint64_t{device} << 24));
}

std::string device_interface() {
  const auto first = gid_at(0);
  return first ? interface_name(first->interface_index) : "";
}

std::vector<SysfsFile> device_files(std::size_t device) {
  const __be64 guid = device_guid(device);
  const std::string guid_text = grouped(reinterpret_cast<const std::uint8_t*>(&guid), sizeof guid);
  std::vector<SysfsFile> files = {{"node_type", "1: CA"},
                                  {"fw_ver", "0.1.0"},
                                  {"board_id", "WEIR0000000001"},
                                  {"hca_type", "weir"},
                                  {"hw_rev", "1"},
                                  {"node_guid", guid_text},
                                  {"sys_image_guid", guid_text},
                                  {"node_desc", device_options().devices[device]},
                                  {"ports/1/link_layer", "Ethernet"},
                                  {"ports/1/state", "4: ACTIVE"},
                                  {"ports/1/phys_state", "5: LinkUp"},
                                  {"ports/1/rate", "100 Gb/sec (4X EDR)"},
                                  {"ports/1/lid", lid_text()},
                                  {"ports/1/lid_mask_count", "0"},
                                  {"ports/1/sm_lid", "0x0"},
                                  {"ports/1/sm_sl", "0"},
                                  {"ports/1/cap_mask", "0x04010000"},
                                  {"ports/1/pkeys/0", "0xffff"}};
  add_gids(files);
  return files;
}

}  // namespace weir::verbs
