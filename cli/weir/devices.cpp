// `weir devices`: what verbs programs can use on this machine.
#include <fmt/core.h>

#include <cstdio>

#include "cli/json_text.hpp"
#include "cli/weir/command.hpp"
#include "cli/weir/device_list.hpp"
#include "cli/weir/drop_in_libraries.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir devices [--json] [--lib-dir DIR]

Lists the RDMA devices of this machine: hardware, which verbs programs find by themselves, and Weir's software NIC,
which they find under `weir run`. Of the software NIC's addresses it says what they reach: programs of this host
through shared memory, other hosts by packets to UDP port 4791, and why.

  --json         as JSON, for programs
  --lib-dir DIR  where Weir's libibverbs.so.1 is (default: found beside this program)
  --help         this text

Exit status: 0; 1 the software NIC could not be listed, or the list not be written; 2 the command line makes no sense.
)";

std::string as_json(const std::vector<Device>& devices) {
  std::string text = "[";
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const auto& device = devices[d];
    text += fmt::format("{}\n  {{\"name\": {}, \"kind\": \"{}\", \"ports\": [", d ? "," : "",
                        json_string(device.name), device.software ? "software" : "hardware");
    for (std::size_t p = 0; p < device.ports.size(); ++p) {
      const auto& port = device.ports[p];
      text += fmt::format("{}\n    {{\"port\": {}, \"state\": {}, \"link_layer\": {}, \"gids\": [",
                          p ? "," : "", port.number, json_string(port.state), json_string(port.link_layer));
      for (std::size_t g = 0; g < port.gids.size(); ++g)
        text += fmt::format("{}\n      {{\"index\": {}, \"gid\": {}, \"type\": {}, \"reaches\": {}}}",
                            g ? "," : "", port.gids[g].index, json_string(port.gids[g].gid),
                            json_string(port.gids[g].type), json_string(port.gids[g].reaches));
      text += "]}";
    }
    text += "]}";
  }
  return text + (devices.empty() ? "]\n" : "\n]\n");
}

std::string as_text(const std::vector<Device>& devices) {
  std::string text;
  for (const auto& device : devices) {
    text += fmt::format("{}  ({}{})\n", device.name, device.software ? "software" : "hardware",
                        device.software ? ", for programs started with weir run" : "");
    for (const auto& port : device.ports) {
      text += fmt::format("  port {}  {}  {}\n", port.number, port.state, port.link_layer);
      for (const auto& gid : port.gids)
        text += fmt::format("    GID {:<3} {:<28} {}{}{}\n", gid.index, gid.gid, gid.type,
                            gid.reaches.empty() ? "" : "  ", gid.reaches);
    }
  }
  return text;
}

}  // namespace

int devices(std::span<const std::string> arguments) {
  bool json = false;
  std::string library_directory;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help" || arguments[i] == "-h") {
      std::fputs(help.data(), stdout);
      return 0;
    }
    if (arguments[i] == "--json") {
      json = true;
    } else if (arguments[i] == "--lib-dir" && i + 1 < arguments.size()) {
      library_directory = arguments[++i];
    } else {
      return complain("devices", "unknown option or missing value: " + arguments[i] +
                                     did_you_mean_option(arguments[i], help) + "; see weir devices --help");
    }
  }
  auto all = hardware_devices("/sys");
  std::string trouble;
  const auto libraries = find_drop_in_libraries(library_directory);
  if (!libraries) {
    trouble = libraries.error();
  } else if (auto software = software_devices(*libraries); software) {
    all.insert(all.end(), software->begin(), software->end());
  } else {
    trouble = software.error();
  }
  std::fputs((json ? as_json(all) : as_text(all)).c_str(), stdout);
  if (trouble.empty()) return 0;
  std::fflush(stdout);
  return complain("devices", "the software NIC is not listed: " + trouble, 1);
}

}  // namespace weir::command
