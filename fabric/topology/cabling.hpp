// A network file from what other tools know of the cabling, so that nobody types it again.
//
// Cabling collects cables from any number of files, each once, however many ends report it. What a file does
// not say (LLDP knows no cable lengths) comes from CablingDefaults. Single-threaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/topology/complaint.hpp"

namespace weir::fabric {

struct CablingDefaults {
  std::string speed = "100G", cable = "3m", model = "generic-32m";
};

class Cabling {
 public:
  struct End {
    std::string node;
    std::string port;  // empty: unknown
    auto operator<=>(const End&) const = default;
  };
  struct Cable {
    End a, b;
    std::optional<std::uint64_t> speed_mbps;
    std::optional<double> length_m;
  };
  struct Device {
    std::optional<bool> is_host;
    std::string model;  // empty: unknown
  };

  // `a` is the end that reports the cable, so its port's name is right; `b` may be an alias.
  void add(Cable cable);
  Device& device(const std::string& name) { return devices_[name]; }
  // Decides for devices of which no file said it: hosts are those with a single neighbor.
  void guess_hosts();

  const std::vector<Cable>& cables() const { return cables_; }
  const std::map<std::string, Device>& devices() const { return devices_; }

 private:
  std::vector<Cable> cables_;
  std::map<End, std::size_t> cable_at_;  // ends whose port is known; index into cables_
  std::map<std::string, Device> devices_;
};

// Adds the cables of one JSON file, which is one of:
//   containerlab's topology-data.json, which every deployment writes into the lab's directory;
//   NetBox's answer to GET /api/dcim/cables/ (3.3 or later);
//   `lldpcli show neighbors -f json` or json0, named DEVICE.json;
//   SONiC's config_db.json, for DEVICE_NEIGHBOR, CABLE_LENGTH and the speeds in PORT.
// `path`: the file's name, which names the device of an LLDP file. Complains if there is nothing to read.
void read_cabling(std::string_view text, const std::string& path, Cabling& cabling, Complaints& complaints);

// The network file (TOML). Only ports with SONiC's names keep them; the planner names the others.
std::string network_file(const Cabling& cabling, const CablingDefaults& defaults);

}  // namespace weir::fabric
