// `weir devices`: shows what verbs programs can use on this machine.
#include <fmt/core.h>

#include <cstdio>

#include "cli/json_text.hpp"
#include "cli/weir/command.hpp"
#include "cli/weir/devices/device_list.hpp"
#include "cli/weir/launch/drop_in_libraries.hpp"
#include "screen/terminal.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir devices [--json] [--lib-dir DIR]

Lists the RDMA devices of this machine: hardware, which verbs programs find by themselves, and Weir's software NIC,
which they find under `weir run`. For each address of the software NIC it says what it reaches, and why: programs on
this host through shared memory, other hosts by packets to UDP port 4791.

  --json         print JSON, for programs
  --lib-dir DIR  where Weir's libibverbs.so.1 is (default: found beside this program)
  --help         this text

Exit status: 0; 1 the software NIC could not be listed, or the list could not be written; 2 the command line is
invalid.
)";

std::string as_json(const std::vector<Device>& devices) {
  JsonText json;
  json.begin_array();
  for (const Device& device : devices) {
    json.line(2).begin_object().key("name").text(device.name);
    json.key("kind").text(device.software ? "software" : "hardware").key("ports").begin_array();
    for (const auto& port : device.ports) {
      json.line(4).begin_object().key("port").number(port.number).key("state").text(port.state);
      json.key("link_layer").text(port.link_layer).key("gids").begin_array();
      for (const auto& gid : port.gids) {
        json.line(6).begin_object().key("index").number(gid.index).key("gid").text(gid.gid);
        json.key("type").text(gid.type).key("reaches").text(gid.reaches).end();
      }
      json.end().end();
    }
    json.end().end();
  }
  if (!devices.empty()) json.line(0);
  return json.end().take() + "\n";
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
      screen::print_wrapped(stdout, help);
      return 0;
    }
    if (arguments[i] == "--json") {
      json = true;
    } else if (arguments[i] == "--lib-dir" && i + 1 < arguments.size()) {
      library_directory = arguments[++i];
    } else {
      return complain("devices", option_complaint(arguments[i], help) + "; see weir devices --help");
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
  if (json)
    std::fputs(as_json(all).c_str(), stdout);
  else
    screen::print_wrapped(stdout, as_text(all));
  if (trouble.empty()) return 0;
  std::fflush(stdout);
  return complain("devices", "the software NIC is not listed: " + trouble, 1);
}

}  // namespace weir::command
